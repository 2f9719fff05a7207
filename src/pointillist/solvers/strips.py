"""Strips of a signal that are descended on side by side: those of one colour, every second one, reach nothing in common."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.layout import flat_offsets, strides_of
from pointillist.backends.sweeps import Strips
from pointillist.model.geometry import Geometry

_LONGEST_RUN = 16
"""Lanes of a vector at most."""
_LEAST_POSITIONS = 1024
"""Positions of a strip at least: fewer are swept over in too little time to be shared out."""
_MOST_STRIPS = 64


class StripPlan:
    """Cuts the positions of a geometry along the first axis, and with them a signal of some shape (channels, *space).

    Of that shape the first `samples` along each axis count; behind each row its first ones may stand again, `doubled` of
    them. Codes of a strip reach no further than the next one, and neither does the padding of their last runs. Behind the
    last strip lies the first, around a circle or of the next channel, so that there is an even number of strips, or one.
    """

    def __init__(self, geometry: Geometry, shape: Sequence[int], samples: Sequence[int], doubled: int = 0) -> None:
        length, size = geometry.grid[0], geometry.filter[0]
        self._positions_a_step = prod(geometry.grid[1:])
        least = size + _LONGEST_RUN if len(geometry.grid) == 1 else size
        least = max(least, -(-_LEAST_POSITIONS // self._positions_a_step))
        count = max(2 * min(length // (2 * least), _MOST_STRIPS // 2), 1)
        self._borders = np.arange(count + 1) * length // count
        rows, lengths = _rows(shape, samples, np.append(self._borders[:-1], samples[0]))
        self._strips = Strips(
            codes=np.zeros(count + 1, np.int64),
            rows=np.concatenate(rows),
            bounds=np.cumsum([0, *map(len, rows)]),
            lengths=lengths + (doubled if len(samples) > 1 else doubled * (np.arange(count) == count - 1)),
            counted=lengths,
            reached=np.zeros(count, bool),
        )

    def __len__(self) -> int:
        return len(self._strips.lengths)

    def strips(self, positions: NDArray) -> Strips:
        """The strips of codes at positions in ascending order."""
        codes = np.searchsorted(positions, self._borders * self._positions_a_step)
        own = np.diff(codes) > 0
        return self._strips._replace(codes=codes, reached=own | np.roll(own, 1))


def _rows(shape: Sequence[int], samples: Sequence[int], borders: NDArray) -> tuple[list[NDArray], NDArray]:
    """Where the rows of each strip begin, and how long they are."""
    strides, first, last = strides_of(shape), borders[:-1], borders[1:]
    if len(samples) == 1:  # the row of each channel is cut
        return [strides[0] * np.arange(shape[0]) + begin for begin in first], last - first
    rows = [
        strides[1] * begin + flat_offsets((shape[0], end - begin, *samples[1:-1]), strides[:-1])
        for begin, end in zip(first, last, strict=True)
    ]
    return rows, np.full(len(rows), samples[-1])
