"""Tiles of a large signal that are descended on side by side: ways to cut the codes of a working set into them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.layout import SPARE_SAMPLES, flat_offsets, strides_of
from pointillist.backends.sweeps import Region
from pointillist.model.geometry import Geometry

_LONGEST_RUN = 16
"""Lanes of a vector at most."""
_STRIP_HEIGHT, _STRIP_WIDTH = 1 / 3, 4.0
"""Sides of strips over that of a tile, for about as many positions."""

Part = tuple[NDArray, Region]
"""Codes, as indices into the working set, and what they reach."""


class Cut(NamedTuple):
    """Tiles of codes; such as touch are swept over in their order.

    For each tile `after` has the numbers of the earlier tiles that it touches, perhaps by its padding only.
    """

    tiles: list[Part]
    after: list[list[int]]


class _Way(NamedTuple):
    """Where the borders lie in one way to cut a grid of positions; tiles are numbered in the order of their places."""

    owners: NDArray  # (n_positions,) the number of the tile at each position
    regions: list[Region]
    before: list[list[int]]  # the tiles that each touches and that are swept over before it
    backwards: list[int]  # the tiles such that each comes after all that wait for it


class Cutter:
    """Cuts a grid of positions into tiles of some `sides` or somewhat less, in several ways: each moves the borders.

    Tiles have colours, and those of one colour have disjoint footprints, padding included: `sides` must be twice those of a
    filter at least, and along the last axis of one with a run of padding behind it. Tiles have at least half of that.
    """

    def __init__(self, geometry: Geometry, sides: Sequence[int]) -> None:
        self.geometry = geometry
        # An even number of tiles: padded lanes run on from the last of a row of tiles into the first of the next.
        self.counts = [1 if g <= s else 2 * -(-g // (2 * s)) for g, s in zip(geometry.grid, sides, strict=True)]
        ways = list(product(*[(0, 1) if count > 1 else (0,) for count in self.counts]))
        order = sorted(range(len(ways)), key=lambda n: min(n, len(ways) - 1 - n))  # opposite ways after one another
        self._shifts = [ways[n] for n in order]
        self._ways: dict[int, _Way] = {}

    @classmethod
    def into_tiles(cls, geometry: Geometry, side: int) -> Cutter:
        """Cut into squares or cubes of a side; of a line as many positions as a square has."""
        if len(geometry.grid) == 1:
            side = side**2
        return cls(geometry, [max(side, 2 * (max(geometry.filter) + _LONGEST_RUN))] * len(geometry.grid))

    @classmethod
    def into_strips(cls, geometry: Geometry, side: int) -> Cutter:
        """Cut a picture that is not to stay in one tile of a side into strips: their neighbours are few.

        Tiles in four colours wait for each other longer than strips in two do, and more of a strip lies far from its border.
        """
        tiles = cls.into_tiles(geometry, side)
        if tiles.n_ways == 1 or len(geometry.grid) != 2:
            return tiles
        height, width = geometry.filter
        sides = (
            max(round(_STRIP_HEIGHT * side), 2 * height),
            max(round(_STRIP_WIDTH * side), 2 * (width + _LONGEST_RUN)),
        )
        strips = cls(geometry, sides)
        return tiles if strips.n_ways == 1 else strips

    @property
    def n_ways(self) -> int:
        """How many ways there are; a single one has a single tile."""
        return len(self._shifts)

    def way(self, number: int) -> _Way:
        """One of the ways, worked out when it is first asked for: many descents end before the second."""
        if number not in self._ways:
            self._ways[number] = self._worked_out(self._shifts[number])
        return self._ways[number]

    def _worked_out(self, shifts: tuple[int, ...]) -> _Way:
        """Tiles whose sides differ by one at most; along axes with a shift the first has half of one, the last half more.

        None is empty or narrower than what it is padded with: it would not lie between the tiles beside it.
        """
        short = np.dtype(np.uint16 if prod(self.counts) < 2**16 else np.int64)
        owners, borders = np.zeros((), short), []
        for length, count, shift in zip(self.geometry.grid, self.counts, shifts, strict=True):
            own = np.minimum((2 * count * np.arange(length) + shift * length) // (2 * length), count - 1)
            borders.append(np.searchsorted(own, np.arange(count + 1)).tolist())
            owners = owners[..., None] * short.type(count) + own.astype(short)
        places = list(np.ndindex(*self.counts))
        regions = []
        for place in places:
            first = [along[i] for along, i in zip(borders, place, strict=True)]
            last = [along[i + 1] - 1 for along, i in zip(borders, place, strict=True)]
            regions.append(reached(self.geometry, first, last))
        before = [[int(np.ravel_multi_index(other, self.counts)) for other in self._before(place)] for place in places]
        backwards = sorted(range(len(places)), key=lambda n: _colour(places[n]), reverse=True)
        return _Way(owners.reshape(-1), regions, before, backwards)

    def _before(self, place: tuple[int, ...]) -> set[tuple[int, ...]]:
        """Places beside one, the last of a row also beside the first, whose colours come before its own."""
        spans = [[(p + s) % count for s in (-1, 0, 1)] for p, count in zip(place, self.counts, strict=True)]
        return {other for other in product(*spans) if _colour(other) < _colour(place)}


def _colour(place: tuple[int, ...]) -> tuple[int, ...]:
    """The colour of the tile at a place: along each axis every second tile has the same."""
    return tuple(p % 2 for p in place)


class Cutters:
    """What cuts the codes of all signals of one geometry, made when it is first asked for."""

    def __init__(self, geometry: Geometry, side: int) -> None:
        self.geometry, self.side = geometry, side

    @cached_property
    def tiles(self) -> Cutter:
        """Cuts into squares or cubes."""
        return Cutter.into_tiles(self.geometry, self.side)

    @cached_property
    def strips(self) -> Cutter:
        """Cuts pictures into strips, and all else into tiles."""
        return Cutter.into_strips(self.geometry, self.side)


class Cuts(Sequence[Cut]):
    """The codes at some positions, cut into tiles in all ways of a cutter."""

    def __init__(self, cutter: Cutter, positions: NDArray) -> None:
        self.cutter, self.positions = cutter, positions
        self._found: dict[int, Cut] = {}

    def __len__(self) -> int:
        return self.cutter.n_ways

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        if number not in self._found:
            self._found[number] = self._whole() if len(self) == 1 else self._tiles(self.cutter.way(number))
        return self._found[number]

    def _whole(self) -> Cut:
        """One tile, no larger than its codes need."""
        geometry = self.cutter.geometry
        axes = np.unravel_index(self.positions, geometry.grid)
        first = [int(np.min(axis, initial=side - 1)) for axis, side in zip(axes, geometry.grid, strict=True)]
        last = [int(np.max(axis, initial=a)) for axis, a in zip(axes, first, strict=True)]
        return uncut(len(self.positions), reached(geometry, first, last))

    def _tiles(self, way: _Way) -> Cut:
        """The tiles that have codes; those come first that most work waits for."""
        number = way.owners.take(self.positions)
        order = np.argsort(number, kind="stable")  # short integers are sorted by counting
        sizes = np.bincount(number, minlength=len(way.regions)).tolist()
        ends = np.cumsum(sizes).tolist()
        longest = list(sizes)  # the codes of a tile, and of those that wait for it one after the other
        for n in way.backwards:
            for other in way.before[n]:
                longest[other] = max(longest[other], sizes[other] + longest[n])
        chosen = sorted((n for n, size in enumerate(sizes) if size), key=lambda n: -longest[n])
        places = {n: i for i, n in enumerate(chosen)}
        after = [[places[other] for other in way.before[n] if other in places] for n in chosen]
        return Cut([(order[ends[n] - sizes[n] : ends[n]], way.regions[n]) for n in chosen], after)


def uncut(n_codes: int, region: Region) -> Cut:
    """All codes in one tile."""
    return Cut([(np.arange(n_codes), region)], [[]])


def reached(geometry: Geometry, first: Sequence[int], last: Sequence[int]) -> Region:
    """The box of a padded signal that codes reach whose positions lie between two corners, the last one included."""
    sides = [b - a + width for a, b, width in zip(first, last, geometry.filter, strict=True)]
    rows = rows_of((geometry.channels, *geometry.padded), first, sides)
    begin = int(rows[0])
    span = int(rows[-1]) + sides[-1] + SPARE_SAMPLES - begin
    return Region(begin, span, rows, sides[-1], rows, sides[-1])


def rows_of(shape: tuple[int, ...], first: Sequence[int], sides: Sequence[int]) -> NDArray:
    """Where the rows of a box begin in a signal (channels, *space)."""
    strides = strides_of(shape)
    return int(np.dot(first, strides[1:])) + flat_offsets((shape[0], *sides[:-1]), strides[:-1])
