"""Problems brought to a size whose squares single precision can hold, and their answers brought back.

The sparse coding problem is homogeneous: signals divided by s, filters by f and weights by ω, with the penalty divided by
all three, have the codes divided by s / f and the objective divided by ω s². All factors are powers of two, which change no
bits of what is computed, and ordinary problems are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import Rows, as_cupy, is_resident, members_of, stacked, to_host
from pointillist.codes import SparseCodes
from pointillist.large import converted, largest, scratch, walked
from pointillist.problem import Problem
from pointillist.solvers.base import Result, Solver
from pointillist.validation import group_by_shape

_ORDINARY, _NEAR = 50, 10
"""Powers of two that w ‖d‖² x² may lie away from one, counted for each of its factors, for a problem to be left as it is;
and those that a factor may lie away from one to be left as it is in any problem."""
_FAINT = -40
"""Filters that are less than 2 to this, beside the largest, get a power of their own."""
_SMALLEST_PENALTY, _LARGEST_PENALTY = 2.0**-80, 2.0**120
"""A penalty less than the first is lost beside the correlations; those above the second forbid a code as well as it does."""
_LOST = 1e-10
"""Part of the sum of all codes that may be lost where small ones are rounded to zero."""


@dataclass(frozen=True, eq=False)
class Scale:
    """The powers of two that signals of one problem are divided by.

    Attributes
    ----------
    signals, weights : int
    filters : (n_filters,) int array
    """

    signals: int
    weights: int
    filters: NDArray

    @property
    def is_one(self) -> bool:
        """Whether everything stays as it is."""
        return not (self.signals or self.weights or self.filters.any())

    def problem(self, problem: Problem) -> Problem:
        """The problem for scaled signals; a penalty that is nothing beside them is refused."""
        change = -(self.signals + self.weights + self.filters[:, None])
        with np.errstate(over="ignore"):
            penalty = problem.penalty if self.is_one else np.ldexp(problem.penalty, change)
        if np.min(penalty) < _SMALLEST_PENALTY:
            raise ValueError(
                f"penalty is so small, {np.min(problem.penalty):.2g}, that it is lost beside signals, filters and weights "
                "of this size; max_penalty tells their scale"
            )
        if np.max(penalty) > _LARGEST_PENALTY:
            penalty = np.minimum(penalty, _LARGEST_PENALTY)
        if self.is_one:
            return problem if penalty is problem.penalty else replace(problem, penalty=penalty)
        filters = problem.filters
        if self.filters.any():
            filters = np.ldexp(filters, -self.filters.reshape(-1, *[1] * (filters.ndim - 1)))
        weights = problem.weights
        if weights is not None and self.weights:
            weights = np.ldexp(weights, -self.weights)
        return replace(problem, filters=filters, penalty=penalty, weights=weights)

    def signals_of(self, signals: list[NDArray], members: Sequence[int], dtype: np.dtype) -> list[NDArray]:
        """Some of the signals, in a precision and in this scale."""
        some = members_of(signals, members)
        if isinstance(some, Rows) and self.signals == 0 and some.whole.dtype == dtype:
            return some
        return [self._signal(signal, dtype) for signal in some]

    def _signal(self, signal: NDArray, dtype: np.dtype) -> NDArray:
        kept = signal.astype(dtype, copy=False) if is_resident(signal) else converted(signal, dtype)
        return _times_power(kept, -self.signals)

    def solver(self, solver: Solver) -> Solver:
        """The solver with those of its settings that depend on the size of filters and weights in this scale."""
        rescaled = getattr(solver, "rescaled", None)
        if rescaled is None or not (self.weights or self.filters.any()):
            return solver
        changed: Solver = rescaled(self.weights, self.filters)
        return changed

    def start(self, start: SparseCodes | None, dtype: np.dtype) -> SparseCodes | None:
        """Codes to start from in this scale."""
        if start is None or self.is_one:
            return start
        host = start.on_host()
        values = self._codes(host, -1)
        with np.errstate(over="ignore"):
            values = [value.astype(dtype) for value in values]
        if not all(np.isfinite(value).all() for value in values):
            raise ValueError("start holds codes that are far too large for these signals and filters")
        return SparseCodes(host.indices, values, host.grids, host.n_filters)

    def _codes(self, codes: SparseCodes, sign: int) -> list[Any]:
        """The values of codes brought from this scale (`sign` 1) or to it (-1), in float64."""
        change: Any = sign * (self.signals - self.filters)
        change = as_cupy(change) if codes.resident else change
        sizes = [int(np.prod(grid)) for grid in codes.grids]
        return [
            np.ldexp(value.astype(np.float64), change[index // size])
            for index, value, size in zip(codes.indices, codes.values, sizes, strict=True)
        ]

    def restore(self, result: Result, members: Sequence[int]) -> Result:
        """The result for the signals, numbered `members`, as they were given; one that cannot be written is refused."""
        if self.is_one:
            return result
        codes = result.codes
        with np.errstate(over="ignore", under="ignore"):
            objective = np.ldexp(result.objective, self.weights + 2 * self.signals)
            exact = self._codes(codes, 1)
            values = [value.astype(codes.dtype) for value in exact]
            residuals = [_times_power(residual, self.weights + self.signals) for residual in result.residuals]
        for i, member in enumerate(members):
            _check_restored(member, result.objective[i], objective[i], exact[i], values[i], residuals[i])
        restored = SparseCodes(codes.indices, values, codes.grids, codes.n_filters)
        return replace(result, codes=restored, objective=objective, residuals=residuals)


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


def _check_restored(i: int, scaled: float, objective: float, exact: Any, values: Any, residual: Any) -> None:
    """Refuse an answer whose numbers are too large or too small for their precision."""
    if np.isfinite(scaled) and not np.isfinite(objective):
        raise ValueError(
            f"signals[{i}] is too large: its objective overflows; divide signals and penalty by some number"
        )
    if scaled > 0 and objective < np.finfo(np.float64).tiny:
        raise ValueError(
            f"signals[{i}] is too small, or its weights are: its objective underflows; multiply signals and penalty, or "
            "weights and penalty, by some number"
        )
    total = float(abs(exact).sum())
    if np.isfinite(total) and not abs(float(abs(values.astype(np.float64)).sum()) - total) <= _LOST * total:
        raise ValueError(
            f"signals[{i}] has codes that {values.dtype} cannot hold, of {total:.2g} together: pass float64, or filters of "
            "another magnitude"
        )
    if np.isfinite(scaled) and not bool(np.isfinite(residual).all()):
        raise ValueError(f"weights of signals[{i}] are too large: the residuals overflow; divide weights and penalty")


def by_scale(
    signals: Sequence[NDArray], filters: NDArray, weights: Sequence[NDArray] | None, penalty: NDArray
) -> list[tuple[list[int], Scale]]:
    """Numbers of the signals that share shape and scale, in order of appearance, and that scale."""
    sizes = _largest(signals)
    of_signals, of_weights = _exponents(sizes), np.zeros(len(signals), int)
    if weights is not None:
        distinct = {id(weight): weight for weight in weights}
        found = dict(zip(distinct, _exponents(_largest(list(distinct.values()))).tolist(), strict=True))
        of_weights = np.array([found[id(weight)] for weight in weights])
    of_filters = _exponents(np.max(np.abs(filters.reshape(len(filters), -1)), axis=1))
    loudest = int(np.max(of_filters))
    silent = sizes == 0  # any scale will do for these: one that suits the penalty
    of_signals[silent] = int(_exponents(np.min(penalty))) - loudest - of_weights[silent]
    ordinary = 2 * abs(loudest) + 2 * np.abs(of_signals) + np.abs(of_weights) <= _ORDINARY
    groups = []
    for same in group_by_shape(signals):
        chosen: dict[tuple[int, int, int], list[int]] = {}
        if ordinary[same].all():
            chosen[0, 0, 0] = same
        for i in same if not chosen else ():
            factors = (0, 0, 0) if ordinary[i] else (int(of_signals[i]), int(of_weights[i]), loudest)
            signal, weight, shared = (0 if abs(factor) <= _NEAR else factor for factor in factors)
            chosen.setdefault((signal, weight, shared), []).append(i)
        for (signal, weight, shared), members in chosen.items():
            faint = of_filters < min(shared, loudest) + _FAINT
            groups.append((members, Scale(signal, weight, np.where(faint, of_filters, shared))))
    return groups


def _largest(arrays: Sequence[Any]) -> NDArray:
    """The largest magnitude of each array (channels, *space)."""
    if isinstance(arrays, Rows):
        return np.max(np.abs(arrays.extents[:2]), axis=0).astype(np.float64)
    sizes = np.empty(len(arrays))
    for members in group_by_shape(arrays) if arrays and is_resident(arrays[0]) else [range(len(arrays))]:
        if is_resident(arrays[members[0]]):  # a device answers slowly to many small questions
            flat = stacked(members_of(arrays, members)).reshape(len(members), -1)
            sizes[members] = to_host(abs(flat).max(axis=1))
        else:
            for i in members:
                sizes[i] = largest(arrays[i])
    return sizes


def _exponents(sizes: NDArray | np.floating) -> NDArray:
    """Powers of two that bring sizes near one; zero for zero."""
    return np.asarray(np.frexp(sizes)[1]).astype(int)
