"""The grid of a large signal cut into blocks, and tiles of blocks that can be solved side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pointillist.model.geometry import Geometry

Place = tuple[int, ...]

_BLOCK_POSITIONS, _CHANNELS = 2**16, 8
"""Positions of a block, and the channels of a signal up to which it has so many."""


@dataclass(frozen=True)
class Blocks:
    """A grid of positions cut into blocks of equal sides; the last ones may be smaller."""

    geometry: Geometry
    side: int

    @classmethod
    def of(cls, geometry: Geometry, side: int | None) -> Blocks:
        ndim = len(geometry.grid)
        # Memory follows the samples: a tile of many channels has fewer positions.
        positions = _BLOCK_POSITIONS / max(1, geometry.channels / _CHANNELS)
        wanted = round(positions ** (1 / ndim)) if side is None else side
        # A tile between two others must keep what these reach apart.
        return cls(geometry, max(wanted, -(-max(geometry.filter) // 2)))

    @cached_property
    def counts(self) -> Place:
        return tuple(-(-g // self.side) for g in self.geometry.grid)

    def shift(self, number: int) -> Place:
        """Blocks by which the tiles of a pass are shifted along each axis: in turn all ways, opposite ones together.

        With fewer of them some positions would always lie at the border of a tile, along one axis or another.
        """
        ways = list(product((0,), *[(0, 1)] * (len(self.counts) - 1)))
        way = ways[number // 2 % len(ways)]
        return way if number % 2 == 0 else tuple(1 - s for s in way)

    def colours(self, shift: Place) -> list[list[tuple[slice, ...]]]:
        """Tiles as slices of blocks, by colour; tiles of one colour reach disjoint samples."""
        edges = [_edges(count, one) for count, one in zip(self.counts, shift, strict=True)]
        colours = []
        for parity in product((0, 1), repeat=len(edges)):
            axes = [spans[first::2] for spans, first in zip(edges, parity, strict=True)]
            tiles = list(product(*axes))
            if tiles:
                colours.append(tiles)
        return colours

    def box(self, tile: tuple[slice, ...]) -> tuple[slice, ...]:
        """Positions of the blocks of a tile."""
        spans = zip(tile, self.geometry.grid, strict=True)
        return tuple(slice(s.start * self.side, min(s.stop * self.side, g)) for s, g in spans)

    def neighbours(self, tile: tuple[slice, ...]) -> Iterator[Place]:
        """Blocks outside of a tile whose codes reach samples that the tile's reach too."""
        reach = [-(-(f - 1) // self.side) for f in self.geometry.filter]
        spans = [
            range(max(s.start - r, 0), min(s.stop + r, count))
            for s, r, count in zip(tile, reach, self.counts, strict=True)
        ]
        for block in product(*spans):
            if not all(s.start <= c < s.stop for c, s in zip(block, tile, strict=True)):
                yield block

    def number(self, codes: NDArray) -> NDArray:
        """Flat number of the block that owns each code."""
        positions = np.unravel_index(codes % self.geometry.n_positions, self.geometry.grid)
        return np.ravel_multi_index([axis // self.side for axis in positions], self.counts)


def _edges(count: int, shift: int) -> list[slice]:
    """Pairs of blocks along an axis, with single ones at the ends where they do not come out even."""
    starts = [0, *range(2 - shift, count, 2)] if count > 1 else [0]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


def renumbered(codes: NDArray, grid: Place, other: Place, shift: list[int]) -> NDArray:
    """Flat codes on `grid` as flat codes on `other`, whose positions differ by a shift."""
    n_filters = int(codes.max()) // int(np.prod(grid)) + 1 if len(codes) else 1
    filters, *position = np.unravel_index(codes, (n_filters, *grid))
    moved = [axis + s for axis, s in zip(position, shift, strict=True)]
    return np.ravel_multi_index([filters, *moved], (n_filters, *other))
