"""Descent that keeps the correlations of the residual with all filters up to date, for signals of one dimension.

A round of coordinate descent computes the residual, scans it and descends on the best violators. Here many such rounds are
made on the correlations of one scan: the inner products of the filters say how they change. What rounding does to them
meanwhile is bounded. Where that is little beside the tolerance they certify the codes, and there is no other scan.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.correlated import follow_down, leave
from pointillist.problem import Problem
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
