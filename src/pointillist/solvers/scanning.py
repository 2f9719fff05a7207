"""Finding the codes worth descending on: the correlations of a residual with every filter, and bounds on how they change."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import descent
from pointillist.kernels.layout import whole_blocks
from pointillist.parallel import Mapper
from pointillist.problem import Geometry, Problem, inner
from pointillist.sampling import Sample
from pointillist.solvers.products import overlap_table
from pointillist.solvers.separable import SeparableScan
from pointillist.solvers.staging import Field, field_of
from pointillist.solvers.transforms import Transforms, transforms_are_worth


@dataclass(frozen=True, eq=False)
class DescentState:
    """A problem with what its scans and descents share."""

    problem: Problem

    @cached_property
    def field(self) -> Field:
        """What tells descents where codes lie: it is the same for all signals."""
        return field_of(self.problem.geometry, self.problem.operator.layout)

    @cached_property
    def per_penalty(self) -> NDArray:
        """1/λ as (n_filters padded to whole blocks, 1 or n_positions), zero for the padding."""
        problem = self.problem
        out = np.zeros((whole_blocks(problem.n_filters), problem.penalty.shape[1]), problem.filters.dtype)
        out[: problem.n_filters] = 1 / problem.penalty
        return out

    @cached_property
    def is_dense(self) -> bool:
        """Whether so many codes are sampled that all of them are scanned faster, the others masked."""
        drawn = self.problem.drawn
        if drawn is None or len(drawn) <= _DENSE * self.problem.operator.n_codes:
            return False
        # What was drawn together takes its share of the time, unless transforms scan all codes in less.
        return drawn.blocks is None or transforms_are_worth(self.problem)

    @cached_property
    def masked(self) -> NDArray:
        """1/λ as (n_filters padded to whole blocks, n_positions), zero outside the sample."""
        problem = self.problem
        out = np.zeros((len(self.per_penalty), problem.geometry.n_positions), problem.filters.dtype)
        out.reshape(-1)[problem.sample] = 1 / problem.penalty_at(problem.sample)
        return out

    @property
    def can_screen(self) -> bool:
        """Whether some positions can be scanned alone, for less than all of them take."""
        return self.problem.drawn is None and self.separable is None and self.transforms is None

    @cached_property
    def separable(self) -> SeparableScan | None:
        """The scan of mixed channels where the filters allow it and it takes fewer operations; None where it does not."""
        if self.problem.drawn is not None and not self.is_dense:
            return None
        return SeparableScan.of(self.problem)

    @cached_property
    def followed(self) -> SeparableScan | None:
        """The scan of one-dimensional signals whose correlations can be followed; None where there is none."""
        return SeparableScan.plain(self.problem) if self.problem.geometry.channels == 1 else self.separable

    @cached_property
    def transforms(self) -> Transforms | None:
        """The scan by transforms where that takes fewer operations; None where it does not."""
        if (self.problem.drawn is not None and not self.is_dense) or self.separable is not None:
            return None
        return Transforms(self.problem) if transforms_are_worth(self.problem) else None

    @cached_property
    def overlaps(self) -> NDArray:
        """Inner products of the filters at all shifts, for signals of one dimension."""
        return overlap_table(self.problem.filters) if self.separable is None else self.separable.overlaps.table

    def rises(self, geometry: Geometry, change: NDArray, *, rough: bool = False) -> NDArray:
        """How much a change of a padded residual can raise |Dᵀr| / λ at most, at every position of a geometry.

        With `rough` it is one bound for all positions, looser and in less time.
        """
        rise = np.array([inner(change, change)]) if rough else box_sums(geometry, change**2)
        # Running sums are off by some ε of the largest, up or down; the bound must not be too small.
        np.sqrt(np.maximum(rise, 0, out=rise) + _RUNNING * np.max(rise), out=rise)
        rise *= rise.dtype.type(1.0001 * self.problem.largest_norm / self.problem.smallest_penalty)
        return rise

    @cached_property
    def row_chunks(self) -> list[tuple[int, int]]:
        """Grid rows in equal chunks of a fixed amount of work, an even number of them, whatever the number of threads."""
        rows = prod(self.problem.geometry.grid[:-1])
        pairs = max(1, ceil(_scanned_share(self) * self.problem.geometry.n_positions / (2 * _CHUNK_POSITIONS)))
        step = ceil(rows / (2 * pairs))
        return [(first, min(first + step, rows)) for first in range(0, rows, step)]

    def scan(self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper, *, coarse: bool = False) -> None:
        """For every position the largest |Dᵀr| / λ over the (sampled) filters, and which filter it was.

        A coarse scan may round more, as `rounding` tells, and takes less time.
        """
        problem = self.problem
        best[:] = 0
        if problem.drawn is not None and not self.is_dense:
            _scan_drawn(self, residual, problem.drawn, best, winner, mapper)
            return
        factors = self.per_penalty if problem.drawn is None else self.masked
        if self.separable is not None:
            self.separable.scan(residual, self.row_chunks, factors, best, winner, mapper)
            return
        if self.transforms is not None:
            self.transforms.scan(residual, factors, best, winner, mapper, coarse=coarse)
            return

        layout = problem.operator.layout

        def work(rows: tuple[int, int]) -> None:
            descent.scan(layout, residual, *rows, factors, problem.nonnegative, best, winner)

        # One thread has nothing to share out, and every call of a kernel takes its time.
        list(mapper(work, self.row_chunks if mapper is not map else [(0, len(layout.row_bases))]))

    def rounding(self, geometry: Geometry, residual: NDArray, *, rough: bool = False, coarse: bool = False) -> float:
        """A bound of what rounding can take from max |Dᵀr| / λ in a scan of a flat padded residual.

        Each correlation is a sum of n products, off by n ε ‖d‖ ‖r‖ at most, where r is what lies in its filter's box. With
        `rough` it is the whole residual, for a looser bound in less time; `coarse` is what `scan` is told.
        """
        if self.transforms is not None:
            return self.transforms.rounding(residual, coarse=coarse)
        largest = np.sqrt(inner(residual, residual) if rough else np.max(box_sums(geometry, residual**2)))
        terms = self.problem.filters[0].size + 2 if self.separable is None else self.separable.terms
        return scan_rounding(self.problem, terms, float(largest), residual.dtype)

    def scan_positions(
        self, residual: NDArray, positions: NDArray, best: NDArray, winner: NDArray, mapper: Mapper
    ) -> None:
        """Scan some positions only, as `scan` does; what was found at the others stays."""
        layout, pairs = self.problem.operator.layout, self.problem.operator.pairs
        signed = self.problem.nonnegative

        def work(some: NDArray) -> None:
            descent.scan_positions(layout, pairs, residual, some, self.per_penalty, signed, best, winner)

        pieces = range(0, len(positions), _CHUNK_POSITIONS // 4)
        list(mapper(work, [positions[first : first + _CHUNK_POSITIONS // 4] for first in pieces]))

    def scan_codes(self, residual: NDArray, codes: NDArray, best: NDArray, winner: NDArray) -> None:
        """Scan some codes, given in ascending order, and merge what is found into the earlier scan."""
        layout = self.problem.operator.layout
        descent.scan_sample(layout, residual, codes, self.per_penalty, self.problem.nonnegative, best, winner)


def _scan_drawn(
    state: DescentState, residual: NDArray, drawn: Sample, best: NDArray, winner: NDArray, mapper: Mapper
) -> None:
    """Scan the codes that were drawn, one by one or the positions of each block of filters."""
    blocks, signed = drawn.blocks, state.problem.nonnegative
    if blocks is None:
        state.scan_codes(residual, drawn.indices, best, winner)
        return
    layout, pairs = state.problem.operator.layout, state.problem.operator.pairs

    def work(rows: tuple[int, int]) -> None:
        descent.scan_blocks(layout, pairs, residual, *rows, *blocks, state.per_penalty, signed, best, winner)

    list(mapper(work, state.row_chunks))  # the same for any mapper: which neighbours are scanned together depends on it


def _scanned_share(state: DescentState) -> float:
    """The share of all codes that is scanned."""
    drawn = state.problem.drawn
    if drawn is None or state.is_dense:
        return 1.0
    return max(len(drawn), 1) / state.problem.operator.n_codes


def scan_size(state: DescentState) -> int:
    """Products that a scan takes."""
    return int(_scanned_share(state) * state.problem.filters.size * state.problem.geometry.n_positions)


def scan_rounding(problem: Problem, terms: float, largest: float, dtype: np.dtype) -> float:
    """The bound of `DescentState.rounding` for sums of so many terms, from the largest norm of what a filter meets."""
    unit = float(np.finfo(dtype).eps) / 2
    return terms * unit * problem.largest_norm * largest / problem.smallest_penalty


_CHUNK_POSITIONS = 4096
_DENSE = 0.25
_RUNNING = 1e-12


def box_sums(geometry: Geometry, flat: NDArray) -> NDArray:
    """Sums of a padded signal over the box of every grid position, over all channels, in its own precision."""
    sums = flat[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
    sums = sums[0] if geometry.channels == 1 else sums.sum(axis=0)
    for axis, width in enumerate(geometry.filter):
        before, after = sums.shape[:axis], sums.shape[axis + 1 :]
        out = np.empty((*before, geometry.grid[axis], *after), flat.dtype)
        descent.window_sums(
            sums.reshape(prod(before), -1, prod(after)), width, out.reshape(prod(before), -1, prod(after))
        )
        sums = out
    return sums


def clean_positions(geometry: Geometry, padded_weights: NDArray | None) -> NDArray:
    """Which positions have a box whose samples all have weight one; without weights, whose box leaves no signal."""
    if padded_weights is not None:
        return box_sums(geometry, (padded_weights != 1).astype(np.float32)).ravel() == 0
    clean = np.ones((), bool)
    for n, side, offset, length in zip(geometry.signal, geometry.filter, geometry.offset, geometry.grid, strict=True):
        begin = np.arange(length)
        inside = (begin >= offset) & (begin + side <= offset + n) | (geometry.boundary == "circular")
        clean = clean[..., None] & inside
    return clean.ravel()
