"""The frequency-domain reference: ADMM with a Sherman-Morrison (Woodbury) step, circular boundaries only.

This is what the paper compares with, and the right choice for very large filters. It solves the whole problem; sampling
and weights have no place in the frequency domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.parallel import parallel
from pointillist.problem import Problem
from pointillist.solvers.admm import AdmmSettings, soft_threshold
from pointillist.solvers.base import Result, Solution, certified, collect


@dataclass(frozen=True, kw_only=True)
class FrequencyADMM(AdmmSettings):
    """Solver by ADMM in the frequency domain, for ``boundary="circular"`` only.

    Parameters
    ----------
    max_iter : int
        Iterations at most.
    tol : float
        Relative duality gap at which a signal is done, looked at every `check_every` iterations. 0 runs all iterations.
    relaxation : float
        α in (0, 2).
    rho : float or None
        Augmented Lagrangian penalty; None is 10 times the mean penalty for filters of norm one.
    check_every : int
        Iterations between two evaluations of the gap.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> solver = pt.solvers.FrequencyADMM()
    >>> pt.encode(np.eye(1, 30, 9), [[0.6, 0.8]], penalty=0.1, solver=solver, boundary="circular").status.value
    'converged'
    """

    def prepare(self, problem: Problem) -> FrequencyState:
        """Transform the filters and invert the small matrix of every frequency."""
        geometry = problem.geometry
        if geometry.boundary != "circular":
            raise ValueError(
                f'solver="fft" solves circular problems only, got boundary={geometry.boundary!r}; '
                'use boundary="circular", or solver="cd" or "admm"'
            )
        if problem.drawn is not None or problem.weights is not None:
            raise ValueError('solver="fft" takes neither sampling nor weights; use solver="cd" or "admm"')
        rho = self._rho_for(problem)
        axes = tuple(range(-len(geometry.signal), 0))
        # A code at i puts the filter's centre on sample i: roll the zero-padded filters so that the centre is at 0.
        padded = np.zeros((problem.n_filters, geometry.channels, *geometry.signal), problem.filters.dtype)
        corner: tuple[Any, ...] = (..., *(slice(f) for f in geometry.filter))
        padded[corner] = problem.filters
        padded = np.roll(padded, [-o for o in geometry.offset], axes)
        spectra = np.moveaxis(scipy.fft.rfftn(padded, axes=axes), 1, 0)  # (channels, n_filters, *frequencies)
        gram = np.einsum("ck...,dk...->...cd", spectra, spectra.conj())
        gram += rho * np.eye(geometry.channels)
        return FrequencyState(problem, rho, spectra, np.linalg.inv(gram), axes)

    def solve(
        self, state: FrequencyState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space); ADMM begins at zero whatever `start` is."""
        solutions = parallel(lambda i: self._solve_one(state, i, signals[i]), range(len(signals)), n_jobs)
        return collect(state.problem, solutions, self.tol)

    def _solve_one(self, state: FrequencyState, i: int, signal: NDArray) -> Solution:
        problem = state.problem
        rho, alpha = problem.filters.dtype.type(state.rho), problem.filters.dtype.type(self.relaxation)
        n_filters, grid = problem.n_filters, problem.geometry.grid
        threshold = np.broadcast_to(problem.penalty / state.rho, (n_filters, problem.geometry.n_positions))
        threshold = threshold.astype(signal.dtype).reshape(n_filters, *grid)
        data = np.einsum("ck...,c...->k...", state.spectra.conj(), scipy.fft.rfftn(signal, axes=state.axes))
        z = np.zeros((n_filters, *grid), signal.dtype)
        u = np.zeros_like(z)
        for iteration in range(1, self.max_iter + 1):
            right = data + rho * scipy.fft.rfftn(z - u, axes=state.axes)
            x = scipy.fft.irfftn(state.quadratic_step(right), grid, axes=state.axes)
            x = alpha * x + (1 - alpha) * z
            z = soft_threshold(x + u, threshold, nonnegative=problem.nonnegative)
            u = u + x - z
            if self._is_time_to_check(iteration):
                solution = certified(problem, i, signal, z.reshape(-1), iteration)
                if solution.certificate.gap <= self.tol:
                    break
        return solution


@dataclass(frozen=True, eq=False)
class FrequencyState:
    """Spectra of the filters and the inverse small matrices."""

    problem: Problem
    rho: float
    spectra: NDArray  # (channels, n_filters, *frequencies)
    inverse: NDArray  # (*frequencies, channels, channels)
    axes: tuple[int, ...]

    def quadratic_step(self, right: NDArray) -> NDArray:
        """(D̂ᴴD̂ + ρ)⁻¹ for every frequency, by Woodbury's identity."""
        small = np.einsum("ck...,k...->c...", self.spectra, right)
        small = np.einsum("...cd,d...->c...", self.inverse, small)
        return (right - np.einsum("ck...,c...->k...", self.spectra.conj(), small)) / self.rho
