"""Strips of a signal that are descended on side by side: those of one colour reach nothing in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.layout import flat_offsets, strides_of
from pointillist.kernels.sweeps import Strips
from pointillist.problem import Geometry

_LONGEST_RUN = 16
"""Lanes of a vector at most."""
_LEAST_POSITIONS = 1024
"""Positions of a strip at least: fewer are swept over in too little time to be shared out."""
_MOST_STRIPS, _MOST_COLOURS = 64, 8
_KEPT = 32
"""Plans that are kept."""


class StripPlan:
    """Cuts the positions of a geometry along the first axis, and with them a signal of some shape (channels, *space).

    Of that shape the first `samples` along each axis count; behind each row its first ones may stand again, `doubled` of
    them. Colours take turns along the axis. Codes of a strip reach no further than to the next one of its own colour, and
    neither does the padding of their last runs. Behind the last strip lies the first, around a circle or of the next
    channel, so that there are as many strips of each colour, or a single strip. A strip has `least_positions` or more.

    Two colours do where strips may be as long as filters. With more of them strips are shorter, and two threads find work
    in signals that are hardly three times as long as filters: one is always half a signal behind the other.
    """

    def __init__(
        self, geometry: Geometry, shape: Sequence[int], samples: Sequence[int], doubled: int, least_positions: int
    ) -> None:
        length, size = geometry.grid[0], geometry.filter[0]
        self._positions_a_step = prod(geometry.grid[1:])
        run = _LONGEST_RUN if len(geometry.grid) == 1 else 0
        least = max(-(-least_positions // self._positions_a_step), run)
        count, self._n_colours = _cut(length, size + run, least)
        self._borders = np.arange(count + 1) * length // count
        rows = _rows(shape, samples, np.append(self._borders[:-1], samples[0]), doubled)
        bounds = np.cumsum([0, *map(len, rows)])
        starts, lengths, counted = np.ascontiguousarray(np.concatenate(rows).T)
        codes, reached = np.zeros(count + 1, np.int64), np.zeros(count, bool)
        self._strips = Strips(self._n_colours, codes, bounds, starts, lengths, counted, reached)

    def __len__(self) -> int:
        return len(self._strips.reached)

    def strips(self, positions: NDArray) -> Strips:
        """The strips of codes at positions in ascending order."""
        codes = np.searchsorted(positions, self._borders * self._positions_a_step)
        own = codes[1:] > codes[:-1]
        reached = own.copy()
        for further in range(1, self._n_colours):
            reached |= np.roll(own, further)
        return self._strips._replace(codes=codes, reached=reached)


def strip_plan(geometry: Geometry, shape: tuple[int, ...], samples: tuple[int, ...], doubled: int = 0) -> StripPlan:
    """Make a `StripPlan`, or find it again: every step of learning has a problem of its own, and all have one geometry."""
    return _kept_plan(geometry, shape, samples, doubled, _LEAST_POSITIONS)


_kept_plan = lru_cache(_KEPT)(StripPlan)


def _cut(length: int, reach: int, least: int) -> tuple[int, int]:
    """How many strips a length is cut into, and of how many colours; a code reaches `reach` positions from its own on."""
    pairs = min(length // (2 * max(reach, least)), _MOST_STRIPS // 2)
    if pairs > 1:
        return 2 * pairs, 2
    for n_colours in range(2, _MOST_COLOURS + 1):  # between two strips of a colour lie all others
        count = 2 * n_colours
        if length // count >= least and (n_colours - 1) * (length // count) >= reach:
            return count, n_colours
    return 1, 1


def _rows(shape: Sequence[int], samples: Sequence[int], borders: NDArray, doubled: int) -> list[NDArray]:
    """For each strip (n_rows, 3) numbers: where a row begins, how long it is, and how much of it counts."""
    strides, found = strides_of(shape), []
    for begin, end in pairwise(borders):
        if len(samples) > 1:
            starts = strides[1] * begin + flat_offsets((shape[0], end - begin, *samples[1:-1]), strides[:-1])
            found.append(_row(starts, samples[-1] + doubled, samples[-1]))
        else:  # the row of each channel is cut
            found.append(_row(strides[0] * np.arange(shape[0]) + begin, end - begin, end - begin))
    if len(samples) == 1 and doubled > 0:  # codes of the first strip change them too
        found[0] = np.concatenate([found[0], _row(strides[0] * np.arange(shape[0]) + samples[0], doubled, 0)])
    return found


def _row(starts: NDArray, length: int, counted: int) -> NDArray:
    return np.stack([starts, np.full(len(starts), length), np.full(len(starts), counted)], axis=1)
