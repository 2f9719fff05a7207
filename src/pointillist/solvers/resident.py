"""Signals and codes that live on a CUDA device: how they are moved, decoded and given back there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import as_cupy, as_kind, group_by_shape, rows
from pointillist.codes import SparseCodes
from pointillist.cuda.device import Device, open_device
from pointillist.cuda.plan import as_volume
from pointillist.cuda.sums import CodeLists
from pointillist.problem import Geometry
from pointillist.solvers.base import Result
from pointillist.validation import kept_precision


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
