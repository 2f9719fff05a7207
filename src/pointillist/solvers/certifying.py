"""Results for solvers of one's own: codes become a `Result` with the certificate that the package's own answers have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import Problem, certificate
from pointillist.solvers.base import Result, Solution, collect
from pointillist.validation import check_arguments

_TOL = 1e-3


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
    _check(problem, signals, codes)
    solutions = [
        Solution(index, value, certificate(problem, i, signal, index, value), iterations)
        for i, (signal, index, value) in enumerate(zip(signals, codes.indices, codes.values, strict=True))
    ]
    return collect(problem, solutions, _TOL if tol is None else float(tol))


def _check(problem: Problem, signals: Sequence[NDArray], codes: SparseCodes) -> None:
    """Refuse codes that are no answer to the problem."""
    if not isinstance(codes, SparseCodes):
        raise ValueError(f"codes must be SparseCodes, got {type(codes).__name__}; SparseCodes.from_dense makes them")
    shape = (problem.geometry.channels, *problem.geometry.signal)
    if not isinstance(signals, Sequence) or any(np.shape(signal) != shape for signal in signals):
        raise ValueError(f"signals must be a list of arrays of shape {shape}, as solve was given them")
    expected = [problem.geometry.grid] * len(signals)
    if codes.n_filters != problem.n_filters or codes.grids != expected:
        raise ValueError(
            f"codes must be of {len(signals)} signals and {problem.n_filters} filters on the grid {problem.geometry.grid}, "
            f"got {codes!r}"
        )
    for i, (index, value) in enumerate(zip(codes.indices, codes.values, strict=True)):
        if problem.sample is not None and not np.isin(index, problem.sample).all():
            raise ValueError(f"codes of signal {i} are non-zero where problem.sample has no code")
        if problem.nonnegative and np.any(value < 0):
            raise ValueError(f"codes of signal {i} are negative, and the problem is nonnegative")
