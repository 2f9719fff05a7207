"""Signals and codes that live on a CUDA device: how they are checked, moved, decoded and given back there."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import Rows, as_cupy, as_kind, members_of, rows, stacked, to_host
from pointillist.codes import SparseCodes
from pointillist.cuda.device import Device, open_device
from pointillist.cuda.plan import as_volume
from pointillist.cuda.sums import CodeLists
from pointillist.large import is_mapped
from pointillist.problem import Geometry
from pointillist.solvers.base import Result
from pointillist.validation import Namespace, group_by_shape, kept_precision

_SEVERAL = 8
"""Signals from which on it is worth to move an array of them at once."""
_MOVED_PART = 0.1
"""Share of a device's free memory that such an array may take."""


def upload(arrays: Any, device: Device) -> Any:
    """An array or a list of arrays on the device, moved shape by shape; float64 stays, everything else becomes float32.

    A list whose entries are one and the same array stays such a list.
    """
    if not isinstance(arrays, list | tuple):
        return device.upload(arrays, kept_precision(arrays.dtype))
    moved: list[Any] = [None] * len(arrays)
    for members in group_by_shape(arrays):
        if all(arrays[i] is arrays[members[0]] for i in members):
            shared = device.upload([arrays[members[0]]], kept_precision(arrays[members[0]].dtype))[0]
            stack: Any = [shared] * len(members)
        else:
            stack = device.upload(
                [arrays[i] for i in members], np.result_type(*{kept_precision(arrays[i].dtype) for i in members})
            )
        for i, one in zip(members, stack if isinstance(stack, list) else rows(stack), strict=True):
            moved[i] = one
    return moved


def moves_whole(signals: Any, device: str) -> bool:
    """Whether signals of the host are one array of several that a device has plenty of room for."""
    plain = type(signals) is np.ndarray and signals.dtype.kind in "fiub" and signals.ndim > 1 and not is_mapped(signals)
    if not plain or len(signals) < _SEVERAL or signals.size == 0:
        return False
    itemsize = kept_precision(signals.dtype).itemsize
    return signals.size * itemsize <= _MOVED_PART * open_device(device).free_memory()


@contextmanager
def device_namespace(name: str) -> "Iterator[DeviceNamespace]":
    """A namespace of the named device, which is the current one meanwhile; what was made is ready at the end."""
    device = open_device(name)
    device.settle()  # whoever made the arrays may still be at it, on a stream of its own
    with device.use():
        yield DeviceNamespace(device)
        device.wait()  # the solver's streams are others


class DeviceNamespace(Namespace):
    """CuPy's arrays on one device.

    Tests are made for all signals of a shape at once, since a device answers slowly to many small questions.
    """

    def __init__(self, device: Device) -> None:
        self.device, self.xp = device, device.cupy

    def array(self, given: Any, name: str) -> Any:
        return self.device.take(given, name)

    def full(self, array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.xp.ascontiguousarray(self.xp.broadcast_to(array, shape).astype(dtype, copy=False))

    def split(self, whole: Any, dtype: Any) -> list[Any]:
        return rows(self.full(whole, whole.shape, dtype))

    def count(self, test: Callable[[Any], Any], arrays: Sequence[Any]) -> NDArray:
        counts = np.zeros(len(arrays), int)
        for members in group_by_shape(arrays):
            flat = stacked(members_of(arrays, members)).reshape(len(members), -1)
            counts[members] = to_host(test(flat).sum(axis=1))
        return counts

    def all_finite(self, arrays: Sequence[Any]) -> bool:
        if isinstance(arrays, Rows):
            return bool(np.isfinite(arrays.extents[:2]).all())
        return not self.count(lambda x: ~self.xp.isfinite(x), arrays).any()

    def seen_only(self, signals: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        seen: list[Any] = [None] * len(signals)
        for members in group_by_shape(signals):
            x, w = (stacked(members_of(arrays, members)) for arrays in (signals, weights))
            for i, one in zip(members, rows(self.xp.where(w > 0, x, x.dtype.type(0))), strict=True):
                seen[i] = one
        return seen

    def extents(self, signals: Sequence[Any], weights: Sequence[Any] | None) -> tuple[NDArray, NDArray]:
        if weights is None and isinstance(signals, Rows):
            return signals.extents[0].astype(np.float64), signals.extents[1].astype(np.float64)
        low, high = np.zeros(len(signals)), np.zeros(len(signals))
        for members in group_by_shape(signals):
            x = stacked(members_of(signals, members)).reshape(len(members), -1)
            small = large = x
            if weights is not None:
                seen = stacked(members_of(weights, members)).reshape(x.shape) > 0
                small, large = self.xp.where(seen, x, np.inf), self.xp.where(seen, x, -np.inf)
            low[members], high[members] = to_host(self.xp.stack([small.min(axis=1), large.max(axis=1)]))
        return low, high


def of_kind(result: Result, kind: str) -> Result:
    """A result whose codes and residuals are arrays of the kind ("cupy" or "torch") instead of CuPy's."""
    if kind == "cupy":
        return result
    codes = result.codes
    lists = (codes.indices, codes.values, result.residuals)
    indices, values, residuals = ([as_kind(array, kind) for array in arrays] for arrays in lists)
    return replace(result, codes=SparseCodes(indices, values, codes.grids, codes.n_filters), residuals=residuals)


def decode_resident(
    codes: SparseCodes, filters: NDArray, shapes: Sequence[tuple[int, ...]], boundary: str, kind: str
) -> list[Any]:
    """Signals (channels, *space) from codes that live on a device, of the codes' kind."""
    signals: list[Any] = [None] * len(codes)
    device = open_device(f"cuda:{as_cupy(codes.values[0]).device.id}")
    device.settle()
    n_filters, channels, *size = filters.shape
    for shape in dict.fromkeys(shapes):
        geometry = Geometry(shape, tuple(size), channels, boundary)
        members = [i for i, other in enumerate(shapes) if other == shape]
        some = codes[members]
        with device.use():
            grid, box = as_volume(geometry.grid), as_volume(size)
            values = [device.take(value) for value in some.values]
            indices = [device.take(index) for index in some.indices]
            around = boundary == "circular"
            lists = CodeLists(device, grid, box, channels, n_filters, indices, values, around=around)
            padded = lists.synthesise(filters.reshape(n_filters, -1))
            spans = zip(as_volume(geometry.offset, 0), as_volume(geometry.signal), strict=True)
            fits = padded[(slice(None), slice(None), *(slice(o, o + s) for o, s in spans))].astype(values[0].dtype)
            device.wait()
        for i, fit in zip(members, rows(fits), strict=True):
            signals[i] = as_kind(fit.reshape(channels, *geometry.signal), kind)
    return signals
