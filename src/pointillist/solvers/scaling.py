"""Problems brought to ordinary size by exact powers of two, and their answers brought back.

The problem is homogeneous: signals divided by s, weights by ω and each filter by its own f, with the penalty of its codes
divided by all three, have codes divided by s / f and an objective divided by ω s². Powers of two change no bits of what is
computed. Filters get norms near one, so that a step of any code is a change of the residual of that size; signals stay as
they are up to 2¹⁶, weights up to 2⁸.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import (
    Rows,
    as_cupy,
    converted,
    group_by_shape,
    is_resident,
    joined,
    members_of,
    pieces,
    rows,
    scratch,
    walked,
)
from pointillist.codes import SparseCodes
from pointillist.problem import Problem
from pointillist.solvers.base import Result, Solver
from pointillist.validation import bounds


@dataclass(frozen=True, eq=False)
class Scale:
    """The powers of two that the signals of one problem, their weights and each filter are divided by."""

    signals: int
    weights: int
    filters: NDArray  # (n_filters,) int64

    def problem(self, problem: Problem) -> Problem:
        """The problem in this scale; a penalty that is nothing beside the correlations is refused."""
        with np.errstate(over="ignore"):
            penalty = np.ldexp(problem.penalty, -(self.signals + self.weights + self.filters[:, None]))
        if np.min(penalty) < 2.0**-80:
            raise ValueError(
                f"penalty is so small, {np.min(problem.penalty):.2g}, that it is lost beside signals, filters and weights "
                "of this size; max_penalty tells their scale"
            )
        filters, weights = problem.filters, problem.weights
        if self.filters.any():
            filters = np.ldexp(filters, -self.filters.reshape(-1, *[1] * (filters.ndim - 1)))
        if weights is not None and self.weights:
            weights = np.ldexp(weights, -self.weights)
        # Beyond 2¹²⁰ a penalty forbids a code as well as at 2¹²⁰, which single precision holds.
        return replace(problem, filters=filters, penalty=np.minimum(penalty, 2.0**120), weights=weights)

    def taken(self, signals: list[NDArray], members: Sequence[int], dtype: np.dtype) -> list[NDArray]:
        """Some of the signals in a precision and in this scale."""
        some = members_of(signals, members)
        if isinstance(some, Rows) and self.signals == 0:
            return some if some.whole.dtype == dtype else rows(some.whole.astype(dtype))
        kept = [one.astype(dtype, copy=False) if is_resident(one) else converted(one, dtype) for one in some]
        return [_times_power(one, -self.signals) for one in kept]

    def solver(self, solver: Solver) -> Solver:
        """The solver with settings in units of w ‖d‖² in this scale."""
        return _with_curvature(solver, self.weights + 2 * int(self.filters[0]))

    def start(self, start: SparseCodes | None, dtype: np.dtype) -> SparseCodes | None:
        """Codes to start from in this scale."""
        if start is None or not (self.signals or self.filters.any()):
            return start
        _, values = self._moved(start, -1, dtype)
        if not bool(np.isfinite(values).all()):
            raise ValueError("start holds codes that are far too large for these signals and filters")
        return _with_values(start, values)

    def restored(self, result: Result, members: Sequence[int]) -> Result:
        """The result for the signals, numbered `members`, as they were given; one that cannot be written is refused."""
        if self.signals or self.weights:
            result = self._in_units(result, members)
        codes = result.codes
        if not (self.signals or self.filters.any()) or codes.nnz == 0:
            return result
        exact, values = self._moved(codes, 1, codes.dtype)
        codes = _with_values(codes, values)
        if bool((exact != values).any()):  # a power of two changes no bits unless it leaves the range
            for i, one, kept in zip(members, _with_values(codes, exact).values, codes.values, strict=True):
                total = float(abs(one).sum())
                if np.isfinite(total) and not float(abs(one - kept).sum()) <= 1e-10 * total:
                    raise ValueError(
                        f"signals[{i}] has codes that {kept.dtype} cannot hold, of {total:.2g} together: pass float64, or "
                        "filters of another magnitude"
                    )
        return replace(result, codes=codes)

    def _moved(self, codes: SparseCodes, sign: int, dtype: np.dtype) -> tuple[Any, Any]:
        """All values of codes brought from this scale (`sign` 1) or to it (-1), flat, in float64 and in a precision."""
        powers: Any = sign * (self.signals - self.filters)
        index = joined(codes.indices) // prod(codes.grids[0])
        with np.errstate(over="ignore", under="ignore"):
            exact = np.ldexp(
                joined(codes.values).astype(np.float64), (as_cupy(powers) if codes.resident else powers)[index]
            )
            return exact, exact.astype(dtype)

    def _in_units(self, result: Result, members: Sequence[int]) -> Result:
        with np.errstate(over="ignore", under="ignore"):
            objective = np.ldexp(result.objective, self.weights + 2 * self.signals)
            residuals = [_times_power(residual, self.weights + self.signals) for residual in result.residuals]
        for i, before, after, residual in zip(members, result.objective, objective, residuals, strict=True):
            if np.isfinite(before) and not np.isfinite(after):
                raise ValueError(
                    f"signals[{i}] is too large: its objective overflows; divide signals and penalty by some number"
                )
            if before > 0 and after < np.finfo(np.float64).tiny:
                raise ValueError(
                    f"signals[{i}] is too small, or its weights are: its objective underflows; multiply signals and "
                    "penalty, or weights and penalty, by some number"
                )
            if np.isfinite(before) and not bool(np.isfinite(residual).all()):
                raise ValueError(
                    f"weights of signals[{i}] are too large: the residuals overflow; divide weights and penalty"
                )
        return replace(result, objective=objective, residuals=residuals)


def _with_values(codes: SparseCodes, flat: Any) -> SparseCodes:
    """Codes with other values, given for all signals one behind the other."""
    ends = np.cumsum([0, *map(len, codes.indices)]).tolist()
    return codes.replaced(codes.indices, pieces(flat, ends))


def by_scale(
    signals: Sequence[NDArray],
    filters: NDArray,
    weights: Sequence[NDArray] | None,
    penalty: float | NDArray,
    solver: Solver,
) -> list[tuple[list[int], Scale]]:
    """Numbers of the signals that share shape and scale, in order of appearance, and that scale."""
    flat = filters.reshape(len(filters), -1).astype(np.float64)
    peaks = np.max(np.abs(flat), axis=1)
    peaks[peaks == 0] = 1  # squares of very large or small samples leave even float64
    norms = np.maximum(np.linalg.norm(flat / peaks[:, None], axis=1), 1)
    of_filters = np.rint(np.log2(norms) + np.log2(peaks)).astype(np.int64)
    if _with_curvature(solver, 1) is not solver:  # one ridge, or one ρ, for the codes of all filters
        if np.ptp(of_filters) > 40:
            raise ValueError(
                "filters differ so much in magnitude that ridge or rho cannot serve all of them: divide them by their norms"
            )
        of_filters = np.full(len(filters), of_filters.max())
    sizes = np.abs(bounds(signals)).max(axis=0)
    of_weights = np.zeros(len(signals), int)
    if weights is not None:
        distinct = {id(weight): weight for weight in weights}
        powers = dict(zip(distinct, _powers(bounds(list(distinct.values()))[1], 16).tolist(), strict=True))
        of_weights = np.array([powers[id(weight)] for weight in weights])
    of_signals = _powers(sizes, 8)
    of_signals[np.abs(of_signals) <= 16] = 0
    silent = sizes == 0  # any scale will do for these: one that suits the penalty
    if silent.any():
        of_signals[silent] = int(_powers(np.min(penalty), 1)) - of_filters.max() - of_weights[silent]
    groups: dict[tuple[int, int, int], list[int]] = {}
    for number, same in enumerate(group_by_shape(signals)):
        for i in same:
            groups.setdefault((number, int(of_signals[i]), int(of_weights[i])), []).append(i)
    return [(members, Scale(signal, weight, of_filters)) for (_, signal, weight), members in groups.items()]


def _with_curvature(solver: Solver, power: int) -> Solver:
    """The solver for w ‖d‖² divided by a power of two; itself where none of its settings depends on that."""
    rescaled = getattr(solver, "rescaled", None)
    return solver if rescaled is None or power == 0 else rescaled(power)


def _powers(sizes: NDArray | np.floating, step: int) -> NDArray:
    """Exponents of two that bring sizes near one, in multiples of a step; zero for zero."""
    return (step * np.rint(np.frexp(sizes)[1] / step)).astype(np.int64)


def _times_power(array: NDArray, exponent: int) -> NDArray:
    """An array (channels, *space) times a power of two, in a file where it is in one; itself for 2⁰."""
    if exponent == 0:
        return array
    if is_resident(array):
        return np.ldexp(array, exponent)
    out = scratch(array, array.shape, array.dtype)
    for band in walked(array, out):
        np.ldexp(array[band], exponent, out=out[band])
    return out
