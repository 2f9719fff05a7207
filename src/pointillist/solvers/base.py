"""The protocol of solvers for the codes (prepare once, solve often) and their results."""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import Certificate, Problem, certificate
from pointillist.validation import check_arguments


class Status(enum.Enum):
    """How a solver stopped; `advice` says what to do about it.

    Examples
    --------
    >>> import pointillist as pt
    >>> pt.Status.ITERATION_LIMIT.value
    'iteration limit'
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    DIVERGED = "diverged"

    @property
    def advice(self) -> str:
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "the relative duality gap is within the tolerance",
    Status.ITERATION_LIMIT: (
        "the codes are usable but not within the tolerance; raise the solver's max_iter or tol "
        "(float32 reaches 1e-5 or so; pass float64 for less)"
    ),
    Status.DIVERGED: "the codes are not usable; check the scale of signals, filters and penalty",
}


def worst_status(statuses: Collection[Status]) -> Status:
    """The status of several signals together: that of the one that fared worst."""
    return next((s for s in (Status.DIVERGED, Status.ITERATION_LIMIT) if s in statuses), Status.CONVERGED)


@dataclass(frozen=True, repr=False)
class Result:
    """Codes of n signals with their certificates.

    Attributes
    ----------
    codes : SparseCodes
    objective : (n,) float64 array
        ½ Σ w (x − Dz)² + Σ λ|z| for each signal.
    gap : (n,) float64 array
        Relative duality gap: the objective exceeds the optimum by at most ``gap · objective``. Under sampling it is about
        the sampled problem.
    statuses : tuple of Status
        One for each signal; `status` is the worst of them.
    iterations : (n,) int array
    residuals : list of (channels, *space) arrays
        w (x − Dz) for each signal.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> result = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1)
    >>> result.status.value, result.codes.nnz, result.residuals[0].shape
    ('converged', 1, (1, 30))
    """

    codes: SparseCodes
    objective: NDArray
    gap: NDArray
    statuses: tuple[Status, ...]
    iterations: NDArray
    residuals: list[NDArray]

    @property
    def status(self) -> Status:
        return worst_status(self.statuses)

    def __repr__(self) -> str:
        gap = f", gaps up to {np.max(self.gap):.2g}" if len(self.gap) else ""
        return f"Result({self.status.value}{gap}, codes={self.codes!r})"


def merge_results(results: Sequence[Result], places: Sequence[Sequence[int]]) -> Result:
    """Join results of groups of signals; ``places[g][i]`` is where signal i of group g belongs."""
    order = np.argsort([place for group in places for place in group])
    in_order = np.array_equal(order, np.arange(len(order)))
    if len(results) == 1 and in_order:
        return results[0]
    codes = SparseCodes.concatenate([result.codes for result in results])
    statuses = [status for result in results for status in result.statuses]
    residuals = [residual for result in results for residual in result.residuals]
    if not in_order:
        codes = codes[order.tolist()]
        statuses, residuals = [statuses[i] for i in order], [residuals[i] for i in order]
    return Result(
        codes,
        np.concatenate([result.objective for result in results])[order],
        np.concatenate([result.gap for result in results])[order],
        tuple(statuses),
        np.concatenate([result.iterations for result in results])[order],
        residuals,
    )


@runtime_checkable
class Solver(Protocol):
    """Solve `Problem`s: anything with these two methods can be given as `solver` to `encode` and to the learners.

    `prepare` does what all signals share, `solve` what each needs; `certify` makes the answer of what `solve` found.
    Signals of one shape are solved together, whatever their size: only coordinate descent works tile by tile.

    `takes_start` says whether `solve` uses the codes that it may be given to start from; without it, it does not. What a
    problem holds is what users gave divided by powers of two, so that filters have norms near one. A solver with settings in
    units of w ‖d‖² also has a method ``rescaled(power)``, the same solver for w ‖d‖² divided by 2 to that power. A solver
    that is a frozen dataclass is searched over field by field, as ``solver__max_iter``.

    Examples
    --------
    Codes that are the correlations above λ, less λ, are right where filters do not overlap:

    >>> import numpy as np, pointillist as pt
    >>> class Matched:
    ...     takes_start = False
    ...     def prepare(self, problem):
    ...         return problem
    ...     def solve(self, state, signals, *, n_jobs=1, start=None):
    ...         seen = [state.operator.correlate(x) for x in signals]
    ...         codes = [np.sign(c) * np.maximum(abs(c) - state.penalty.max(), 0) for c in seen]
    ...         return pt.certify(state, signals, pt.SparseCodes.from_dense(codes))
    >>> isinstance(Matched(), pt.solvers.Solver)
    True
    >>> pt.encode(np.eye(1, 30, 9), [[1.0]], penalty=0.5, solver=Matched()).codes.values
    [array([0.5])]
    """

    takes_start: ClassVar[bool]

    def prepare(self, problem: Problem) -> Any:
        """Compute what all signals of `problem` share, and return it as a state of any type."""
        ...

    def solve(
        self, state: Any, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of `signals`, each (channels, *space), with the `state` that `prepare` returned.

        `n_jobs` is a number of threads, already counted. `start` has codes to start from.
        """
        ...


def check_numbers(settings: Any) -> None:
    """Check a dataclass of settings by the rules for their names; its `tol` must be a number."""
    check_arguments(**{field.name: getattr(settings, field.name) for field in fields(settings)})
    if settings.tol is None:
        raise ValueError("tol must be a number, got None")


def judge(gap: float, objective: float, tol: float) -> Status:
    """The status of an answer with this gap and objective."""
    if not (math.isfinite(objective) and math.isfinite(gap)):
        return Status.DIVERGED
    return Status.CONVERGED if gap <= tol else Status.ITERATION_LIMIT


@dataclass(frozen=True)
class Solution:
    """One signal's answer, before it is put together with the others'."""

    indices: NDArray
    values: NDArray
    certificate: Certificate
    iterations: int


def certified(problem: Problem, i: int, signal: NDArray, dense: NDArray, iterations: int) -> Solution:
    """A `Solution` from the values of all (sampled) codes of signal i."""
    chosen = np.flatnonzero(dense)
    values = dense[chosen]
    indices = chosen if problem.sample is None else problem.sample[chosen]
    return Solution(indices, values, certificate(problem, i, signal, indices, values), iterations)


def collect(problem: Problem, solutions: Sequence[Solution], tol: float) -> Result:
    """Put the solutions of all signals of a problem together."""
    judged = [judge(s.certificate.gap, s.certificate.objective, tol) for s in solutions]
    dtype = problem.filters.dtype
    return Result(
        SparseCodes(
            [s.indices for s in solutions],
            [s.values.astype(dtype, copy=False) for s in solutions],
            [problem.geometry.grid] * len(solutions),
            problem.n_filters,
        ),
        np.array([s.certificate.objective for s in solutions]),
        np.array([s.certificate.gap for s in solutions]),
        tuple(judged),
        np.array([s.iterations for s in solutions]),
        [s.certificate.residual.astype(dtype, copy=False) for s in solutions],
    )
