"""The grid of a large signal cut into blocks, and tiles of blocks that can be solved side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pointillist.problem import Geometry

Place = tuple[int, ...]

_BLOCK_POSITIONS, _CHANNELS = 2**16, 8
"""Positions of a block, and the channels of a signal up to which it has so many."""
_OVERLAP = 16


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

    @property
    def overlap(self) -> int:
        """Positions around a tile that are solved with it.

        Codes at the border of a tile would otherwise explain what belongs beyond it. Tiles of one colour have two blocks
        between them, and reach disjoint samples all the same.
        """
        return min(_OVERLAP, (2 * self.side - max(self.geometry.filter) + 1) // 2)

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

    def box(self, tile: tuple[slice, ...], margin: int = 0) -> tuple[slice, ...]:
        """Positions of the blocks of a tile, and so many around them."""
        spans = zip(tile, self.geometry.grid, strict=True)
        return tuple(slice(max(s.start * self.side - margin, 0), min(s.stop * self.side + margin, g)) for s, g in spans)

    def inside(self, tile: tuple[slice, ...]) -> Iterator[Place]:
        """Blocks of a tile."""
        return product(*[range(s.start, s.stop) for s in tile])

    def near(self, tile: tuple[slice, ...], margin: int) -> tuple[slice, ...]:
        """A tile with all blocks that have positions within a margin around it."""
        more = -(-margin // self.side)
        return tuple(
            slice(max(s.start - more, 0), min(s.stop + more, count)) for s, count in zip(tile, self.counts, strict=True)
        )

    def contains(self, box: tuple[slice, ...], codes: NDArray) -> NDArray:
        """Which codes have their positions in a box."""
        inside = np.ones(len(codes), bool)
        for axis, span in zip(
            np.unravel_index(codes % self.geometry.n_positions, self.geometry.grid), box, strict=True
        ):
            inside &= (axis >= span.start) & (axis < span.stop)
        return inside

    def number(self, codes: NDArray) -> NDArray:
        """Flat number of the block that owns each code."""
        positions = np.unravel_index(codes % self.geometry.n_positions, self.geometry.grid)
        return np.ravel_multi_index([axis // self.side for axis in positions], self.counts)


class BlockCodes:
    """The codes that each block owns."""

    def __init__(self, blocks: Blocks, dtype: DTypeLike) -> None:
        self.blocks = blocks
        nothing = (np.empty(0, np.int64), np.empty(0, dtype))
        self._codes = {block: nothing for block in np.ndindex(blocks.counts)}

    def of(self, tile: tuple[slice, ...], box: tuple[slice, ...] | None = None) -> tuple[NDArray, NDArray]:
        """Codes of the blocks of a tile, perhaps only those with positions in a box, and their values."""
        own = [self._codes[block] for block in self.blocks.inside(tile)]
        codes, values = (np.concatenate(arrays) for arrays in zip(*own, strict=True))
        if box is None:
            return codes, values
        kept = self.blocks.contains(box, codes)
        return codes[kept], values[kept]

    def replace(self, codes: NDArray, values: NDArray, tile: tuple[slice, ...], box: tuple[slice, ...]) -> None:
        """Give codes to the blocks of a tile that own them, instead of those that these had in a box."""
        number = self.blocks.number(codes)
        order = np.argsort(number, kind="stable")
        codes, values, number = codes[order], values[order], number[order]
        for block in self.blocks.inside(tile):
            flat = int(np.ravel_multi_index(block, self.blocks.counts))
            first, last = np.searchsorted(number, [flat, flat + 1])
            before, worth = self._codes[block]
            kept = ~self.blocks.contains(box, before)
            self._codes[block] = (
                np.concatenate([before[kept], codes[first:last]]),
                np.concatenate([worth[kept], values[first:last]]),
            )


def alone(block: Place) -> tuple[slice, ...]:
    """A tile of one block."""
    return tuple(slice(c, c + 1) for c in block)


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
