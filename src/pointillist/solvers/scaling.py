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
    scratch,
    walked,
)
from pointillist.codes import SparseCodes
from pointillist.problem import Problem
from pointillist.solvers.base import Result
from pointillist.validation import bounds


@dataclass(frozen=True, eq=False)
class Scale:
    """The powers of two that the signals of one problem, their weights and each filter are divided by."""

    signals: int
    weights: int
    filters: NDArray  # (n_filters,) int64

    @property
    def curvature(self) -> int:
        """Power of two that w ‖d‖² is divided by."""
        return self.weights + 2 * int(self.filters[0])

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
        if isinstance(some, Rows) and self.signals == 0 and some.whole.dtype == dtype:
            return some
        kept = [one.astype(dtype, copy=False) if is_resident(one) else converted(one, dtype) for one in some]
        return [_times_power(one, -self.signals) for one in kept]

    def start(self, start: SparseCodes, dtype: np.dtype) -> SparseCodes:
        """Codes to start from in this scale."""
        values = self._moved(start, -1).astype(dtype)
        if not bool(np.isfinite(values).all()):
            raise ValueError("start holds codes that are far too large for these signals and filters")
        return start.replaced(start.indices, _parted(start, values))

    def restored(self, result: Result, members: Sequence[int]) -> Result:
        """The result for the signals, numbered `members`, as they were given; one that cannot be written is refused."""
        if not (self.signals or self.weights or self.filters.any()):
            return result
        codes, objective, residuals = result.codes, result.objective, result.residuals
        exact = self._moved(codes, 1)
        with np.errstate(over="ignore", under="ignore"):
            values = exact.astype(codes.dtype)
        if self.signals or self.weights:
            with np.errstate(over="ignore", under="ignore"):
                objective = np.ldexp(objective, self.weights + 2 * self.signals)
                residuals = [_times_power(residual, self.weights + self.signals) for residual in residuals]
            for i, before, after, residual in zip(members, result.objective, objective, residuals, strict=True):
                is_written = before == 0 or np.finfo(np.float64).tiny <= after < np.inf
                if np.isfinite(before) and not (is_written and bool(np.isfinite(residual).all())):
                    raise ValueError(
                        f"signals[{i}] is too {'small' if after < 1 else 'large'}, or its weights are: its objective or "
                        "residual cannot be written; bring signals and penalty, or weights and penalty, to another magnitude"
                    )
        kept = _parted(codes, values)
        if bool((exact != values).any()):  # a power of two changes no bits unless it leaves the range
            for i, one, rounded in zip(members, _parted(codes, exact), kept, strict=True):
                total = float(abs(one).sum())
                if np.isfinite(total) and not float(abs(one - rounded).sum()) <= 1e-10 * total:
                    raise ValueError(
                        f"signals[{i}] has codes that {codes.dtype} cannot hold, of {total:.2g} together: pass float64, or "
                        "filters of another magnitude"
                    )
        return replace(result, codes=codes.replaced(codes.indices, kept), objective=objective, residuals=residuals)

    def _moved(self, codes: SparseCodes, sign: int) -> Any:
        """All values of codes brought from this scale (`sign` 1) or to it (-1), flat and in float64."""
        powers: Any = sign * (self.signals - self.filters)
        index = joined(codes.indices) // prod(codes.grids[0])
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(
                joined(codes.values).astype(np.float64), (as_cupy(powers) if codes.resident else powers)[index]
            )


def by_scale(
    signals: Sequence[NDArray],
    filters: NDArray,
    weights: Sequence[NDArray] | None,
    penalty: float | NDArray,
    *,
    alike: bool,
) -> list[tuple[list[int], Scale]]:
    """Numbers of the signals that share shape and scale, in order of appearance, and that scale.

    All filters are divided by one number where they must be treated `alike`: one ridge, or one ρ, is for all their codes.
    """
    flat = filters.reshape(len(filters), -1).astype(np.float64)
    peaks = np.max(np.abs(flat), axis=1)
    peaks[peaks == 0] = 1  # squares of very large or small samples leave even float64
    norms = np.maximum(np.linalg.norm(flat / peaks[:, None], axis=1), 1)
    of_filters = np.rint(np.log2(norms) + np.log2(peaks)).astype(np.int64)
    if alike:
        if np.ptp(of_filters) > 40:
            raise ValueError(
                "filters differ so much in magnitude that ridge or rho cannot serve all of them: divide them by their norms"
            )
        of_filters = np.full(len(filters), of_filters.max())
    sizes = np.abs(bounds(signals)).max(axis=0)
    of_weights = np.zeros(len(signals), int) if weights is None else _powers(bounds(weights)[1], 16)
    of_signals = _powers(sizes, 8)
    of_signals[np.abs(of_signals) <= 16] = 0
    silent = sizes == 0  # any scale will do for these: one that suits the penalty
    of_signals[silent] = _powers(np.min(penalty), 1) - of_filters.max() - of_weights[silent]
    groups: dict[tuple[int, int, int], list[int]] = {}
    for number, same in enumerate(group_by_shape(signals)):
        for i in same:
            groups.setdefault((number, int(of_signals[i]), int(of_weights[i])), []).append(i)
    return [(members, Scale(signal, weight, of_filters)) for (_, signal, weight), members in groups.items()]


def _powers(sizes: NDArray | np.floating, step: int) -> NDArray:
    """Exponents of two that bring sizes near one, in multiples of a step; zero for zero."""
    return (step * np.rint(np.frexp(sizes)[1] / step)).astype(np.int64)


def _parted(codes: SparseCodes, flat: Any) -> list[Any]:
    """Values of all signals, one behind the other, signal by signal."""
    return pieces(flat, np.cumsum([0, *map(len, codes.indices)]).tolist())


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
