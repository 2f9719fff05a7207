"""Circular problems for a solver that does not wrap around: turn the circle, solve what lies inside, turn on.

Cut open at a seam, a circular problem is one with boundary="valid" for all codes whose filters stay clear of the seam.
Solving these with the others fixed, for seams that together spare every code, is block descent on the whole problem. It
ends when the certificate of the whole problem holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pointillist.model.codes import SparseCodes
from pointillist.model.geometry import Geometry
from pointillist.model.problem import Problem, certificate
from pointillist.solvers.base import Result, Solution, Solver, collect


@dataclass(frozen=True, kw_only=True)
class Turning:
    """Solve circular problems with a solver for boundary="valid".

    Parameters
    ----------
    make : callable
        A solver of boundary="valid" for a given tolerance.
    tol : float
        Relative duality gap of the whole problem to reach.
    max_turns : int
        Times to go around at most.
    """

    make: Callable[[float], Solver]
    tol: float
    max_turns: int = 100

    def prepare(self, problem: Problem) -> TurningState:
        """Cut the problem open at every seam."""
        geometry = problem.geometry
        turns = [_turns(length, size) for length, size in zip(geometry.signal, geometry.filter, strict=True)]
        return TurningState(problem, [_cut(problem, turn) for turn in product(*turns)])

    def solve(
        self, state: TurningState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space), from zero or from `start`."""
        problem = state.problem
        dtype = problem.filters.dtype
        codes = [np.empty(0, np.int64)] * len(signals) if start is None else list(start.indices)
        values = [np.empty(0, dtype)] * len(signals) if start is None else list(start.values)
        tol, rounds = 0.5 * self.tol, np.zeros(len(signals), int)
        for turn in range(1, self.max_turns + 1):
            inner = self.make(tol if turn > 1 else min(0.1, 10 * tol))  # borders first: they will move the rest
            for cut in state.cuts:
                done = _solve_inside(inner, problem, cut, signals, codes, values, n_jobs)
                rounds += done.iterations
            found = [
                certificate(problem, i, *answer) for i, answer in enumerate(zip(signals, codes, values, strict=True))
            ]
            if all(one.gap <= self.tol or not np.isfinite(one.objective) for one in found):
                break
            tol *= 0.7
        parts = zip(codes, values, found, rounds.tolist(), strict=True)
        return collect(problem, [Solution(*answer) for answer in parts], self.tol)


@dataclass(frozen=True, eq=False)
class Cut:
    """A problem cut open: what lies inside, and where its codes belong on the circle."""

    shift: tuple[int, ...]
    problem: Problem
    outer: NDArray  # (inside codes,) flat code on the circle, ascending inside
    inner: NDArray  # (all codes,) flat code inside, −1 for those that the seam cuts

    def turn(self, signal: NDArray) -> NDArray:
        """A signal (channels, *space) with the seam at its border."""
        return np.roll(signal, self.shift, tuple(range(1, len(self.shift) + 1)))


@dataclass(frozen=True, eq=False)
class TurningState:
    """A circular problem and its cuts."""

    problem: Problem
    cuts: list[Cut]


def _turns(length: int, size: int) -> list[int]:
    """Where to cut an axis: far from each other, so that what one cut spoils lies deep inside of another."""
    count = -(-length // (length - size + 1))
    return [n * length // count for n in range(count)]


def _cut(problem: Problem, turn: tuple[int, ...]) -> Cut:
    """The problem for codes whose filters start `turn` … `turn` + room − 1 samples into the circle."""
    geometry, shift = problem.geometry, tuple(-t for t in turn)
    inside = Geometry(geometry.signal, geometry.filter, geometry.channels, "valid")
    axes = [
        (np.arange(room) + first + offset) % length
        for room, first, offset, length in zip(inside.grid, turn, geometry.offset, geometry.signal, strict=True)
    ]
    positions = np.ravel_multi_index(np.meshgrid(*axes, indexing="ij"), geometry.grid).ravel()
    outer = (np.arange(problem.n_filters)[:, None] * geometry.n_positions + positions).ravel()
    inner = np.full(problem.n_filters * geometry.n_positions, -1, np.int64)
    inner[outer] = np.arange(len(outer))
    penalty = problem.penalty if problem.penalty.shape[1] == 1 else np.ascontiguousarray(problem.penalty[:, positions])
    weights = problem.weights
    if weights is not None:
        weights = np.roll(weights, shift, tuple(range(weights.ndim - len(shift), weights.ndim)))
    sample = problem.sample
    if sample is not None:
        sample = np.sort(inner[sample][inner[sample] >= 0])
    cut = replace(problem, geometry=inside, penalty=penalty, weights=weights, sample=sample)
    return Cut(shift, cut, outer, inner)


def _solve_inside(
    solver: Solver,
    problem: Problem,
    cut: Cut,
    signals: Sequence[NDArray],
    codes: list[NDArray],
    values: list[NDArray],
    n_jobs: int,
) -> Result:
    """Solve for all codes inside with the others fixed; `codes` and `values` are brought up to date."""
    targets, begins, fixed = [], [], []
    for signal, code, value in zip(signals, codes, values, strict=True):
        place = cut.inner[code]
        out = place < 0
        fit = problem.exact_operator.synthesise(code[out], value[out].astype(np.float64))
        targets.append(cut.turn(signal - fit).astype(signal.dtype))
        order = np.argsort(place[~out])
        begins.append((place[~out][order], value[~out][order]))
        fixed.append((code[out], value[out]))
    grids = [cut.problem.geometry.grid] * len(signals)
    start = SparseCodes([b[0] for b in begins], [b[1] for b in begins], grids, problem.n_filters)
    result = solver.solve(solver.prepare(cut.problem), targets, n_jobs=n_jobs, start=start)
    for i, (code, value) in enumerate(fixed):
        joined = np.concatenate([code, cut.outer[result.codes.indices[i]]])
        order = np.argsort(joined)
        codes[i] = joined[order]
        values[i] = np.concatenate([value, result.codes.values[i]])[order]
    return result
