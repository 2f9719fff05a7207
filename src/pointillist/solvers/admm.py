"""The paper's solver: ADMM on the sampled codes in the spatial domain (Eq. 3), over-relaxed.

The quadratic step lives in `quadratic`; here is the iteration itself, for all signals of a batch at once so that they
share a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.parallel import parallel
from pointillist.problem import Problem
from pointillist.solvers.base import Result, Solution, certified, check_numbers, collect
from pointillist.solvers.quadratic import SampledOperator, SmallSystem, check_banded, choose_system, make_system


@dataclass(frozen=True, kw_only=True)
class AdmmSettings:
    """The settings that `SampledADMM` and `FrequencyADMM` share."""

    takes_start: ClassVar[bool] = False

    max_iter: int = 1000
    tol: float = 1e-3
    relaxation: float = 1.8
    rho: float | None = None
    check_every: int = 10

    def __post_init__(self) -> None:
        check_numbers(self)

    def _rho_for(self, problem: Problem) -> float:
        return 10 * float(np.mean(problem.penalty)) if self.rho is None else self.rho

    def rescaled(self, power: int) -> Self:
        """These settings for w ‖d‖² divided by 2 to a power."""
        return self if self.rho is None else replace(self, rho=float(np.ldexp(self.rho, -power)))

    def _is_time_to_check(self, iteration: int) -> bool:
        return iteration == self.max_iter or (self.tol > 0 and iteration % self.check_every == 0)


@dataclass(frozen=True, kw_only=True)
class SampledADMM(AdmmSettings):
    """The paper's ADMM on the sampled codes.

    Parameters
    ----------
    max_iter : int
        Iterations at most. The paper learns with 10 and inpaints with 50.
    tol : float
        Stop when the relative duality gap of every signal is below; checked every `check_every` iterations. 0 runs all.
    relaxation : float
        α in (0, 2).
    rho : float or None
        Augmented Lagrangian penalty; None is 10 times the mean penalty for filters of norm one, the paper's choice.
    quadratic : {"auto", "cholesky", "cg"}
        How the quadratic step is solved; "auto" counts operations.
    memory : float
        Bytes that a Cholesky factor, and the iterates of one chunk of signals, may take.
    check_every : int
        Iterations between two evaluations of the gap.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> solver = pt.solvers.SampledADMM(rho=1.0)
    >>> pt.encode(np.eye(1, 30, 9), [[0.6, 0.8]], penalty=0.1, solver=solver).status.value
    'converged'
    """

    quadratic: str = "auto"
    memory: float = 1e9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.quadratic, str) or self.quadratic not in ("auto", "cholesky", "cg"):
            raise ValueError(f'quadratic must be "auto", "cholesky" or "cg", got {self.quadratic!r}')

    def prepare(self, problem: Problem) -> AdmmState:
        """Choose ρ; factors are made in `solve`, where the number of signals that share one is known."""
        return AdmmState(problem, self._rho_for(problem))

    def solve(
        self, state: AdmmState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space); ADMM begins at zero whatever `start` is."""
        solutions: list[Solution] = []
        chunk = 1 if state.problem.has_own_weights else self._chunk(state.problem)
        system: SmallSystem | None = None
        for first in range(0, len(signals), chunk):
            members = range(first, min(first + chunk, len(signals)))
            operator = state.operator(first)
            if system is None or state.problem.has_own_weights:
                sharing = 1 if state.problem.has_own_weights else len(signals)
                system = self._system(operator, state.rho, sharing)
            solutions += self._iterate(state, operator, system, members, signals, n_jobs)
        return collect(state.problem, solutions, self.tol)

    def _chunk(self, problem: Problem) -> int:
        codes = problem.operator.n_codes if problem.drawn is None else len(problem.drawn)
        return max(1, int(self.memory // (6 * codes * problem.filters.dtype.itemsize + 1)))

    def _system(self, operator: SampledOperator, rho: float, n_signals: int) -> SmallSystem:
        kind = self.quadratic
        if kind == "auto":
            kind = choose_system(operator, n_signals, self.max_iter, self.memory)
        elif kind == "cholesky":
            check_banded(operator)
        return make_system(kind, operator, rho)

    def _iterate(
        self,
        state: AdmmState,
        operator: SampledOperator,
        system: SmallSystem,
        members: range,
        signals: Sequence[NDArray],
        n_jobs: int,
    ) -> list[Solution]:
        problem, rho = state.problem, problem_scalar(state.problem, state.rho)
        alpha = problem_scalar(problem, self.relaxation)
        images = np.stack([signals[i] for i in members])
        seen = images if operator.roots is None else operator.roots * images
        at_b = np.stack(parallel(operator.adjoint, seen, n_jobs))
        threshold = (state.thresholds / rho).astype(at_b.dtype)
        z, u = np.zeros_like(at_b), np.zeros_like(at_b)
        solutions: list[Solution] = []
        for iteration in range(1, self.max_iter + 1):
            q = at_b + rho * (z - u)
            small = system.solve(np.stack(parallel(operator.forward, q, n_jobs)), n_jobs)
            x = (q - np.stack(parallel(operator.adjoint, small, n_jobs))) / rho
            x = alpha * x + (1 - alpha) * z
            z = soft_threshold(x + u, threshold, nonnegative=problem.nonnegative)
            u = u + x - z
            if self._is_time_to_check(iteration):
                solutions = [certified(problem, i, signals[i], z[i - members[0]], iteration) for i in members]
                if all(s.certificate.gap <= self.tol for s in solutions):
                    break
        return solutions


@dataclass(frozen=True, eq=False)
class AdmmState:
    """A problem with its ρ."""

    problem: Problem
    rho: float

    @property
    def thresholds(self) -> NDArray:
        """λ for each sampled code."""
        problem = self.problem
        if problem.sample is not None:
            return problem.penalty_at(problem.sample)
        positions = problem.geometry.n_positions
        return np.broadcast_to(problem.penalty, (problem.n_filters, positions)).reshape(-1)

    def operator(self, i: int) -> SampledOperator:
        """A for signal i."""
        weights = self.problem.weights_of(i)
        return SampledOperator(self.problem, None if weights is None else np.sqrt(weights))


def problem_scalar(problem: Problem, value: float) -> np.floating:
    """A number in the problem's precision, so that arrays keep theirs."""
    return problem.filters.dtype.type(value)


def soft_threshold(x: NDArray, threshold: NDArray, *, nonnegative: bool = False) -> NDArray:
    """The proximal step of the penalty: shrink towards zero by `threshold`."""
    if nonnegative:
        return np.maximum(x - threshold, 0)
    return np.sign(x) * np.maximum(np.abs(x) - threshold, 0)
