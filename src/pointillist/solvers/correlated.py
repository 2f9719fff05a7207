"""Descent that keeps the correlations of the residual with all filters up to date, for signals of one dimension.

A round of coordinate descent computes the residual, scans it and descends on the best violators. Here many such rounds are
made on the correlations of one scan: the inner products of the filters say how they change. What rounding does to them
meanwhile is no matter, because the next scan computes them from the signal.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.correlated import Overlaps, descend_chunks, largest_window, leave, violators
from pointillist.backends.descent import merge
from pointillist.model.problem import Problem

_MOST_CORRELATIONS, _MOST_PAIRS = 2**23, 2**22
"""Correlations of all filters at all positions, and inner products of filters, that are kept at most."""
_MOST_PRODUCTS = 2**17
"""Inner products of codes that are kept at a time; larger working sets are descended on one part after the other."""
_MOST_FILTERS = 2
"""Filters for each channel up to which all correlations take no more memory than descent on the residual would."""
_MOST_ROUNDS = 40
_RUNNING = 1e-12
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
    if (
        problem.drawn is not None
        or problem.penalty.shape[1] > 1
        or problem.n_filters > _MOST_FILTERS * geometry.channels
    ):
        return False
    pairs = problem.n_filters**2 * (2 * geometry.filter[0] - 1)
    return problem.n_filters * geometry.n_positions <= _MOST_CORRELATIONS and pairs <= _MOST_PAIRS


class Remainder(NamedTuple):
    """What codes leave of a signal, and what its certificate needs to know of that."""

    exact: NDArray  # x − Dz in float64, (channels, samples)
    padded: NDArray  # the same in the signal's precision, flat and padded
    loss: float  # ½ Σ r²
    energy: float  # Σ r x
    largest: float  # the norm of the largest box that a filter can meet


def remainder(problem: Problem, signal: NDArray, codes: NDArray, values: NDArray) -> Remainder:
    """Compute what codes leave of a signal (channels, samples), for problems that `can_follow` allows."""
    geometry = problem.geometry
    count, samples = geometry.channels * geometry.padded[0], geometry.padded[0]
    fit = problem.exact_operator.synthesise_padded(codes, values.astype(np.float64))
    exact, padded = np.empty(signal.shape), np.zeros(geometry.padded_length, signal.dtype)
    energies, products = np.zeros(samples), np.zeros(signal.shape[1])
    inside = fit[:count].reshape(-1, samples), padded[:count].reshape(-1, samples)
    leave(signal, inside[0], geometry.offset[0], exact, inside[1], energies, products)
    # Running sums are off by some ε of all that they went through.
    largest = largest_window(energies, geometry.filter[0]) + _RUNNING * float(energies.sum())
    return Remainder(exact, padded, 0.5 * float(energies.sum()), float(products.sum()), float(np.sqrt(largest)))


def follow(
    problem: Problem, overlaps: Overlaps, correlations: NDArray, codes: NDArray, values: NDArray, aim: Aim
) -> tuple[NDArray, NDArray]:
    """Codes, sorted by position, and their values after descent, with all that violate besides taken in.

    `correlations` (n_filters, n_positions), in float64, are those of the residual of the codes, and change in place.
    """
    penalties, n_filters, signed = problem.penalty[:, 0].copy(), problem.n_filters, problem.nonnegative
    found, floor = values.astype(np.float64), 1 + aim.smallest
    for cell in _cells(aim.cells, problem.geometry.filter[0]):
        fresh, ratio = violators(correlations, penalties, signed, cell, floor)
        settled = ratio - 1 <= max(aim.violation, 2 * aim.smallest)
        if not settled:
            codes, found = merge(codes, found, fresh, correlations.shape[1], n_filters)
        # Codes that are too large violate nothing, and the gap knows them: the last descent is as close as the aim.
        target = max(_SHARE * min(max(ratio - 1, aim.violation), 1.0), aim.smallest) * problem.smallest_penalty
        descend_chunks(
            correlations, overlaps, *np.divmod(codes, correlations.shape[1]), found, penalties, signed, target, aim.extra,
            aim.max_sweeps, _MOST_PRODUCTS,
        )  # fmt: skip
        codes, found = codes[found != 0], found[found != 0]
        if settled:
            break
    return codes, found.astype(values.dtype)


def _cells(cells: tuple[int, ...], taps: int) -> Iterator[int]:
    """Sides of cells, round by round: coarse ones, half as large each time, before those that are asked for."""
    coarse = taps // _COARSEST
    while coarse > cells[0]:
        yield coarse
        coarse //= 2
    yield from cells
    for _ in range(_MOST_ROUNDS):
        yield cells[-1]
