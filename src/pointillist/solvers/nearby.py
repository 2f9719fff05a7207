"""Codes that nearly violate: between two scans of all codes, violators are looked for among these alone.

What they tell is no bound, since others may violate by now. It says where to descend, and when a scan of all codes and a
certificate are worth their time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends import noting
from pointillist.backends.lanes import width_of
from pointillist.solvers.base import Mapper
from pointillist.solvers.dual import ALLOWED, SHRINKS, Worth, shrunk
from pointillist.solvers.scanning import DescentState, scan_size

_WORTH_NOTING = 2**25
"""Products of a scan from which on noting codes saves more than it takes."""
NOTES_A_POSITION = 6
"""Codes are noted where they are at most so many for each position; then looking at them takes a fraction of a scan."""
_WIDEST = 0.4
"""Codes are noted when the largest violation of the last look was at most this."""
_EXPECTED, _FAR = 0.7, 0.3
"""How far below one the ratios of noted codes go: this share of the last violation, but not further than that."""
_NARROWED, _NARROWEST = 3.0, 0.05
"""Codes stay noted while their ratios are less than so many violations below one, or less than that."""
_PROMISING = 8.0
"""A local dual point is tried out when the gap is so many times the tolerance, as far as the noted codes tell."""


class _Notes(NamedTuple):
    """Noted codes of some rows of the grid, sorted by their filters."""

    positions: NDArray
    bases: NDArray  # where their boxes begin in the padded signal
    filters: NDArray
    bounds: NDArray  # (n_filters + 1,) where those of each filter begin


class _Past(NamedTuple):
    """A residual (channels, *space) that was looked at, and the ratios of the noted codes with their signs."""

    residual: NDArray
    ratios: list[NDArray]


class NearCodes:
    """The codes whose ratios exceeded `floor` in a scan of signal i, and what has become of them.

    `best` and `winner` have, for each position, the largest ratio above one of the last look and its filter.
    """

    def __init__(self, state: DescentState, worth: Worth, pieces: list[NDArray], floor: float) -> None:
        self.state, self.worth, self.floor = state, worth, floor
        self.pieces = [_sorted(state, codes) for codes in pieces]
        self.best = np.zeros(state.problem.geometry.n_positions, state.per_penalty.dtype)
        self.winner = np.zeros(len(self.best), np.int32)
        self.ratio = np.inf  # the largest of the last look
        self.past: list[_Past] = []

    def look(self, flat: NDArray, residual: NDArray, mapper: Mapper) -> float:
        """Find the violators of a residual, given flat and padded too, among the noted codes; returns the largest ratio."""
        found = self._ratios(flat, mapper)
        self.ratio = self._largest(found)
        self._keep_violators(found, self.best, self.winner)
        self.past = [*self.past[-1:], _Past(residual, found)]
        enough = max(_NARROWED * (self.ratio - 1), _NARROWEST)
        if enough < _EXPECTED * (1 - self.floor):
            self._narrow(1 - enough)
        return self.ratio

    def promise(self, objective: float, tol: float, mapper: Mapper) -> tuple[NDArray, float]:
        """The better of the last residual and the mean of the last two, and what its gap will be at least.

        Descent swings around the optimum, and the swings of two residuals cancel in part.
        """
        point, ratios = self.past[-1]
        if len(self.past) > 1:
            both = zip(*(one.ratios for one in self.past), strict=True)
            means = [(before + after) / 2 for before, after in both]
            if self._largest(means) < self.ratio:
                point, ratios = (self.past[0].residual + point) / 2, means
        return point, self._local_gap(objective, point, ratios, tol, mapper)

    def _local_gap(self, objective: float, point: NDArray, ratios: list[NDArray], tol: float, mapper: Mapper) -> float:
        """What `dual.local_gap` finds if no other code violates."""
        gap = self.worth.gap(objective, point, self._largest(ratios))
        if gap > _PROMISING * tol:
            return gap
        geometry, best, winner = self.state.problem.geometry, np.empty_like(self.best), np.empty_like(self.winner)
        allowed = best.dtype.type(1 + ALLOWED * tol)
        for _ in range(SHRINKS):
            if gap <= tol:
                break
            self._keep_violators(ratios, best, winner)
            point = shrunk(geometry, point, best / allowed)
            ratios = self._ratios(geometry.spread(point.astype(best.dtype)), mapper)
            gap = min(gap, self.worth.gap(objective, point, self._largest(ratios)))
        return gap

    def _ratios(self, flat: NDArray, mapper: Mapper) -> list[NDArray]:
        """The ratios of the noted codes, piece by piece, with their signs."""
        layout, factors = self.state.problem.operator.layout, self.state.per_penalty

        def work(notes: _Notes) -> NDArray:
            ratios = np.empty(len(notes.bases), flat.dtype)
            noting.correlate_notes(layout, flat, notes.bases, notes.bounds, factors, ratios)
            return ratios

        return list(mapper(work, self.pieces))

    def _largest(self, ratios: list[NDArray]) -> float:
        signed = self.state.problem.nonnegative
        return max(float(np.max(some if signed else np.abs(some), initial=0)) for some in ratios)

    def _keep_violators(self, ratios: list[NDArray], best: NDArray, winner: NDArray) -> None:
        best[:] = 0
        signed = self.state.problem.nonnegative
        for notes, some in zip(self.pieces, ratios, strict=True):
            noting.keep_violators(notes.positions, notes.filters, some, signed, best, winner)

    def _narrow(self, floor: float) -> None:
        """Forget the codes whose ratios are not above `floor`."""
        self.floor = floor
        kept = [np.abs(some) > floor for some in self.past[-1].ratios]
        pairs = zip(self.pieces, kept, strict=True)
        self.pieces = [_chosen(notes, some) for notes, some in pairs]
        for past in self.past:
            past.ratios[:] = [ratios[some] for ratios, some in zip(past.ratios, kept, strict=True)]


def can_note(state: DescentState, violation: float) -> bool:
    """Whether a scan should note codes, after a look whose largest ratio exceeded one by `violation`."""
    layout = state.problem.operator.layout
    simple = state.can_screen and state.per_penalty.shape[1] == 1 and layout.row_length >= width_of(layout.block_lanes)
    return simple and violation <= _WIDEST and scan_size(state) >= _WORTH_NOTING


def scan_noting(
    state: DescentState,
    worth: Worth,
    residual: NDArray,
    violation: float,
    best: NDArray,
    winner: NDArray,
    mapper: Mapper,
) -> NearCodes | None:
    """Scan all codes as `DescentState.scan` does, and note those that may violate soon, unless they are too many.

    `violation` is that of the last look: the next ones are expected to be less.
    """
    floor, problem, layout = 1 - min(_EXPECTED * violation, _FAR), state.problem, state.problem.operator.layout
    best[:] = 0

    def work(rows: tuple[int, int]) -> NDArray | None:
        notes = np.empty(NOTES_A_POSITION * (rows[1] - rows[0]) * layout.row_length, np.int64)
        count = np.zeros(1, np.int64)
        limit = best.dtype.type(floor)
        noting.note(layout, residual, *rows, state.per_penalty, problem.nonnegative, best, winner, limit, notes, count)
        return notes[: count[0]].copy() if count[0] <= len(notes) else None

    pieces = list(mapper(work, state.row_chunks))
    noted = [piece for piece in pieces if piece is not None]
    # What moves in the next round is as large as the violations now.
    if len(noted) < len(pieces) or _EXPECTED * (float(np.max(best)) - 1) > 1 - floor:
        return None
    return NearCodes(state, worth, noted, floor)


def _sorted(state: DescentState, codes: NDArray) -> _Notes:
    filters, bounds = np.empty(len(codes), np.int32), np.zeros(state.problem.n_filters + 1, np.int64)
    notes = _Notes(np.empty_like(codes), np.empty_like(codes), filters, bounds)
    noting.sort_notes(state.problem.operator.layout, codes, notes.positions, notes.bases, filters, bounds)
    return notes


def _chosen(notes: _Notes, kept: NDArray) -> _Notes:
    filters = notes.filters[kept]
    bounds = np.searchsorted(filters, np.arange(len(notes.bounds)))
    return _Notes(notes.positions[kept], notes.bases[kept], filters, bounds)
