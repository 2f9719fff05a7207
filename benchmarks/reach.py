"""Our quickest call that brings every image within a true excess of its optimum, found with no clock running.

A call can end after a number of rounds or at a tolerance. How many rounds suffice, and how loose the tolerance may be, is
known only because the optimum is; what a user gets without knowing it is the certified answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper.judging import quiet_encode

import pointillist as pt

EXCESS = 1e-3
CERTIFIED = 1e-3
"""The relative duality gap of a certified answer."""
_NEVER = 1e-12  # a tolerance that no call ends at
_RESTARTS = 20
_HALVINGS = 9  # of the logarithms of tolerances: the one that is found is within 2% of the loosest


@dataclass(frozen=True)
class Task:
    """Images (n, H, W) to be coded in one call."""

    images: NDArray
    filters: NDArray
    penalty: float
    boundary: str = "same"

    def solve(
        self, solver: pt.solvers.CoordinateDescent, n_jobs: int = -1, start: pt.SparseCodes | None = None
    ) -> pt.Result:
        """Code the images; what is timed."""
        options = {"boundary": self.boundary, "solver": solver, "n_jobs": n_jobs, "start": start}
        return quiet_encode(self.images, self.filters, self.penalty, **options)


class Optimum(NamedTuple):
    """Objectives of all images that exceed their optima by at most a relative `gap`, which is certified."""

    objective: NDArray
    gap: float

    def excess(self, objective: NDArray) -> float:
        """The worst relative excess of some objectives."""
        return float(np.max(objective / self.objective - 1))


def optimum_of(task: Task, tol: float = 1e-7) -> Optimum:
    """The optimum in float64, certified to `tol` where rounding lets it."""
    precise = Task(task.images.astype(np.float64), task.filters.astype(np.float64), task.penalty, task.boundary)
    solver = pt.solvers.CoordinateDescent(tol=tol, max_iter=2000)
    found = insist(lambda start: precise.solve(solver, start=start), tol)
    return Optimum(found.objective, float(np.max(found.gap)))


def insist(solve: Callable[[pt.SparseCodes | None], pt.Result], tol: float, *, restarts: int = _RESTARTS) -> pt.Result:
    """Solve again from where the last solve gave up, since the objective fell no more, until all gaps are certified."""
    result = solve(None)
    for _ in range(restarts):
        if np.all(result.gap <= tol):
            break
        result = solve(result.codes)
    return result


class Reached(NamedTuple):
    """What suffices for an excess, and what it was worth."""

    rounds: int
    tol: float
    excess: float
    """The worst true excess after so many rounds."""
    gap: float
    """The largest relative gap that was certified then."""

    @property
    def solvers(self) -> dict[str, pt.solvers.CoordinateDescent]:
        """The two ways to call for it, by name; which is quicker is for a clock to say."""
        return {
            f"{self.rounds} rounds": pt.solvers.CoordinateDescent(tol=_NEVER, max_iter=self.rounds),
            f"tol = {self.tol:.2g}": pt.solvers.CoordinateDescent(tol=self.tol),
        }


def reach(task: Task, optimum: Optimum, excess: float = EXCESS) -> Reached:
    """The fewest rounds and the loosest tolerance that suffice for an excess."""
    certified = task.solve(pt.solvers.CoordinateDescent(tol=excess))

    def after(rounds: int) -> pt.Result:
        return task.solve(pt.solvers.CoordinateDescent(tol=_NEVER, max_iter=rounds))

    def good(result: pt.Result) -> bool:
        return optimum.excess(result.objective) <= excess

    rounds = fewest(lambda count: good(after(count)), int(np.max(certified.iterations)))
    last = after(rounds)
    tol = loosest(lambda some: good(task.solve(pt.solvers.CoordinateDescent(tol=some))), excess)
    return Reached(rounds, tol, optimum.excess(last.objective), float(np.max(last.gap)))


def fewest(suffices: Callable[[int], bool], most: int) -> int:
    """The smallest count from 1 to `most` that suffices, where `most` does and more is never worse."""
    low, high = 0, max(most, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def loosest(suffices: Callable[[float], bool], tightest: float) -> float:
    """A tolerance from `tightest`, which suffices, to 1: about the largest that does."""
    low, high = tightest, 1.0
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if suffices(middle) else (low, middle)
    return low
