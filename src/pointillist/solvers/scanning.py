"""Scans: for every position the filter with the largest |Dᵀr| / λ, bounds on how that changes, and the codes that come near.

Few filters are correlated by sums over their samples, large ones by transforms, and sampled codes one by one or
in blocks. Which way takes less is decided by counts alone.

Between two scans of all codes violators are looked for among those that nearly violated in the last one (`NearViolators`).
What these tell is no bound, since others may violate by now. It says where to descend, and when a scan of all codes and a
certificate are worth their time.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import scan as kernels
from pointillist.kernels.layout import whole_blocks
from pointillist.kernels.vectors import FILTERS_A_BLOCK, width_of
from pointillist.parallel import Mapper
from pointillist.problem import Geometry, Problem
from pointillist.solvers.fourier_scan import FourierScan, is_worth_transforms


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers that decide which codes are scanned, and how."""

    chunk_positions: int = 4096
    """Positions that a thread scans at a time."""
    dense: float = 0.25
    """Share of sampled codes from which on all codes are scanned faster, the others masked."""
    scattered: float = 0.6
    """Share of positions up to which these are scanned by themselves: they take 1.3 times as long each."""
    near_products: int = 2**23
    """Products of a scan from which on keeping near violators saves more than it takes (1.09 to 1.34)."""
    near_a_position: int = 6
    """Near violators are kept where they are at most so many for each position: looking at them is a fraction of a scan."""
    near_violation: float = 0.4
    """Largest violation of the last scan for which near violators are kept."""
    near_expected: float = 0.7
    """Ratios of near violators go this share of the last violation below one, …"""
    near_deepest: float = 0.3
    """… but no further than this."""
    near_help: int = 2**22
    """Products of near violators from which on threads share them: for fewer, waking threads takes longer than the work."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class DescentState:
    """A problem with what its scans and descents share."""

    problem: Problem

    @cached_property
    def is_whole(self) -> bool:
        """True if all codes are scanned: where so many are sampled that this is faster, the others are masked."""
        drawn = self.problem.drawn
        if drawn is None:
            return True
        if len(drawn) <= TUNING.dense * self.problem.operator.n_codes:
            return False
        # What was drawn together takes its share of the time, unless transforms scan all codes in less.
        return drawn.blocks is None or is_worth_transforms(self.problem)

    @cached_property
    def factors(self) -> NDArray:
        """1/λ as (n_filters padded to whole blocks, 1 or n_positions), zero for what is padded or masked."""
        problem, rows = self.problem, whole_blocks(self.problem.n_filters)
        if self.is_whole and problem.drawn is not None:
            out = np.zeros((rows, problem.geometry.n_positions), problem.filters.dtype)
            out.reshape(-1)[problem.sample] = 1 / problem.penalty_at(problem.sample)
        else:
            out = np.zeros((rows, problem.penalty.shape[1]), problem.filters.dtype)
            out[: problem.n_filters] = 1 / problem.penalty
        return out

    @property
    def can_screen(self) -> bool:
        """True if some positions can be scanned alone, for less than all of them take."""
        return self.problem.drawn is None and self.transforms is None

    @cached_property
    def transforms(self) -> FourierScan | None:
        """The scan by transforms where that takes fewer operations."""
        is_worth = self.is_whole and is_worth_transforms(self.problem)
        return FourierScan(self.problem) if is_worth else None

    @cached_property
    def scan_size(self) -> int:
        """Products that a scan takes."""
        problem = self.problem
        share = 1.0 if self.is_whole else max(len(problem.drawn or ()), 1) / problem.operator.n_codes
        return int(share * problem.filters.size * problem.geometry.n_positions)

    @cached_property
    def row_chunks(self) -> list[tuple[int, int]]:
        """Grid rows in equal chunks of a fixed amount of work, an even number of them, whatever the number of threads."""
        rows = prod(self.problem.geometry.grid[:-1])
        pairs = ceil(max(self.scan_size // self.problem.filters.size, 1) / (2 * TUNING.chunk_positions))
        step = ceil(rows / (2 * pairs))
        return [(first, min(first + step, rows)) for first in range(0, rows, step)]

    def rises(self, geometry: Geometry, change: NDArray) -> NDArray:
        """How much a change of a padded residual can raise |Dᵀr| / λ at most, at every position of a geometry.

        A correlation changes by at most ‖d‖ times the change of the residual in its box.
        """
        rise = box_sums(geometry, change**2)
        # Running sums are off by some ε of the largest, up or down; the bound must not be too small.
        np.sqrt(np.maximum(rise, 0, out=rise) + 1e-12 * np.max(rise), out=rise)
        rise *= rise.dtype.type(1.0001 * self.problem.largest_norm / self.problem.smallest_penalty)
        return rise

    def rounding(self, geometry: Geometry, residual: NDArray) -> float:
        """A bound of what rounding can take from max |Dᵀr| / λ in a scan of a flat padded residual.

        Each correlation is a sum of n products, off by n ε ‖d‖ ‖r‖ at most, where r is what lies in its filter's box.
        """
        if self.transforms is not None:
            return self.transforms.rounding(residual)
        unit = float(np.finfo(residual.dtype).eps) / 2
        largest = float(np.sqrt(np.max(box_sums(geometry, residual**2))))
        terms = self.problem.filters[0].size + 2
        return terms * unit * self.problem.largest_norm * largest / self.problem.smallest_penalty

    def scan(self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper) -> None:
        """For every position the largest |Dᵀr| / λ over the (sampled) filters, and which filter it was."""
        problem = self.problem
        best[:] = 0
        if not self.is_whole:
            self._scan_drawn(residual, best, winner, mapper)
        elif self.transforms is not None:
            self.transforms.scan(residual, self.factors, best, winner, mapper)
        elif self._is_narrow:
            self.scan_positions(residual, np.arange(len(best)), best, winner, mapper)
        else:
            layout = problem.operator.layout

            def work(rows: tuple[int, int]) -> None:
                kernels.scan(layout, residual, *rows, self.factors, problem.nonnegative, best, winner)

            # One thread has nothing to share out, and every call of a kernel takes its time.
            list(mapper(work, self.row_chunks if mapper is not map else [(0, len(layout.row_bases))]))

    @property
    def _is_narrow(self) -> bool:
        """True if a row of the grid is shorter than a vector."""
        layout = self.problem.operator.layout
        return layout.row_length < width_of(layout.block_lanes)

    def scan_positions(
        self, residual: NDArray, positions: NDArray, best: NDArray, winner: NDArray, mapper: Mapper
    ) -> None:
        """Scan some ascending positions only, as `scan` does; what was found at the others stays."""
        best[positions] = 0
        n_blocks, step = len(self.factors) // FILTERS_A_BLOCK, TUNING.chunk_positions // 4

        def work(some: NDArray) -> None:
            none = np.zeros(n_blocks, np.int64)
            self._scan_blocks(residual, some, none, none + len(some), best, winner)

        list(mapper(work, [positions[first : first + step] for first in range(0, len(positions), step)]))

    def _scan_blocks(
        self, residual: NDArray, positions: NDArray, firsts: NDArray, lasts: NDArray, best: NDArray, winner: NDArray
    ) -> None:
        operator, signed = self.problem.operator, self.problem.nonnegative
        kernels.scan_positions(
            operator.layout, operator.pairs, residual, positions, firsts, lasts, self.factors, signed, best, winner
        )

    def _scan_drawn(self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper) -> None:
        """Scan the codes that were drawn, one by one or the positions of each block of filters."""
        drawn = self.problem.drawn
        assert drawn is not None, "only a sample is scanned code by code"
        if drawn.blocks is None:
            self.scan_codes(residual, drawn.indices, best, winner)
            return
        firsts, lasts, chosen = drawn.blocks

        def work(spans: tuple[NDArray, NDArray]) -> None:
            self._scan_blocks(residual, chosen, *spans, best, winner)

        list(mapper(work, self.drawn_chunks if mapper is not map else [(firsts, lasts)]))

    @cached_property
    def drawn_chunks(self) -> list[tuple[NDArray, NDArray]]:
        """Bounds of the drawn positions of each block of filters that lie in each of `row_chunks`."""
        drawn, length = self.problem.drawn, self.problem.geometry.grid[-1]
        assert drawn is not None, "only a sample has chunks of its own"
        assert drawn.blocks is not None, "codes that are drawn one by one have no blocks"
        firsts, lasts, chosen = drawn.blocks
        edges = length * np.array([0, *(last for _, last in self.row_chunks)])
        bounds = np.array(
            [first + np.searchsorted(chosen[first:last], edges) for first, last in zip(firsts, lasts, strict=True)]
        )
        return [(bounds[:, n].copy(), bounds[:, n + 1].copy()) for n in range(len(edges) - 1)]

    def scan_codes(self, residual: NDArray, codes: NDArray, best: NDArray, winner: NDArray) -> NDArray:
        """Scan some codes, given in ascending order, and merge what is found into an earlier scan; returns Dᵀr / λ."""
        layout, ratios = self.problem.operator.layout, np.empty(len(codes), residual.dtype)
        kernels.scan_codes(layout, residual, codes, self.factors, self.problem.nonnegative, best, winner, ratios)
        return ratios

    def scan_for_near(
        self, residual: NDArray, violation: float, best: NDArray, winner: NDArray, mapper: Mapper
    ) -> "NearViolators | None":
        """Scan all codes as `scan` does, and list those that may violate soon; None where they are too many.

        `violation` is that of the last scan: the next ones are expected to be less.
        """
        layout, floor = self.problem.operator.layout, 1 - min(TUNING.near_expected * violation, TUNING.near_deepest)
        best[:] = 0

        def work(rows: tuple[int, int]) -> NDArray | None:
            near = np.empty(2 * TUNING.near_a_position * (rows[1] - rows[0]) * layout.row_length, np.int64)
            count, limit = np.zeros(1, np.int64), best.dtype.type(floor)
            found = limit, near, count
            kernels.scan(layout, residual, *rows, self.factors, self.problem.nonnegative, best, winner, found)
            return np.sort(near[: count[0]]) if count[0] <= len(near) else None

        pieces = list(mapper(work, self.row_chunks))
        listed = [piece for piece in pieces if piece is not None]
        if len(listed) < len(pieces) or sum(map(len, listed)) > TUNING.near_a_position * len(best):
            return None
        # What moves in the next round is as large as the violations now.
        if TUNING.near_expected * (float(np.max(best)) - 1) > 1 - floor:
            return None
        return NearViolators(self, listed, floor, mapper)

    def can_list_near(self, violation: float) -> bool:
        """True if a scan should list near violators, after one whose largest ratio exceeded one by `violation`."""
        is_usual = self.can_screen and not self._is_narrow
        return is_usual and violation <= TUNING.near_violation and self.scan_size >= TUNING.near_products


class NearViolators:
    """The codes whose ratios exceeded `floor` in a scan, in pieces with positions of their own, and what became of them.

    `best` and `winner` have, for each position, the largest ratio of the last look and its filter.
    """

    def __init__(self, state: DescentState, pieces: list[NDArray], floor: float, mapper: Mapper) -> None:
        self.state, self.pieces, self.floor, self.mapper = state, pieces, floor, mapper
        self.best = np.zeros(state.problem.geometry.n_positions, state.factors.dtype)
        self.winner = np.zeros(len(self.best), np.int32)
        self.ratio = np.inf  # the largest of the last look
        self._ratios: list[NDArray] = []  # of the codes in the last look, piece by piece, with their signs

    def look(self, flat: NDArray) -> float:
        """Find the violators of a residual, flat and padded, among these codes; returns the largest ratio."""
        self.best[:] = 0
        products = sum(map(len, self.pieces)) * self.state.problem.filters[0].size
        mapper = self.mapper if products >= TUNING.near_help else map
        self._ratios = list(
            mapper(lambda codes: self.state.scan_codes(flat, codes, self.best, self.winner), self.pieces)
        )
        self.ratio = float(np.max(self.best))
        enough = max(3 * (self.ratio - 1), 0.05)
        if enough < TUNING.near_expected * (1 - self.floor):  # forget those far below one
            self.floor = 1 - enough
            kept = [np.flatnonzero(np.abs(ratios) > self.floor) for ratios in self._ratios]
            self.pieces, self._ratios = (
                [array[some] for array, some in zip(arrays, kept, strict=True)]
                for arrays in (self.pieces, self._ratios)
            )
        return self.ratio

    def above(self, floor: float) -> NDArray:
        """The codes whose ratios exceeded `floor` in the last look."""
        found = [codes[np.abs(some) > floor] for codes, some in zip(self.pieces, self._ratios, strict=True)]
        return np.concatenate(found)


def are_few(positions: NDArray, every: NDArray) -> bool:
    """True if some positions are scanned faster by themselves than with all others."""
    return len(positions) < TUNING.scattered * len(every)


def box_sums(geometry: Geometry, flat: NDArray) -> NDArray:
    """Sums of a padded signal over the box of every grid position, over all channels, in its own precision."""
    sums = flat[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
    sums = sums[0] if geometry.channels == 1 else sums.sum(axis=0)
    for axis, (width, length) in enumerate(zip(geometry.filter, geometry.grid, strict=True)):
        before, after = sums.shape[:axis], sums.shape[axis + 1 :]
        out = np.empty((prod(before), length, prod(after)), flat.dtype)
        kernels.window_sums(sums.reshape(len(out), -1, prod(after)), width, out)
        sums = out.reshape(*before, length, *after)
    return sums
