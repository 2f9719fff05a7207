"""Where the codes of a working set lie in a padded signal, and which of them can be descended on side by side.

Large signals are cut into tiles, by colours so that tiles of one colour never touch. A padded circle holds some samples
twice: codes that reach them have images, which keep both alike.
"""

from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.descent import locate
from pointillist.backends.layout import SPARE_SAMPLES, Layout, flat_offsets, run_offsets, strides_of
from pointillist.backends.sweeps import Places, Region
from pointillist.backends.vectors import width_of
from pointillist.model.geometry import Geometry

Part = tuple[NDArray, Region]
"""Codes, as indices into the working set, and what they reach."""


class Stage(NamedTuple):
    """All that a descent on a working set needs to know of its places."""

    layout: Layout
    places: Places
    residual: NDArray
    weights: NDArray
    partitions: list[list[list[Part]]]  # ways to cut it into tiles, each by colour


def stage_of(
    geometry: Geometry, layout: Layout, codes: NDArray, residual: NDArray, weights: NDArray, side: int
) -> Stage:
    """The stage for `codes`, in tiles of so many positions a side; `residual` and `weights` are flat and padded."""
    if geometry.boundary == "circular":
        return _on_circle(geometry, layout, codes, residual, weights)
    bases, starts = np.empty_like(codes), np.empty_like(codes)
    locate(layout, codes, bases, starts)
    places = Places(bases, starts, np.zeros(len(codes) + 1, np.int64), np.empty(0, np.int64))
    positions = codes % geometry.n_positions
    shape = (geometry.channels, *geometry.padded)
    partitions = [
        [[(members, _reached(geometry, shape, positions[members])) for members in tiles] for tiles in colours]
        for colours in partitions_of(geometry, positions, side)
    ]
    return Stage(layout, places, residual, weights, partitions)


def _reached(geometry: Geometry, shape: tuple[int, ...], positions: NDArray) -> Region:
    """The box that codes at `positions` reach of a padded signal of some shape."""
    axes = np.unravel_index(positions if len(positions) else np.zeros(1, np.int64), geometry.grid)
    first = [int(np.min(axis)) for axis in axes]
    sides = [int(np.max(axis)) - f + width for axis, f, width in zip(axes, first, geometry.filter, strict=True)]
    rows = _rows(shape, first, sides)
    begin = int(rows[0])
    span = int(rows[-1]) + sides[-1] + SPARE_SAMPLES - begin
    return Region(begin, span, rows, sides[-1], rows, sides[-1], np.empty((0, 2), np.int64))


def _rows(shape: tuple[int, ...], first: list[int], sides: list[int]) -> NDArray:
    """Where the rows of a box begin in a signal (channels, *space)."""
    strides = strides_of(shape)
    return int(np.dot(first, strides[1:])) + flat_offsets((shape[0], *sides[:-1]), strides[:-1])


def _on_circle(geometry: Geometry, layout: Layout, codes: NDArray, residual: NDArray, weights: NDArray) -> Stage:
    """The stage of a circle, in a wider signal: images may reach beyond the padded one."""
    margins = [f - 1 for f in geometry.filter]
    shape = (geometry.channels, *(n + 2 * m for n, m in zip(geometry.padded, margins, strict=True)))
    strides = strides_of(shape)[1:]
    filters, positions = np.divmod(codes, geometry.n_positions)
    axes = np.unravel_index(positions, geometry.grid)
    bases = sum((axis + m) * stride for axis, m, stride in zip(axes, margins, strides, strict=True))
    wide = layout._replace(run_offsets=run_offsets((geometry.channels, *geometry.filter), shape))
    starts = filters * (len(wide.run_offsets) * width_of(wide.run_lanes))
    sides = list(geometry.padded)
    region = Region(
        0, prod(shape) + SPARE_SAMPLES,
        _rows(shape, margins, sides), sides[-1], _rows(shape, margins, list(geometry.signal)), geometry.signal[-1],
        _twins(geometry, shape),
    )  # fmt: skip
    places = Places(np.asarray(bases), starts, *_images(geometry, axes, strides))
    wide_residual, wide_weights = _widened(geometry, residual, shape), _widened(geometry, weights, shape)
    return Stage(wide, places, wide_residual, wide_weights, [[[(np.arange(len(codes)), region)]]])


def _images(geometry: Geometry, axes: tuple[NDArray, ...], strides: NDArray) -> tuple[NDArray, NDArray]:
    """Where the images of each code lie relative to it, and where those of each code begin in that list."""
    owners, offsets = [], []
    for turns in product((0, 1, -1), repeat=len(axes)):
        if not any(turns):
            continue
        has = np.ones(len(axes[0]), bool)
        for turn, axis, n, f in zip(turns, axes, geometry.signal, geometry.filter, strict=True):
            if turn:
                has &= axis < f - 1 if turn > 0 else axis + f > n
        owners.append(np.flatnonzero(has))
        offset = sum(turn * n * int(s) for turn, n, s in zip(turns, geometry.signal, strides, strict=True))
        offsets.append(np.full(len(owners[-1]), offset, np.int64))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=len(axes[0]))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.concatenate(offsets)[order]


def _twins(geometry: Geometry, shape: tuple[int, ...]) -> NDArray:
    """Pairs of places in a wider signal that are one sample of the circle, along one axis after the other."""
    inside = tuple(slice(f - 1, f - 1 + n) for f, n in zip(geometry.filter, geometry.padded, strict=True))
    places = np.arange(prod(shape)).reshape(shape)[(slice(None), *inside)]
    pairs = [np.empty((0, 2), np.int64)]
    for axis, (n, f) in enumerate(zip(geometry.signal, geometry.filter, strict=True), start=1):
        first = np.take(places, range(f - 1), axis)
        again = np.take(places, range(n, n + f - 1), axis)
        pairs.append(np.stack([first.ravel(), again.ravel()], axis=1))
    return np.concatenate(pairs)


def _widened(geometry: Geometry, flat: NDArray, shape: tuple[int, ...]) -> NDArray:
    """A padded signal in the middle of a wider one."""
    wide = np.zeros(prod(shape) + SPARE_SAMPLES, flat.dtype)
    margins = [f - 1 for f in geometry.filter]
    inside = tuple(slice(m, m + n) for m, n in zip(margins, geometry.padded, strict=True))
    box = flat[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
    wide[: prod(shape)].reshape(shape)[(slice(None), *inside)] = box
    return wide


def partitions_of(geometry: Geometry, positions: NDArray, side: int) -> list[list[list[NDArray]]]:
    """The codes at `positions` by colour and tile, for several ways to cut the grid: each moves the borders.

    Tiles of one colour have disjoint footprints, padding included.
    """
    if len(geometry.grid) == 1:  # as many positions as a tile of a picture
        side = side**2
    side = max(side, 2 * (max(geometry.filter) + 16))
    # An even number of tiles: padded lanes run on from the last of a row of tiles into the first of the next.
    counts = [1 if g <= side else 2 * -(-g // (2 * side)) for g in geometry.grid]
    if prod(counts) == 1:
        return [[[np.arange(len(positions))]]]
    axes = np.unravel_index(positions, geometry.grid)
    ways = list(product(*[(0, 1) if count > 1 else (0,) for count in counts]))
    order = sorted(range(len(ways)), key=lambda n: min(n, len(ways) - 1 - n))  # opposite ways after one another
    return [_tiles(geometry, axes, counts, ways[n]) for n in order]


def _tiles(
    geometry: Geometry, axes: tuple[NDArray, ...], counts: list[int], shifts: tuple[int, ...]
) -> list[list[NDArray]]:
    """Codes at places `axes` by colour and tile; along axes with a shift the first tile has half the side of others."""
    sides = [-(-g // count) for g, count in zip(geometry.grid, counts, strict=True)]
    coordinates = [
        np.minimum((axis + shift * (s // 2)) // s, count - 1)
        for axis, s, shift, count in zip(axes, sides, shifts, counts, strict=True)
    ]
    number = np.ravel_multi_index(coordinates, counts)
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(prod(counts) + 1))
    colours: list[list[NDArray]] = []
    for colour in product(*[range(min(2, count)) for count in counts]):
        members = product(*[range(first, count, 2) for first, count in zip(colour, counts, strict=True)])
        places = [int(np.ravel_multi_index(member, counts)) for member in members]
        colours.append([order[bounds[n] : bounds[n + 1]] for n in places if bounds[n] < bounds[n + 1]])
    return colours
