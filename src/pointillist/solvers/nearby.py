"""Codes that nearly violate: between two scans of all codes, violators are looked for among these alone.

What they tell is no bound, since others may violate by now. It says where to descend, and when a scan of all codes and a
certificate are worth their time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import noting
from pointillist.kernels.vectors import width_of
from pointillist.parallel import Mapper
from pointillist.solvers.scanning import DescentState, scan_size

_WORTH_NOTING = 2**23
"""Products of a scan from which on noting codes saves more than it takes."""
_WORTH_THREADS = 2**22
"""Products of all noted codes from which on threads share them: for fewer, waking threads takes longer than the work."""
NOTES_A_POSITION = 6
"""Codes are noted where they are at most so many for each position; then looking at them takes a fraction of a scan."""
_CROWDED = 2
"""Chunks of rows may have so many times as many."""
_WIDEST = 0.4
"""Codes are noted when the largest violation of the last look was at most this."""
_EXPECTED, _FAR = 0.7, 0.3
"""How far below one the ratios of noted codes go: this share of the last violation, but not further than that."""
_NARROWED, _NARROWEST = 3.0, 0.05
"""Codes stay noted while their ratios are less than so many violations below one, or less than that."""


class _Notes(NamedTuple):
    """Noted codes of some rows of the grid, sorted by their filters."""

    positions: NDArray
    bases: NDArray  # where their boxes begin in the padded signal
    filters: NDArray
    bounds: NDArray  # (n_filters + 1,) where those of each filter begin


class NearCodes:
    """The codes whose ratios exceeded `floor` in a scan of signal i, and what has become of them.

    `best` and `winner` have, for each position, the largest ratio above one of the last look and its filter.
    """

    def __init__(self, state: DescentState, pieces: list[NDArray], floor: float, mapper: Mapper) -> None:
        self.state, self.floor, self.mapper = state, floor, mapper
        self.pieces: list[_Notes] = self._shared(lambda codes: _sorted(state, codes), pieces, sum(map(len, pieces)))
        self.best = np.zeros(state.problem.geometry.n_positions, state.per_penalty.dtype)
        self.winner = np.zeros(len(self.best), np.int32)
        self.ratio = np.inf  # the largest of the last look
        self.ratios: list[NDArray] = []  # of the noted codes in the last look, piece by piece, with their signs

    def look(self, flat: NDArray) -> float:
        """Find the violators of a residual, flat and padded, among the noted codes; returns the largest ratio."""
        layout, factors = self.state.problem.operator.layout, self.state.per_penalty
        signed = self.state.problem.nonnegative
        self.best[:] = 0

        def work(notes: _Notes) -> tuple[NDArray, float]:
            ratios = np.empty(len(notes.bases), flat.dtype)
            noting.correlate_notes(layout, flat, notes.bases, notes.bounds, factors, ratios)
            # Pieces have rows of the grid of their own.
            noting.keep_violators(notes.positions, notes.filters, ratios, signed, self.best, self.winner)
            return ratios, float(np.max(ratios if signed else np.abs(ratios), initial=0))

        found = self._shared(work, self.pieces, self._count)
        self.ratios, self.ratio = [ratios for ratios, _ in found], max(largest for _, largest in found)
        enough = max(_NARROWED * (self.ratio - 1), _NARROWEST)
        if enough < _EXPECTED * (1 - self.floor):
            self._narrow(1 - enough)
        return self.ratio

    def above(self, floor: float) -> NDArray:
        """The noted codes whose ratios exceeded `floor` in the last look."""
        n_positions = self.state.problem.geometry.n_positions
        kept = [np.flatnonzero(np.abs(some) > floor) for some in self.ratios]
        pairs = zip(self.pieces, kept, strict=True)
        return np.concatenate(
            [notes.filters[some].astype(np.int64) * n_positions + notes.positions[some] for notes, some in pairs]
        )

    def merged(self, best: NDArray, winner: NDArray) -> tuple[NDArray, NDArray]:
        """The larger ratio of each position, of the last look or of a scan, and its filter."""
        return np.maximum(self.best, best), np.where(self.best > best, self.winner, winner)

    def _narrow(self, floor: float) -> None:
        """Forget the codes whose ratios are not above `floor`."""
        self.floor = floor

        def work(piece: tuple[_Notes, NDArray]) -> tuple[_Notes, NDArray]:
            notes, ratios = piece
            kept = np.flatnonzero(np.abs(ratios) > floor)
            return _chosen(notes, kept), ratios[kept]

        found = self._shared(work, list(zip(self.pieces, self.ratios, strict=True)), self._count)
        self.pieces, self.ratios = [notes for notes, _ in found], [ratios for _, ratios in found]

    @property
    def _count(self) -> int:
        return sum(len(notes.bases) for notes in self.pieces)

    def _shared(self, work: Callable[[Any], Any], items: Sequence[Any], n_codes: int) -> list[Any]:
        """What some work makes of items with so many codes; threads share it where there is enough of it."""
        products = n_codes * self.state.problem.filters[0].size
        return list((self.mapper if products >= _WORTH_THREADS else map)(work, items))


def can_note(state: DescentState, violation: float) -> bool:
    """Whether a scan should note codes, after a look whose largest ratio exceeded one by `violation`."""
    layout = state.problem.operator.layout
    simple = state.can_screen and state.per_penalty.shape[1] == 1 and layout.row_length >= width_of(layout.block_lanes)
    return simple and violation <= _WIDEST and scan_size(state) >= _WORTH_NOTING


def scan_noting(
    state: DescentState,
    residual: NDArray,
    violation: float,
    best: NDArray,
    winner: NDArray,
    mapper: Mapper,
) -> NearCodes | None:
    """Scan all codes as `DescentState.scan` does, and note those that may violate soon, unless they are too many.

    `violation` is that of the last look: the next ones are expected to be less.
    """
    floor = 1 - min(_EXPECTED * violation, _FAR)
    pieces = _noted(state, residual, floor, best, winner, mapper)
    # What moves in the next round is as large as the violations now.
    if pieces is None or _EXPECTED * (float(np.max(best)) - 1) > 1 - floor:
        return None
    return NearCodes(state, pieces, floor, mapper)


def scan_exactly(
    state: DescentState,
    point: NDArray,
    flat: NDArray,
    rounding: float,
    best: NDArray,
    winner: NDArray,
    mapper: Mapper,
) -> float:
    """Scan all codes as `DescentState.scan` does, and bound the largest ratio by one or by what it is in double precision.

    The ratios that the scan finds of a dual point, `flat` and padded, are off by `rounding` at most. Codes that it finds
    further below one do not violate; all others are correlated once more with the `point` (channels, *space) itself, in
    float64. Only where these are too many, rounding is counted in.
    """
    problem, geometry, epsilon = state.problem, state.problem.geometry, float(np.finfo(best.dtype).eps)
    pieces = _noted(state, flat, 1 - rounding - epsilon, best, winner, mapper)
    if pieces is None:
        return float(np.max(best)) + rounding
    precise, operator = geometry.spread(point), problem.exact_operator

    def work(codes: NDArray) -> float:
        ratios = operator.correlate_padded(precise, codes) / problem.penalty_at(codes)
        return float(np.max(ratios if problem.nonnegative else np.abs(ratios), initial=0))

    return max(1.0, max(mapper(work, pieces))) + rounding * float(np.finfo(np.float64).eps) / epsilon


def _noted(
    state: DescentState, residual: NDArray, floor: float, best: NDArray, winner: NDArray, mapper: Mapper
) -> list[NDArray] | None:
    """Scan all codes and list those whose ratios exceed `floor`, for each chunk of rows; None where they are too many."""
    problem, layout, limit = state.problem, state.problem.operator.layout, best.dtype.type(floor)
    best[:] = 0

    def work(rows: tuple[int, int]) -> NDArray | None:
        notes = np.empty(_CROWDED * NOTES_A_POSITION * (rows[1] - rows[0]) * layout.row_length, np.int64)
        count = np.zeros(1, np.int64)
        noting.note(layout, residual, *rows, state.per_penalty, problem.nonnegative, best, winner, limit, notes, count)
        return notes[: count[0]].copy() if count[0] <= len(notes) else None

    pieces = list(mapper(work, state.row_chunks))
    noted = [piece for piece in pieces if piece is not None]
    few = len(noted) == len(pieces) and sum(map(len, noted)) <= NOTES_A_POSITION * len(best)
    return noted if few else None


def _sorted(state: DescentState, codes: NDArray) -> _Notes:
    filters, bounds = np.empty(len(codes), np.int32), np.zeros(state.problem.n_filters + 1, np.int64)
    notes = _Notes(np.empty_like(codes), np.empty_like(codes), filters, bounds)
    noting.sort_notes(state.problem.operator.layout, codes, notes.positions, notes.bases, filters, bounds)
    return notes


def _chosen(notes: _Notes, kept: NDArray) -> _Notes:
    filters = notes.filters[kept]
    bounds = np.searchsorted(filters, np.arange(len(notes.bounds)))
    return _Notes(notes.positions[kept], notes.bases[kept], filters, bounds)
