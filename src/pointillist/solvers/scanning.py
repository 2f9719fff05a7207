"""Scans: for every position the filter with the largest |Dᵀr| / λ, bounds on how that changes, and the codes that come near.

Few filters are correlated by sums over their samples, large ones by transforms, and sampled codes one by one or
in blocks. Which way takes less is decided by counts alone.

Between two scans of all codes violators are looked for among those that nearly violated in the last one (`NearViolators`).
What these tell is no bound, since others may violate by now. It says where to descend, and when a scan of all codes and a
certificate are worth their time.
"""

from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import scan as kernels
from pointillist.kernels.convolution import whole_blocks
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
    near_expected: float = 0.7
    """Ratios of near violators go this share of the last violation below one."""
    near_help: int = 2**22
    """Products of near violators from which on threads share them: for fewer, waking threads takes longer than the work."""


TUNING = Tuning()


class DescentState:
    """A problem with what its scans and descents share.

    Attributes
    ----------
    is_whole : bool
        All codes are scanned: where so many are sampled that this is faster, the others are masked.
    factors : (n_filters padded to whole blocks, 1 or n_positions) array
        1/λ, zero for what is padded or masked.
    transforms : FourierScan or None
        The scan by transforms where that takes fewer operations.
    can_screen : bool
        Some positions can be scanned alone, for less than all of them take.
    can_list : bool
        Near violators are worth being listed.
    scan_size : int
        Products that a scan takes.
    row_chunks : list of (int, int)
        Grid rows in equal chunks of a fixed amount of work, an even number of them, whatever the number of threads.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, drawn, is_worth = problem, problem.drawn, is_worth_transforms(problem)
        n_codes, n_positions = problem.operator.n_codes, problem.geometry.n_positions
        self.is_whole = drawn is None or len(drawn) > TUNING.dense * n_codes
        if drawn is not None and drawn.blocks is not None and not is_worth:
            self.is_whole = False  # what was drawn together takes its share of the time
        masked = self.is_whole and drawn is not None
        n_factors = n_positions if masked else problem.penalty.shape[1]
        self.factors = np.zeros((whole_blocks(problem.n_filters), n_factors), problem.filters.dtype)
        if masked:
            self.factors.reshape(-1)[problem.sample] = 1 / problem.penalty_at(problem.sample)
        else:
            self.factors[: problem.n_filters] = 1 / problem.penalty
        self.transforms = FourierScan(problem, self.factors) if self.is_whole and is_worth else None
        share = 1.0 if drawn is None or self.is_whole else max(len(drawn), 1) / n_codes
        self.scan_size = int(share * problem.filters.size * n_positions)
        layout = problem.operator.layout
        self.is_narrow = layout.row_length < width_of(layout.block_lanes)  # rows of the grid are shorter than a vector
        self.can_screen = drawn is None and self.transforms is None
        self.can_list = self.can_screen and not self.is_narrow and self.scan_size >= TUNING.near_products
        rows = len(layout.row_bases)
        pairs = ceil(max(self.scan_size // problem.filters.size, 1) / (2 * TUNING.chunk_positions))
        step = ceil(rows / (2 * pairs))
        self.row_chunks = [(first, min(first + step, rows)) for first in range(0, rows, step)]

    def rises(self, geometry: Geometry, change: NDArray) -> NDArray:
        """Most that a change of a padded residual can raise |Dᵀr| / λ by, at every position of a geometry, flat.

        A correlation changes by at most ‖d‖ times the change of the residual in its box.
        """
        rise = box_sums(geometry, change**2)
        # Running sums are off by some ε of the largest, up or down; the bound must not be too small.
        np.sqrt(np.maximum(rise, 0, out=rise) + 1e-12 * np.max(rise), out=rise)
        rise *= rise.dtype.type(1.0001 * self.problem.largest_norm / self.problem.smallest_penalty)
        return rise.reshape(-1)

    def rounding(self, geometry: Geometry, residual: NDArray) -> float:
        """A bound of what rounding can take from max |Dᵀr| / λ in a scan of a flat padded residual.

        Each correlation is a sum of n products, off by n ε ‖d‖ ‖r‖ at most, where r is what lies in its filter's box.
        """
        if self.transforms is not None:
            norm = float(np.sqrt(np.sum(residual.astype(np.float64) ** 2)))
            return self.transforms.rounding_of_one * norm / self.problem.smallest_penalty
        unit = float(np.finfo(residual.dtype).eps) / 2
        largest = float(np.sqrt(np.max(box_sums(geometry, residual**2))))
        terms = self.problem.filters[0].size + 2
        return terms * unit * self.problem.largest_norm * largest / self.problem.smallest_penalty

    def scan(
        self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper, positions: NDArray | None = None
    ) -> NDArray | slice:
        """For every position the largest |Dᵀr| / λ over the (sampled) filters, and which filter it was.

        Some ascending `positions` are scanned alone where that is faster, and what was found at the others stays. Returns
        those that were scanned.
        """
        problem, drawn = self.problem, self.problem.drawn
        if not self.can_screen or (positions is not None and len(positions) >= TUNING.scattered * len(best)):
            positions = None
        scanned = slice(None) if positions is None else positions
        best[scanned] = 0
        if self.transforms is not None:
            self.transforms.scan(residual, best, winner, mapper)
        elif not self.is_whole and drawn is not None and drawn.blocks is None:
            self.scan_codes(residual, drawn.indices, best, winner)
        elif self.is_whole and positions is None and not self.is_narrow:
            self.scan_rows(residual, best, winner, mapper)
        else:  # some positions of each block of filters
            if positions is None:
                positions = np.arange(len(best))
            spans = [(0, len(positions))] * (len(self.factors) // FILTERS_A_BLOCK)
            if not self.is_whole and drawn is not None and drawn.blocks is not None:
                *ends, positions = drawn.blocks
                spans = list(zip(*ends, strict=True))
            edges = problem.geometry.grid[-1] * np.array([0, *(last for _, last in self.row_chunks)])
            bounds = np.array([first + np.searchsorted(positions[first:last], edges) for first, last in spans])

            def work(n: int, positions: NDArray = positions) -> None:
                kernels.scan_positions(
                    problem.operator.layout, problem.operator.pairs, residual, positions, bounds[:, n].copy(),
                    bounds[:, n + 1].copy(), self.factors, problem.nonnegative, best, winner,
                )  # fmt: skip

            list(mapper(work, range(len(self.row_chunks))))
        return scanned

    def scan_codes(self, residual: NDArray, codes: NDArray, best: NDArray, winner: NDArray) -> NDArray:
        """Scan some codes, given in ascending order, and merge what is found into an earlier scan; returns Dᵀr / λ."""
        layout, ratios = self.problem.operator.layout, np.empty(len(codes), residual.dtype)
        kernels.scan_codes(layout, residual, codes, self.factors, self.problem.nonnegative, best, winner, ratios)
        return ratios

    def scan_rows(
        self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper, floor: float | None = None
    ) -> list[NDArray | None]:
        """Scan all codes; lists those whose ratios exceed a floor, chunk by chunk, or None where they are too many."""
        layout = self.problem.operator.layout

        def work(rows: tuple[int, int]) -> NDArray | None:
            room = 0 if floor is None else 2 * TUNING.near_a_position * (rows[1] - rows[0]) * layout.row_length
            near, count = np.empty(room, np.int64), np.zeros(1, np.int64)
            listed = None if floor is None else (best.dtype.type(floor), near, count)
            kernels.scan(layout, residual, *rows, self.factors, self.problem.nonnegative, best, winner, listed)
            return np.sort(near[: count[0]]) if count[0] <= room else None

        return list(mapper(work, self.row_chunks))

    def scan_for_near(
        self, residual: NDArray, violation: float, best: NDArray, winner: NDArray, mapper: Mapper
    ) -> "NearViolators | None":
        """Scan all codes as `scan` does, and list those that may violate soon; None where they are too many.

        `violation` is that of the last scan: the next ones are expected to be less.
        """
        floor = 1 - TUNING.near_expected * violation
        best[:] = 0
        found = self.scan_rows(residual, best, winner, mapper, floor)
        pieces = [piece for piece in found if piece is not None]
        if len(pieces) < len(found) or sum(map(len, pieces)) > TUNING.near_a_position * len(best):
            return None
        # What moves in the next round is as large as the violations now.
        if TUNING.near_expected * (float(np.max(best)) - 1) > 1 - floor:
            return None
        return NearViolators(self, pieces, mapper)


class NearViolators:
    """The codes whose ratios exceeded some floor in a scan, in pieces with positions of their own, and what became of them.

    `best` and `winner` have, for each position, the largest ratio of the last look and its filter.
    """

    def __init__(self, state: DescentState, pieces: list[NDArray], mapper: Mapper) -> None:
        self.state, self.pieces = state, pieces
        products = sum(map(len, pieces)) * state.problem.filters[0].size
        self.mapper = mapper if products >= TUNING.near_help else map
        self.best = np.zeros(state.problem.geometry.n_positions, state.factors.dtype)
        self.winner = np.zeros(len(self.best), np.int32)
        self._ratios: list[NDArray] = []  # of the codes in the last look, piece by piece, with their signs

    def look(self, flat: NDArray) -> float:
        """Find the violators of a residual, flat and padded, among these codes; returns the largest ratio."""
        self.best[:] = 0
        look = lambda codes: self.state.scan_codes(flat, codes, self.best, self.winner)  # noqa: E731
        self._ratios = list(self.mapper(look, self.pieces))
        return float(np.max(self.best))

    def above(self, floor: float) -> NDArray:
        """The codes whose ratios exceeded `floor` in the last look."""
        found = [codes[np.abs(some) > floor] for codes, some in zip(self.pieces, self._ratios, strict=True)]
        return np.concatenate(found)


def box_sums(geometry: Geometry, flat: NDArray) -> NDArray:
    """Sums of a padded signal over the box of every grid position, over all channels, in its own precision."""
    sums = flat[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
    sums = sums[0] if geometry.channels == 1 else sums.sum(axis=0)
    for axis, (width, length) in enumerate(zip(geometry.filter, geometry.grid, strict=True)):
        before, after = sums.shape[:axis], sums.shape[axis + 1 :]
        out = np.empty((prod(before), length, prod(after)), flat.dtype)
        kernels.window_sums(sums.reshape(len(out), -1, prod(after)), width, np.empty(prod(after)), out)
        sums = out.reshape(*before, length, *after)
    return sums
