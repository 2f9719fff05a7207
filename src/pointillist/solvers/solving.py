"""The way that a problem calls for: in the span of its filters where it has many channels, by tiles where it is large."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import Problem, lambda_max
from pointillist.reprs import shown
from pointillist.solvers.base import Result, Solver, merge_results
from pointillist.solvers.spanning import Projection, Span, differs_by_channel, filter_span
from pointillist.solvers.tiles import Progress, by_tiles

__all__ = ["Progress", "filter_span", "largest_penalties", "solve"]


def solve(
    solver: Solver,
    span: Span | None,
    problem: Problem,
    signals: list[NDArray],
    start: SparseCodes | None,
    n_jobs: int,
    progress: Progress | None,
) -> Result:
    """Solve a problem, in the span of its filters where that has fewer channels and the weights allow it."""
    if span is None or differs_by_channel(problem.weights, int(problem.has_own_weights)):
        coder = by_tiles(solver, problem, progress)
        found = coder.solve(coder.prepare(problem), signals, n_jobs=n_jobs, start=start)
        if not isinstance(found, Result) or len(found.statuses) != len(signals):
            raise TypeError(
                f"solver {type(solver).__name__}: solve must return a Result for all {len(signals)} signals, as certify "
                f"makes it, got {shown(found)}"
            )
        return found
    projection = Projection(span, problem, signals)
    inside = solve(solver, None, projection.smaller, projection.inside, start, n_jobs, progress)
    found = projection.restore(inside)
    # Where rounding hides whether an answer is good enough, the last steps are made outside of the span.
    tol = getattr(solver, "tol", np.inf)
    doubtful = np.flatnonzero((inside.gap <= tol) & (found.gap > tol))
    if len(doubtful) == 0:
        return found
    own = problem.weights if problem.has_own_weights else None
    some = problem if own is None else replace(problem, weights=own[doubtful])
    begin = found.codes[doubtful] if getattr(solver, "takes_start", False) else None
    again = solve(solver, None, some, [signals[i] for i in doubtful], begin, n_jobs, None)
    good = np.setdiff1d(np.arange(len(signals)), doubtful)
    return merge_results([_chosen(found, good), again], [good.tolist(), doubtful.tolist()]) if len(good) else again


def _chosen(result: Result, members: NDArray) -> Result:
    """The result of some signals."""
    return Result(
        result.codes[members],
        result.objective[members],
        result.gap[members],
        tuple(result.statuses[i] for i in members),
        result.iterations[members],
        [result.residuals[i] for i in members],
    )


def largest_penalties(span: Span | None, problem: Problem, signals: list[NDArray]) -> NDArray:
    """Compute `lambda_max` of signals, in the span of the filters where that has fewer channels."""
    if span is None or differs_by_channel(problem.weights, int(problem.has_own_weights)):
        return lambda_max(problem, signals)
    projection = Projection(span, problem, signals)
    return lambda_max(projection.smaller, projection.inside)
