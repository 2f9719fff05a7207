"""Descent that keeps the correlations of the residual with all filters up to date, for signals of one dimension.

A round of coordinate descent computes the residual, scans it and descends on the best violators. Here many such rounds are
made on the correlations of one scan: the inner products of the filters say how they change. What rounding does to them
meanwhile is bounded. Where that is little beside the tolerance they certify the codes, and there is no other scan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.correlated import follow_down, leave
from pointillist.problem import Problem, inner, relative_gap
from pointillist.solvers import products
from pointillist.solvers.coordinate_descent import HostWorkingSet, RoundReport
from pointillist.solvers.scanning import scan_rounding
from pointillist.solvers.separable import SeparableScan

_MOST_CORRELATIONS, _MOST_PAIRS = 2**23, 2**22
"""Correlations of all filters at all positions, and inner products of filters, that are kept at most."""
_MOST_PRODUCTS = 2**17
"""Inner products of codes that are kept at a time; larger working sets are descended on one part after the other."""
_MOST_FILTERS, _MOST_ALONE = 2, 6
"""Filters for each of several channels, and for a single one, up to which all correlations take no more memory than descent
on the residual would."""
_CROWDED, _MOST_NEIGHBOURS = 0.75, 40
"""Codes that overlap with a code, beside the samples of a filter and at most, for each channel, from which on descent on the
residual is faster."""
_MOST_ROUNDS = 40
_CLOSER = 0.25
"""Correlations are followed until violations are below the tolerance, and below this share of that in the next round."""
_RUNNING = 1e-12
_TABLE, _DRIFT = 1e-13, 1e-10
"""Rounding in float64: of inner products, beside norms of filters, and of sums of many moves, beside that of the signal."""
_SHARE = 0.1
"""Moves are followed up until they are less than this share of the largest violation."""
_COARSEST = 4
"""The first cells are so many times smaller than a filter: where codes are few they find about one for each event."""


class Aim(NamedTuple):
    """How far a descent goes."""

    violation: float  # the largest |Dᵀr| / λ − 1 that may be left
    smallest: float  # the smallest move that is followed up, beside the penalty
    cells: tuple[int, ...]  # sides of the cells that take one new code each, round by round
    extra: int
    max_sweeps: int


def can_follow(problem: Problem) -> bool:
    """Whether correlations can be kept up to date: inner products of codes must depend on their distance, or the border."""
    geometry = problem.geometry
    if len(geometry.grid) != 1 or geometry.boundary == "circular" or problem.weights is not None:
        return False
    most = _MOST_ALONE if geometry.channels == 1 else _MOST_FILTERS * geometry.channels
    if problem.drawn is not None or problem.penalty.shape[1] > 1 or problem.n_filters > most:
        return False
    pairs = problem.n_filters**2 * (2 * geometry.filter[0] - 1)
    return problem.n_filters * geometry.n_positions <= _MOST_CORRELATIONS and pairs <= _MOST_PAIRS


class Remainder(NamedTuple):
    """What codes leave of a signal, and what its certificate needs to know of that."""

    exact: NDArray  # x − Dz in float64, (channels, samples)
    rounded: NDArray  # the same in the signal's precision
    loss: float  # ½ Σ r²
    energy: float  # Σ r x
    largest: float  # the norm of the largest box that a filter can meet


def remainder(problem: Problem, signal: NDArray, codes: NDArray, values: NDArray) -> Remainder:
    """Compute what codes leave of a signal (channels, samples), for problems that `can_follow` allows."""
    geometry = problem.geometry
    exact, rounded, energies = np.empty(signal.shape), np.empty_like(signal), np.empty(signal.shape[1])
    loss, energy, largest = leave(
        signal, problem.filters, codes, values, geometry.n_positions, geometry.offset[0], exact, rounded, energies
    )
    # Running sums are off by some ε of all that they went through.
    return Remainder(exact, rounded, loss, energy, math.sqrt(largest + 2 * _RUNNING * loss))


class Followed(NamedTuple):
    """Codes after a descent on correlations, and what those say of them."""

    codes: NDArray  # sorted by position
    values: NDArray
    ratio: float  # the largest |correlation| / λ
    rounding: float  # how far off that can be, beside what the scan was off by
    crowded: bool  # whether codes were given up because they are too many to be followed


def follow(
    separable: SeparableScan, correlations: NDArray, codes: NDArray, values: NDArray, objective: float, aim: Aim
) -> Followed:
    """Descend on codes, sorted by position, with all that violate besides taken in.

    `correlations` (n_filters, n_positions), in float64, are those of the residual of the codes, and change in place.
    `objective` is that of the codes.
    """
    problem, overlaps = separable.problem, separable.overlaps
    crowd = problem.geometry.channels * min(_CROWDED * problem.geometry.filter[0], float(_MOST_NEIGHBOURS))
    codes, found, ratio, weight, crowded = follow_down(
        correlations, overlaps, codes, values.astype(np.float64), problem.penalty[:, 0].copy(), problem.nonnegative,
        np.array([*_cells(aim.cells, problem.geometry.filter[0])]), (aim.violation, aim.smallest, _SHARE), aim.extra,
        aim.max_sweeps, _MOST_PRODUCTS, crowd,
    )  # fmt: skip
    # A correlation changed by the inner products of its filter with those of the codes that moved, times their moves. The
    # inner products are those of patterns and shapes, and values are rounded at the end.
    norm, unit = problem.largest_norm, float(np.finfo(values.dtype).eps) / 2
    off = weight * norm * (2.02 * separable.lost + (unit + _TABLE) * norm) + _DRIFT * norm * math.sqrt(2 * objective)
    return Followed(codes, found.astype(values.dtype), ratio, off / problem.smallest_penalty, crowded)


def _cells(cells: tuple[int, ...], taps: int) -> Iterator[int]:
    """Sides of cells, round by round: coarse ones, half as large each time, before those that are asked for."""
    coarse = taps // _COARSEST
    while coarse > cells[0]:
        yield coarse
        coarse //= 2
    yield from cells
    for _ in range(_MOST_ROUNDS):
        yield cells[-1]


class LineWorkingSet(HostWorkingSet):
    """The codes of a signal of one dimension: followed on correlations where that pays, or descended on by products."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_followed = self.settings.ridge == 0 and can_follow(self.problem)
        self.follows: SeparableScan | None = self.state.followed if is_followed else None
        self.raises = self.raises and self.follows is None
        self.correlations = np.empty((0, 0))  # of the last scan
        self.followed: Followed | None = None  # what following them came to, until the next scan
        self.turns = 0

    def look(self, active: NDArray, *, last: bool) -> RoundReport:
        if self.follows is None:
            return super().look(active, last=last)
        left = remainder(self.problem, self.signal, self.codes, self.values)
        self.exact, self.residual = left.exact, left.rounded
        rounding = scan_rounding(self.problem, self.follows.terms, left.largest, self.residual.dtype)
        objective = left.loss + inner(self.problem.penalty_at(self.codes), np.abs(self.values))
        self.bound.objective, constant = objective, self.bound.constant
        gap = np.inf
        if self.followed is not None:  # what correlations became may do: they are as good as their scan, nearly
            self.ratio = self.followed.ratio
            ratio = self.ratio + self.followed.rounding + self.rounding
            gap = relative_gap(objective, left.loss, left.energy, ratio, constant)
        if gap > self.settings.tol:
            self.rounding = rounding  # of what is followed from here on
            self.best[:] = 0
            self.correlations = self.follows.correlations(self.residual, self.state.factors, self.best, self.winner)
            self.ratio = float(np.max(self.best))
            gap = relative_gap(objective, left.loss, left.energy, self.ratio + rounding, constant)
        return RoundReport(*np.array([[objective + constant], [gap], [self.ratio]]))

    def descend(self, active: NDArray, cell: int, targets: NDArray, raised: NDArray) -> None:
        if self.follows is not None:
            self._follow(self.follows)
            return
        positions = self.codes % self.geometry.n_positions
        if not products.are_worth(self.geometry, self.problem.n_filters, positions):
            super().descend(active, cell, targets, raised)
            return
        settings, factor = self.settings, float(raised[0])
        self._enlarge(cell, factor * (1 + 4 * self.epsilon))
        codes = self.sweeps.codes(self.codes, self.values, factor)
        self.values = products.descend(
            self.state.overlaps, self.problem.filters, self.geometry, self.codes, values=self.values,
            slopes=self.problem.operator.correlate_padded(self.residual, self.codes), curvatures=codes.curvatures,
            penalties=codes.penalties, clean=codes.clean, weights=self.sweeps.weights, ridge=settings.ridge,
            target=float(targets[0]), nonnegative=self.problem.nonnegative, extra=settings.extra,
            max_sweeps=settings.max_sweeps,
        )  # fmt: skip
        self._keep(self.values != 0)

    def _follow(self, scan: SeparableScan) -> None:
        """Descend on all that violates, again and again, on the correlations of the last scan."""
        settings = self.settings
        aim = Aim(
            violation=settings.tol * _CLOSER**self.turns,
            smallest=4 * self.epsilon,
            cells=settings.cells[-1:] if self.turns else settings.cells,
            extra=settings.extra,
            max_sweeps=settings.max_sweeps,
        )
        found = follow(scan, self.correlations, self.codes, self.values, self.bound.objective, aim)
        self.codes, self.values = found.codes, found.values
        self.turns += 1
        self.followed = found
        if found.crowded:
            self.follows, self.followed, self.correlations = None, None, np.empty((0, 0))
