"""Signals and codes that live on a CUDA device: checked, coded and given back there, without a way through the host.

What `model.signals` is to arrays of the host this is to CuPy arrays and torch's CUDA tensors. Checks are made for all
signals of a shape at once, since a device answers slowly to many small questions. Learners and `encode` decide who comes
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.cuda.device import Device, open_device
from pointillist.backends.cuda.exchange import as_cupy, as_kind, rows, stacked, to_host
from pointillist.backends.cuda.plan import as_volume
from pointillist.backends.cuda.sums import CodeLists
from pointillist.model.codes import SparseCodes
from pointillist.model.geometry import Geometry
from pointillist.model.signals import group_by_shape
from pointillist.solvers.base import Result


def upload(arrays: Any, device: Device) -> Any:
    """An array or a list of arrays on the device, moved shape by shape; float64 stays, everything else becomes float32.

    A list whose entries are one and the same array stays such a list.
    """
    if not isinstance(arrays, list | tuple):
        return device.upload(arrays, _kept(arrays.dtype))
    moved: list[Any] = [None] * len(arrays)
    for members in group_by_shape(arrays):
        if all(arrays[i] is arrays[members[0]] for i in members):
            shared = device.upload([arrays[members[0]]], _kept(arrays[members[0]].dtype))[0]
            stack: Any = [shared] * len(members)
        else:
            stack = device.upload(
                [arrays[i] for i in members], np.result_type(*{_kept(arrays[i].dtype) for i in members})
            )
        for i, one in zip(members, stack if isinstance(stack, list) else rows(stack), strict=True):
            moved[i] = one
    return moved


def _kept(dtype: Any) -> np.dtype:
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def resident_signals(
    signals: Any,
    weights: Any,
    device: str,
    ndim: int,
    *,
    channels: bool,
    name: str = "signals",
    nan_unseen: bool = False,
) -> tuple[list[Any], list[Any] | None]:
    """Signals and weights on a device, each (channels, *space), checked as those of the host are.

    With `nan_unseen` and without weights NaN marks samples that were not seen.
    """
    opened = open_device(device)
    opened.settle()  # whoever made the arrays may still be at it, on a stream of its own
    with opened.use():
        arrays = _taken(signals, opened, ndim, channels, name)
        seen = None if weights is None else _taken_weights(weights, arrays, opened, channels)
        if nan_unseen and seen is None:
            seen = _seen(arrays, opened, name)
        if seen is not None:
            blanked: list[Any] = [None] * len(arrays)
            for members, (x, w) in _stacks(arrays, seen):
                for i, one in zip(members, rows(opened.cupy.where(w > 0, x, x.dtype.type(0))), strict=True):
                    blanked[i] = one
            arrays = blanked
        unfinite = _find(lambda x: ~opened.cupy.isfinite(x).all(axis=1), arrays)
        _refuse(unfinite, f"{name}[{{}}] holds NaN or infinite samples; give weights that are zero there")
        opened.wait()  # the solver's streams are others
    return arrays, seen


def _taken(signals: Any, device: Device, ndim: int, channels: bool, name: str) -> list[Any]:
    if len(signals) == 0:
        raise ValueError(f"{name} is empty: give at least one signal")
    if not isinstance(signals, list | tuple):
        whole = _real(device, signals, 1 + channels + ndim, name)
        return rows(whole if channels else whole[:, None])
    taken = [_real(device, one, channels + ndim, f"{name}[{i}]") for i, one in enumerate(signals)]
    return taken if channels else [one[None] for one in taken]


def _real(device: Device, array: Any, ndim: int, name: str) -> Any:
    """An array of real numbers with so many axes, in float32 or float64."""
    taken = device.take(array, name)
    if taken.ndim != ndim or taken.size == 0 or taken.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers and have {ndim} axes, got {taken.dtype} of shape {taken.shape}"
        )
    return device.cupy.ascontiguousarray(taken.astype(_kept(taken.dtype), copy=False))


def _taken_weights(weights: Any, signals: list[Any], device: Device, channels: bool) -> list[Any]:
    space, first = signals[0].shape[1:], signals[0].shape
    several: Any = weights
    if not isinstance(weights, list | tuple):
        whole = device.take(weights, "weights")
        several = [whole] * len(signals) if whole.shape in (space, first) else list(whole)
    if len(several) != len(signals):
        raise ValueError(f"weights must hold one array for each of the {len(signals)} signals, got {len(several)}")
    made: dict[Any, Any] = {}  # weights that signals share stay one array
    full = []
    for i, (weight, signal) in enumerate(zip(several, signals, strict=True)):
        key = id(weight), signal.shape, signal.dtype
        if key not in made:
            taken = device.take(weight, f"weights[{i}]")
            if taken.shape not in (signal.shape, signal.shape[1:]):
                raise ValueError(
                    f"weights[{i}] has shape {taken.shape}, the signal {signal.shape[1:]}; they must agree"
                )
            made[key] = device.cupy.broadcast_to(taken, signal.shape).astype(signal.dtype)
        full.append(made[key])
    xp = device.cupy
    bad = _find(lambda w: (~xp.isfinite(w) | (w < 0)).any(axis=1), full)
    _refuse(bad, "weights[{}] must be finite and not negative")
    unseen = _find(lambda w: ~(w > 0).any(axis=1), full)
    _refuse(unseen, "weights[{}] is zero everywhere: nothing of that signal was seen")
    return full


def _seen(signals: list[Any], device: Device, name: str) -> list[Any] | None:
    """Weights of zero where signals are NaN, None where they never are."""
    xp = device.cupy
    if not _find(lambda x: xp.isnan(x).any(axis=1), signals).any():
        return None
    message = f"{name}[{{}}] is NaN everywhere: nothing of that signal was seen; leave it out"
    _refuse(_find(lambda x: xp.isnan(x).all(axis=1), signals), message)
    return [(~xp.isnan(signal)).astype(signal.dtype) for signal in signals]


def _stacks(*lists: list[Any] | None) -> list[tuple[list[int], list[Any]]]:
    """For each shape the places of its signals, and for each list these as one array."""
    return [
        (members, [None if one is None else stacked([one[i] for i in members]) for one in lists])
        for members in group_by_shape(lists[0] or [])
    ]


def _find(test: Callable[..., Any], *lists: list[Any] | None) -> NDArray:
    """For each signal whether `test`, of arrays (n, samples), holds."""
    found = np.zeros(len(lists[0] or []), bool)
    for members, stacks in _stacks(*lists):
        flat = [None if stack is None else stack.reshape(len(members), -1) for stack in stacks]
        found[members] = to_host(test(*flat))
    return found


def refuse_constant(signals: list[Any], weights: list[Any] | None, device: str, name: str) -> None:
    """Refuse signals on a device that are the same wherever they were seen."""
    opened = open_device(device)
    xp = opened.cupy

    def constant(x: Any, w: Any) -> Any:
        if w is None:
            return x.max(axis=1) == x.min(axis=1)
        return xp.where(w > 0, x, -np.inf).max(axis=1) == xp.where(w > 0, x, np.inf).min(axis=1)

    with opened.use():
        found = _find(constant, signals, weights)
    _refuse(found, f"{name}[{{}}] is constant: there is nothing to learn from it; leave it out")


def _refuse(found: NDArray, message: str) -> None:
    if found.any():
        raise ValueError(message.format(int(np.flatnonzero(found)[0])))


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
