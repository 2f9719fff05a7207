"""Where the codes of a working set lie in a padded signal, and which of them can be descended on side by side.

Large signals are cut into tiles, by colours so that tiles of one colour never touch. Codes of a circle come round to its
other side.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.descent import locate
from pointillist.backends.lanes import width_of
from pointillist.backends.layout import SPARE_SAMPLES, Layout, flat_offsets, strides_of
from pointillist.backends.sweeps import Region
from pointillist.backends.updates import Circle, Places
from pointillist.model.geometry import Geometry

Part = tuple[NDArray, Region]
"""Codes, as indices into the working set, and what they reach."""


class Stage(NamedTuple):
    """All that a descent on a working set needs to know of its places."""

    layout: Layout
    places: Places
    residual: NDArray
    weights: NDArray
    partitions: Sequence[list[list[Part]]]  # ways to cut it into tiles, each by colour


def stage_of(
    geometry: Geometry, layout: Layout, codes: NDArray, residual: NDArray, weights: NDArray, side: int
) -> Stage:
    """The stage for `codes`, in tiles of so many positions a side; `residual` and `weights` are flat and padded."""
    if geometry.boundary == "circular":
        return _on_circle(geometry, layout, codes, residual, weights)
    bases, starts = np.empty_like(codes), np.empty_like(codes)
    locate(layout, codes, bases, starts)
    partitions = Partitions(geometry, codes % geometry.n_positions, side)
    return Stage(layout, Places(bases, starts), residual, weights, partitions)


def _reached(geometry: Geometry, first: Sequence[int], last: Sequence[int]) -> Region:
    """The box of a padded signal that codes reach whose positions lie between two corners, the last one included."""
    sides = [b - a + width for a, b, width in zip(first, last, geometry.filter, strict=True)]
    rows = _rows((geometry.channels, *geometry.padded), first, sides)
    begin = int(rows[0])
    span = int(rows[-1]) + sides[-1] + SPARE_SAMPLES - begin
    return Region(begin, span, rows, sides[-1], rows, sides[-1])


def _rows(shape: tuple[int, ...], first: Sequence[int], sides: Sequence[int]) -> NDArray:
    """Where the rows of a box begin in a signal (channels, *space)."""
    strides = strides_of(shape)
    return int(np.dot(first, strides[1:])) + flat_offsets((shape[0], *sides[:-1]), strides[:-1])


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
        _rows(shape, [0] * len(sides), [*sides[:-1], length + doubled]), length + doubled,
        _rows(shape, [0] * len(sides), sides), length,
    )  # fmt: skip
    starts = filters * (len(layout.run_offsets) * lanes)
    twins = _twins(shape, length, doubled)
    places = Places(bases, starts, Circle(ways, offsets, seams, column, runs_a_row, length, doubled, twins))
    there, seen = (_closed(geometry, flat, shape, length + doubled) for flat in (residual, weights))
    return Stage(layout, places, there, seen, [[[(np.arange(len(codes)), region)]]])


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


class Partitions(Sequence[list[list[Part]]]):
    """Ways to cut the codes at some positions into tiles, by colour: each way moves the borders.

    Tiles of one colour have disjoint footprints, padding included. A way is worked out when it is first asked for: many
    descents end before the second.
    """

    def __init__(self, geometry: Geometry, positions: NDArray, side: int) -> None:
        if len(geometry.grid) == 1:  # as many positions as a tile of a picture
            side = side**2
        side = max(side, 2 * (max(geometry.filter) + 16))
        self.geometry, self.positions = geometry, positions
        # An even number of tiles: padded lanes run on from the last of a row of tiles into the first of the next.
        self.counts = [1 if g <= side else 2 * -(-g // (2 * side)) for g in geometry.grid]
        ways = list(product(*[(0, 1) if count > 1 else (0,) for count in self.counts]))
        order = sorted(range(len(ways)), key=lambda n: min(n, len(ways) - 1 - n))  # opposite ways after one another
        self._ways = [ways[n] for n in order]
        self._found: dict[int, list[list[Part]]] = {}

    def __len__(self) -> int:
        return len(self._ways)

    def __getitem__(self, number: Any) -> Any:
        way = self._ways[number]
        if number not in self._found:
            self._found[number] = self._whole() if prod(self.counts) == 1 else self._tiles(way)
        return self._found[number]

    @cached_property
    def _axes(self) -> tuple[NDArray, ...]:
        """Where the codes lie along each axis."""
        return np.unravel_index(self.positions, self.geometry.grid)

    def _whole(self) -> list[list[Part]]:
        """One tile, no larger than its codes need."""
        first = [int(np.min(axis, initial=side - 1)) for axis, side in zip(self._axes, self.geometry.grid, strict=True)]
        last = [int(np.max(axis, initial=a)) for axis, a in zip(self._axes, first, strict=True)]
        return [[(np.arange(len(self.positions)), _reached(self.geometry, first, last))]]

    def _tiles(self, shifts: tuple[int, ...]) -> list[list[Part]]:
        """Tiles by colour; along axes with a shift the first tile has half the side of others."""
        counts = self.counts
        short = np.dtype(np.uint16 if prod(counts) <= 2**16 else np.int64)
        number: NDArray = np.zeros(len(self.positions), short)
        borders = []
        for axis, (length, count, shift) in enumerate(zip(self.geometry.grid, counts, shifts, strict=True)):
            side = -(-length // count)
            owner = np.minimum((np.arange(length) + shift * (side // 2)) // side, count - 1)
            borders.append(np.searchsorted(owner, np.arange(count + 1)).tolist())
            # Looking tiles up takes a fraction of what divisions would.
            number = number + (owner * prod(counts[axis + 1 :])).astype(short)[self._axes[axis]]
        order = np.argsort(number, kind="stable")  # short integers are sorted by counting
        bounds = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=prod(counts)))])
        colours: list[list[Part]] = []
        for colour in product(*[range(min(2, count)) for count in counts]):
            places = product(*[range(first, count, 2) for first, count in zip(colour, counts, strict=True)])
            colours.append([part for place in places for part in self._tile(place, borders, order, bounds)])
        return colours

    def _tile(self, place: tuple[int, ...], borders: list[list[int]], order: NDArray, bounds: NDArray) -> list[Part]:
        """The tile at some place among all, if it has codes: those from `bounds[n]` on in order, n its number."""
        n = int(np.ravel_multi_index(place, self.counts))
        if bounds[n] == bounds[n + 1]:
            return []
        first = [along[i] for along, i in zip(borders, place, strict=True)]
        last = [along[i + 1] - 1 for along, i in zip(borders, place, strict=True)]
        return [(order[bounds[n] : bounds[n + 1]], _reached(self.geometry, first, last))]
