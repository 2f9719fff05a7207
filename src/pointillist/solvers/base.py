"""The protocol of solvers for the codes (prepare once, solve often) and their results."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import Certificate, Problem, certificate
from pointillist.validation import check_arguments, is_number


class Status(enum.Enum):
    """Ways in which a solver stops; `advice` says what to do about it.

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
    """Status of several signals together: that of the one that fared worst."""
    return max(statuses, key=list(Status).index, default=Status.CONVERGED)


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
    """Check a frozen dataclass of settings by the rules for their names; its `tol` must be a number.

    Numbers become Python's: kernels are compiled for those, and know nothing of some of NumPy's.
    """
    check_arguments(**{field.name: getattr(settings, field.name) for field in fields(settings)})
    if settings.tol is None:
        raise ValueError("tol must be a number, got None")
    for field in fields(settings):
        if is_number(value := getattr(settings, field.name)):
            object.__setattr__(settings, field.name, (int if isinstance(field.default, int) else float)(value))


def rescaled_number(number: float, power: int) -> float:
    """A number divided by 2 to the `power`, within what single precision holds."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.clip(np.ldexp(number, -power), 2.0**-120, 2.0**120))


def result_of(
    problem: Problem,
    indices: list[Any],
    values: list[Any],
    objective: NDArray,
    gap: NDArray,
    iterations: NDArray,
    residuals: list[Any],
    tol: float,
) -> Result:
    """The result of some signals of a problem, each of them judged by its objective and gap."""
    statuses = np.full(len(gap), Status.ITERATION_LIMIT, dtype=object)
    statuses[gap <= tol] = Status.CONVERGED
    statuses[~(np.isfinite(objective) & np.isfinite(gap))] = Status.DIVERGED
    codes = SparseCodes.trusted(indices, values, [problem.geometry.grid] * len(indices), problem.n_filters)
    return Result(codes, objective, gap, tuple(statuses), iterations, residuals)


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
    dtype, found = problem.filters.dtype, [one.certificate for one in solutions]
    return result_of(
        problem,
        [one.indices for one in solutions],
        [one.values.astype(dtype, copy=False) for one in solutions],
        np.array([one.objective for one in found]),
        np.array([one.gap for one in found]),
        np.array([one.iterations for one in solutions]),
        [one.residual.astype(dtype, copy=False) for one in found],
        tol,
    )


def certify(
    problem: Problem,
    signals: Sequence[NDArray],
    codes: SparseCodes,
    *,
    tol: float | None = None,
    iterations: int = 0,
) -> Result:
    """Make the `Result` that a solver returns from the codes that it found: objective, gap, status, residual.

    Parameters
    ----------
    problem : Problem
        What `prepare` of the solver was given.
    signals : sequence of (channels, *space) arrays
        What `solve` was given.
    codes : SparseCodes
        One entry for each signal, on the grid of the problem.
    tol : float or None
        Relative duality gap within which an answer has converged; None is 1e-3.
    iterations : int
        How many the solver took, for the record.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> class Zero:
    ...     takes_start = False
    ...     def prepare(self, problem):
    ...         return problem
    ...     def solve(self, state, signals, *, n_jobs=1, start=None):
    ...         nothing = np.zeros((len(signals), state.n_filters, *state.geometry.grid), state.filters.dtype)
    ...         return pt.certify(state, signals, pt.SparseCodes.from_dense(nothing))
    >>> pt.encode(np.eye(1, 30, 9), [[0.6, 0.8]], penalty=2.0, solver=Zero())
    Result(converged, gaps up to 0, codes=SparseCodes(1 signals, on 30, 1 filters, 0 non-zeros))
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be the Problem that prepare was given, got {type(problem).__name__}")
    check_arguments(tol=tol, iterations=iterations)
    if not isinstance(codes, SparseCodes):
        raise ValueError(f"codes must be SparseCodes, got {type(codes).__name__}; SparseCodes.from_dense makes them")
    shape, grid = (problem.geometry.channels, *problem.geometry.signal), problem.geometry.grid
    if not isinstance(signals, Sequence) or any(np.shape(signal) != shape for signal in signals):
        raise ValueError(f"signals must be a list of arrays of shape {shape}, as solve was given them")
    if codes.n_filters != problem.n_filters or codes.grids != [grid] * len(signals):
        raise ValueError(
            f"codes must be of {len(signals)} signals and {problem.n_filters} filters on the grid {grid}, got {codes!r}"
        )
    solutions = []
    for i, (signal, index, value) in enumerate(zip(signals, codes.indices, codes.values, strict=True)):
        if problem.sample is not None and not np.isin(index, problem.sample).all():
            raise ValueError(f"codes of signal {i} are non-zero where problem.sample has no code")
        if problem.nonnegative and np.any(value < 0):
            raise ValueError(f"codes of signal {i} are negative, and the problem is nonnegative")
        solutions.append(Solution(index, value, certificate(problem, i, signal, index, value), iterations))
    return collect(problem, solutions, 1e-3 if tol is None else float(tol))
