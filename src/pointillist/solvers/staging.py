"""Where the codes of a working set lie in a padded signal; codes of a circle come round to its other side."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.descent import locate
from pointillist.backends.lanes import width_of
from pointillist.backends.layout import SPARE_SAMPLES, Layout, strides_of
from pointillist.backends.sweeps import Region
from pointillist.backends.updates import Circle, Places
from pointillist.model.geometry import Geometry
from pointillist.solvers.cutting import Cut, Cuts, Cutter, rows_of, uncut


class Stage(NamedTuple):
    """All that a descent on a working set needs to know of its places."""

    layout: Layout
    places: Places
    residual: NDArray
    weights: NDArray
    cuts: Sequence[Cut]


def stage_of(
    geometry: Geometry, layout: Layout, codes: NDArray, residual: NDArray, weights: NDArray, cutter: Cutter
) -> Stage:
    """The stage for `codes`, which a cutter cuts into tiles; `residual` and `weights` are flat and padded."""
    if geometry.boundary == "circular":
        return _on_circle(geometry, layout, codes, residual, weights)
    bases, starts = np.empty_like(codes), np.empty_like(codes)
    locate(layout, codes, bases, starts)
    return Stage(layout, Places(bases, starts), residual, weights, Cuts(cutter, codes % geometry.n_positions))


def _on_circle(geometry: Geometry, layout: Layout, codes: NDArray, residual: NDArray, weights: NDArray) -> Stage:
    """The stage of a circle: its samples, with the first of each row behind its end again."""
    lanes, around, length = width_of(layout.run_lanes), geometry.signal, geometry.signal[-1]
    doubled = min(lanes, geometry.filter[-1]) - 1
    # Behind each row is room for a run, so that closing a seam in one never waits for the row before.
    shape = (geometry.channels, *around[:-1], length + lanes)
    filters, positions = np.divmod(codes, geometry.n_positions)
    axes = np.unravel_index(positions, geometry.grid)
    bases = np.asarray(sum(axis * stride for axis, stride in zip(axes, strides_of(shape)[1:], strict=True)))
    ways, offsets = _ways(geometry, shape, lanes, axes)
    runs_a_row = -(-geometry.filter[-1] // lanes)
    column, size = axes[-1], geometry.filter[-1]
    if runs_a_row * lanes <= length:  # bundles of codes fill their runs
        size = runs_a_row * lanes
    last = column + lanes * ((length - 1 - column) // lanes)  # where the last run begins that does not come round
    seams = np.where(
        (column < doubled) | (column + size > length),
        np.maximum(np.minimum(last + lanes, column + size) - length, 0),
        -1,
    )
    sides = list(around)
    region = Region(
        0, prod(shape) + SPARE_SAMPLES,
        rows_of(shape, [0] * len(sides), [*sides[:-1], length + doubled]), length + doubled,
        rows_of(shape, [0] * len(sides), sides), length,
    )  # fmt: skip
    starts = filters * (len(layout.run_offsets) * lanes)
    twins = _twins(shape, length, doubled)
    places = Places(bases, starts, Circle(ways, offsets, seams, column, runs_a_row, length, doubled, twins))
    there, seen = (_closed(geometry, flat, shape, length + doubled) for flat in (residual, weights))
    return Stage(layout, places, there, seen, [uncut(len(codes), region)])


def _ways(geometry: Geometry, shape: tuple[int, ...], lanes: int, axes: tuple[NDArray, ...]) -> tuple[NDArray, NDArray]:
    """Where the runs of codes lie relative to their bases: where each code's begin among all that differ, and all of these.

    Runs that leave the circle come round to its other side. Which of them do depends on how near the end a code is.
    """
    steps = [1] * (len(axes) - 1) + [lanes]
    counts = [-(-f // step) for f, step in zip(geometry.filter, steps, strict=True)]
    before = [
        np.minimum(-(-(n - axis) // step), count)
        for n, axis, step, count in zip(geometry.signal, axes, steps, counts, strict=True)
    ]  # runs along each axis that come before the end
    kinds, own = np.unique(np.ravel_multi_index(before, [count + 1 for count in counts]), return_inverse=True)
    offsets = np.zeros((len(kinds), 1), np.int64)
    strides = strides_of(shape)
    offsets = offsets + strides[0] * np.arange(geometry.channels)
    for first, n, step, count, stride in zip(
        np.unravel_index(kinds, [count + 1 for count in counts]),
        geometry.signal,
        steps,
        counts,
        strides[1:],
        strict=True,
    ):
        along = np.arange(count)
        own_offsets = (step * along - n * (along >= first[:, None])) * stride
        offsets = (offsets[:, :, None] + own_offsets[:, None, :]).reshape(len(kinds), -1)
    return own * offsets.shape[1], offsets.reshape(-1)


def _twins(shape: tuple[int, ...], length: int, doubled: int) -> NDArray:
    """Pairs of places that are one sample of a circle: the first of each row, and those behind its end."""
    places = np.arange(prod(shape)).reshape(-1, shape[-1])[:, :doubled].reshape(-1)
    return np.stack([places, places + length], axis=1)


def _closed(geometry: Geometry, flat: NDArray, shape: tuple[int, ...], width: int) -> NDArray:
    """A padded circle without what it holds twice, but for the first samples of each row, which end after a width."""
    box = flat[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
    closed = np.zeros(prod(shape) + SPARE_SAMPLES, flat.dtype)
    inside = (*(slice(n) for n in shape[:-1]), slice(width))
    closed[: prod(shape)].reshape(shape)[inside] = box[inside]
    return closed


def residual_of(geometry: Geometry, stage: Stage) -> NDArray:
    """What a stage's residual has become, as a signal (channels, *space)."""
    if geometry.boundary != "circular":
        return geometry.inside(stage.residual)
    shape = (geometry.channels, *geometry.signal[:-1], geometry.signal[-1] + width_of(stage.layout.run_lanes))
    circle = stage.residual[: prod(shape)].reshape(shape)[..., : geometry.signal[-1]]
    return np.roll(circle, [-o for o in geometry.offset], range(1, circle.ndim))
