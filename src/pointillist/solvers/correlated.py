"""Descent that keeps the correlations of the residual with all filters up to date, for signals of one dimension.

A round of coordinate descent computes the residual, scans it and descends on the best violators. Here many such rounds are
made on the correlations of one scan: the inner products of the filters say how they change. What rounding does to them
meanwhile is no matter, because the next scan computes them from the signal.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.correlated import descend_chunks, violators
from pointillist.backends.descent import merge
from pointillist.model.problem import Problem

MOST_CORRELATIONS = 2**23
"""Correlations, of all filters at all positions, that are kept at most."""
_MOST_PAIRS = 2**22
"""Entries of the table of inner products of filters that is kept at most."""
_MOST_ROUNDS = 30
_SLOW, _LEAST_SHARE = 0.7, 0.1
"""A violation that is still this part of the last one is slow: moves are followed up further, down to the last share."""


class Aim(NamedTuple):
    """How far a descent goes."""

    violation: float  # the largest |Dᵀr| / λ − 1 that may be left
    share: float  # moves are followed up until they are less than this share of the violation
    smallest: float  # and at most down to this
    cells: tuple[int, ...]  # sides of the cells that take one new code each, round by round
    extra: int
    max_sweeps: int


def can_follow(problem: Problem) -> bool:
    """Whether the correlations of a problem can be kept up to date: inner products must not depend on the position."""
    geometry = problem.geometry
    if len(geometry.grid) != 1 or geometry.boundary == "circular" or problem.weights is not None:
        return False
    pairs = problem.n_filters**2 * (2 * geometry.filter[0] - 1)
    few = problem.n_filters * geometry.n_positions <= MOST_CORRELATIONS and pairs <= _MOST_PAIRS
    return few and problem.sample is None and problem.penalty.shape[1] == 1


def follow(
    problem: Problem, table: NDArray, correlations: NDArray, codes: NDArray, values: NDArray, aim: Aim
) -> tuple[NDArray, NDArray]:
    """Codes, sorted by position, and their values after descent, with all that violate besides taken in.

    `correlations` (n_filters, n_positions), in float64, are those of the residual of the codes, and change in place.
    """
    penalties, n_filters = problem.penalty[:, 0], problem.n_filters
    curvatures = table[np.arange(n_filters), np.arange(n_filters), table.shape[2] // 2]
    found, share, before = values.astype(np.float64), aim.share, np.inf
    fresh, violation = violators(correlations, penalties, problem.nonnegative, aim.cells[0], 1.0)
    for cell in [*aim.cells[1:], *aim.cells[-1:] * _MOST_ROUNDS][:_MOST_ROUNDS]:
        codes, found = merge(codes, found, fresh, correlations.shape[1], n_filters)
        target = max(share * min(violation - 1, 1.0), aim.smallest) * problem.smallest_penalty
        descend_chunks(
            correlations, table, codes, found, curvatures, penalties, problem.nonnegative, target, aim.extra,
            aim.max_sweeps,
        )  # fmt: skip
        kept = found != 0
        codes, found = codes[kept], found[kept]
        fresh, ratio = violators(correlations, penalties, problem.nonnegative, cell, 1 + aim.smallest)
        before, violation = violation, ratio
        if violation - 1 <= aim.violation:
            break
        if violation - 1 > _SLOW * (before - 1):
            share = max(0.5 * share, min(share, _LEAST_SHARE))
    return codes, found.astype(values.dtype)
