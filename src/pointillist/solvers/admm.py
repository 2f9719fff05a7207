"""The paper's solver, over-relaxed ADMM on the sampled codes (Eq. 3), and its reference in the frequency domain.

Both share one iteration and differ in its quadratic step, x = (ρ I + AᵀA)⁻¹ q. `SampledADMM` takes A = √w D restricted to
the sample. A is fat, with many more codes than samples, so by Woodbury's identity (ρ I + A Aᵀ)⁻¹ is all that is needed. That
matrix is banded: one Cholesky factor is shared by all signals of a batch. Where the band would not fit its memory budget, or
does not exist (circular boundaries, channels), conjugate gradients with a circulant preconditioner need products only.
`FrequencyADMM` inverts a small matrix for every frequency instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Self

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.kernels import convolution
from pointillist.kernels.convolution import SPARE_SAMPLES, row_offsets, strides_of
from pointillist.kernels.vectors import width_of
from pointillist.parallel import parallel
from pointillist.problem import Problem
from pointillist.solvers.base import Result, Solution, certified, check_numbers, collect, rescaled_number

log = logging.getLogger(__name__)

System = Callable[[NDArray, int], NDArray]
"""(ρ I + A Aᵀ)⁻¹ applied to signals (n, channels, *space) by a number of threads."""
Step = Callable[[NDArray], NDArray]
"""(ρ I + AᵀA)⁻¹ applied to the codes (n, n_codes) of n signals."""


@dataclass(frozen=True, kw_only=True)
class AdmmSettings:
    """The settings and the iteration that `SampledADMM` and `FrequencyADMM` share."""

    takes_start: ClassVar[bool] = False

    max_iter: int = 1000
    tol: float = 1e-3
    relaxation: float = 1.8
    rho: float | None = None
    check_every: int = 10

    def __post_init__(self) -> None:
        check_numbers(self)

    def _rho_for(self, problem: Problem) -> float:
        """ρ of a problem: the given one, or the paper's choice."""
        return 10 * float(np.mean(problem.penalty)) if self.rho is None else self.rho

    def rescaled(self, power: int) -> Self:
        """These settings for w ‖d‖² divided by 2 to the `power`."""
        return self if self.rho is None else replace(self, rho=rescaled_number(self.rho, power))

    def _iterate(
        self, problem: Problem, signals: Sequence[NDArray], members: Sequence[int], at_b: NDArray, step: Step
    ) -> list[Solution]:
        """Iterate for all signals numbered `members` at once, whose Aᵀ b is given, until their gaps are small."""
        rho, alpha = at_b.dtype.type(self._rho_for(problem)), at_b.dtype.type(self.relaxation)
        prices = problem.penalty_at(problem.sample)
        if problem.sample is None:
            prices = np.broadcast_to(prices, (problem.n_filters, problem.geometry.n_positions)).reshape(-1)
        threshold = (prices / rho).astype(at_b.dtype)
        z, u = np.zeros_like(at_b), np.zeros_like(at_b)
        solutions: list[Solution] = []
        for iteration in range(1, self.max_iter + 1):
            x = step(at_b + rho * (z - u))
            x = alpha * x + (1 - alpha) * z
            z = soft_threshold(x + u, threshold, nonnegative=problem.nonnegative)
            u = u + x - z
            if iteration == self.max_iter or (self.tol > 0 and iteration % self.check_every == 0):
                found = zip(members, z, strict=True)
                solutions = [certified(problem, i, signals[i], codes, iteration) for i, codes in found]
                if all(one.certificate.gap <= self.tol for one in solutions):
                    break
        return solutions


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

    def prepare(self, problem: Problem) -> Problem:
        """Return the problem: factors are made in `solve`, where the number of signals that share one is known."""
        return problem

    def solve(
        self, state: Problem, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space); ADMM begins at zero whatever `start` is."""
        rho, solutions = self._rho_for(state), list[Solution]()
        chunk, sharing = 1, 1
        if not state.has_own_weights:
            codes = SampledOperator(state, None).n_codes
            chunk = max(1, int(self.memory // (6 * codes * state.filters.dtype.itemsize + 1)))
            sharing = len(signals)
        for first in range(0, len(signals), chunk):
            if first == 0 or state.has_own_weights:
                weights = state.weights_of(first)
                operator = SampledOperator(state, None if weights is None else np.sqrt(weights))
                system = make_system(self.quadratic, operator, rho, sharing, self.max_iter, self.memory)

            def step(q: NDArray, operator: SampledOperator = operator, system: System = system) -> NDArray:
                small = system(np.stack(parallel(operator.forward, q, n_jobs)), n_jobs)
                return (q - np.stack(parallel(operator.adjoint, small, n_jobs))) / q.dtype.type(rho)

            members = range(first, min(first + chunk, len(signals)))
            images = np.stack([signals[i] for i in members])
            seen = images if operator.roots is None else operator.roots * images
            solutions += self._iterate(
                state, signals, members, np.stack(parallel(operator.adjoint, seen, n_jobs)), step
            )
        return collect(state, solutions, self.tol)


@dataclass(frozen=True, kw_only=True)
class FrequencyADMM(AdmmSettings):
    """Solver by ADMM in the frequency domain with a Woodbury step, for ``boundary="circular"`` only.

    This is what the paper compares with, and the right choice for very large filters. It solves the whole problem; sampling
    and weights have no place in the frequency domain.

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

    def prepare(self, problem: Problem) -> tuple[Problem, Step]:
        """Transform the filters and invert the small matrix of every frequency; returns the problem and its step."""
        geometry, filters = problem.geometry, problem.filters
        if geometry.boundary != "circular":
            raise ValueError(
                f'solver="fft" solves circular problems only, got boundary={geometry.boundary!r}; '
                'use boundary="circular", or solver="cd" or "admm"'
            )
        if problem.drawn is not None or problem.weights is not None:
            raise ValueError('solver="fft" takes neither sampling nor weights; use solver="cd" or "admm"')
        rho, axes = self._rho_for(problem), tuple(range(-len(geometry.signal), 0))
        # A code at i puts the filter's centre on sample i: roll the zero-padded filters so that the centre is at 0.
        ends = [(0, n - f) for n, f in zip(geometry.signal, geometry.filter, strict=True)]
        padded = np.roll(np.pad(filters, [(0, 0), (0, 0), *ends]), [-o for o in geometry.offset], axes)
        spectra = scipy.fft.rfftn(padded, axes=axes)  # (n_filters, channels, *frequencies)
        gram = np.einsum("kc...,kd...->...cd", spectra, spectra.conj())
        inverse = np.linalg.inv(gram + rho * np.eye(geometry.channels))

        def step(q: NDArray) -> NDArray:
            right = scipy.fft.rfftn(q.reshape(-1, len(filters), *geometry.grid), axes=axes)
            small = np.einsum("kc...,nk...->nc...", spectra, right)
            small = np.einsum("...cd,nd...->nc...", inverse, small)
            solved = (right - np.einsum("kc...,nc...->nk...", spectra.conj(), small)) / rho
            return scipy.fft.irfftn(solved, geometry.grid, axes=axes).reshape(q.shape).astype(q.dtype, copy=False)

        return problem, step

    def solve(
        self,
        state: tuple[Problem, Step],
        signals: Sequence[NDArray],
        *,
        n_jobs: int = 1,
        start: SparseCodes | None = None,
    ) -> Result:
        """Solve for the codes of signals (channels, *space); ADMM begins at zero whatever `start` is."""
        problem, step = state

        def one(i: int) -> Solution:
            return self._iterate(problem, signals, [i], problem.operator.correlate(signals[i]).reshape(1, -1), step)[0]

        return collect(problem, parallel(one, range(len(signals)), n_jobs), self.tol)


def soft_threshold(x: NDArray, threshold: NDArray, *, nonnegative: bool = False) -> NDArray:
    """The proximal step of the penalty: shrink towards zero by `threshold`."""
    if nonnegative:
        return np.maximum(x - threshold, 0)
    return np.sign(x) * np.maximum(np.abs(x) - threshold, 0)


@dataclass(frozen=True, eq=False)
class SampledOperator:
    """A = √w D restricted to the sampled codes, for signals that share their weights."""

    problem: Problem
    roots: NDArray | None  # √w, (channels, *space)

    @property
    def n_codes(self) -> int:
        drawn = self.problem.drawn
        return self.problem.operator.n_codes if drawn is None else len(drawn)

    def forward(self, values: NDArray) -> NDArray:
        """A times the values of all sampled codes, a signal (channels, *space)."""
        operator, geometry = self.problem.operator, self.problem.geometry
        flat = np.zeros(geometry.padded_length, values.dtype)
        codes = self.problem.sample
        if codes is None:
            codes = np.flatnonzero(values)
            values = values[codes]
        convolution.synthesise(operator.layout, codes, values, flat)
        signal = geometry.gather(flat)
        return signal if self.roots is None else self.roots * signal

    def adjoint(self, signal: NDArray) -> NDArray:
        """Aᵀ times a signal: one value for each sampled code."""
        weighted = signal if self.roots is None else self.roots * signal
        return self.problem.operator.correlate(weighted, self.problem.sample).reshape(-1)


def make_system(
    kind: str, operator: SampledOperator, rho: float, n_signals: int = 1, iterations: int = 1, memory: float = 1e9
) -> System:
    """(ρ I + A Aᵀ)⁻¹ by a Cholesky factor ("cholesky"), by conjugate gradients ("cg"), or by what is cheaper ("auto").

    As in the paper the factor pays when signals share it, if it fits a memory budget in bytes. The decision rests on counts
    of products, never on a clock: a quarter for those of level-3 BLAS, eight steps of conjugate gradients.
    """
    geometry, codes = operator.problem.geometry, operator.n_codes
    samples, taps, width = prod(geometry.signal), prod(geometry.filter), band_width(geometry.signal, geometry.filter)
    is_banded = geometry.boundary != "circular" and geometry.channels == 1
    if kind == "cholesky" and not is_banded:
        raise ValueError(
            'quadratic="cholesky" needs one channel and a boundary other than circular; use quadratic="cg"'
        )
    fits = samples * (width + 1) * operator.problem.filters.dtype.itemsize <= memory
    saved = n_signals * iterations * (32 * codes * taps - 4 * samples * width)
    if kind == "auto" and is_banded and fits and codes * taps**2 + samples * width**2 / 4 < saved:
        kind = "cholesky"
    return banded_cholesky(operator, rho) if kind == "cholesky" else conjugate_gradients(operator, rho)


def band_width(signal: tuple[int, ...], filter_size: tuple[int, ...]) -> int:
    """Largest distance, in raster order, of two samples that one filter touches."""
    return int(sum((f - 1) * stride for f, stride in zip(filter_size, strides_of(signal), strict=True)))


def banded_cholesky(operator: SampledOperator, rho: float) -> System:
    """One banded Cholesky factor of ρ I + A Aᵀ, shared by all signals."""
    problem, geometry = operator.problem, operator.problem.geometry
    layout, dtype = problem.operator.layout, problem.filters.dtype
    samples, bandwidth = prod(geometry.signal), band_width(geometry.signal, geometry.filter)
    places = geometry.spread(np.arange(1, samples + 1, dtype=np.int64).reshape(1, *geometry.signal)) - 1
    roots = np.ones(1, dtype) if operator.roots is None else operator.roots.astype(dtype)
    padded_roots = geometry.spread(np.broadcast_to(roots, (1, *geometry.signal)))
    band = np.zeros(samples * (bandwidth + 1) + SPARE_SAMPLES, dtype)
    codes = problem.sample if problem.sample is not None else np.arange(problem.operator.n_codes)
    offsets = row_offsets((1, *geometry.filter), (1, *geometry.signal), width_of(layout.run_lanes))
    convolution.add_gram(layout, codes, places, padded_roots, offsets, bandwidth, band)
    matrix = band[: samples * (bandwidth + 1)].reshape(samples, bandwidth + 1).T
    matrix[0] += dtype.type(rho)
    factor = scipy.linalg.cholesky_banded(matrix, overwrite_ab=True, lower=True, check_finite=False)

    def solve(signals: NDArray, n_jobs: int) -> NDArray:
        columns = signals.reshape(len(signals), -1).T
        solved = scipy.linalg.cho_solve_banded((factor, True), columns, check_finite=False)
        return np.ascontiguousarray(solved.T).reshape(signals.shape)

    return solve


def conjugate_gradients(operator: SampledOperator, rho: float) -> System:
    """Matrix-free products, preconditioned by the circulant matrix that A Aᵀ concentrates around."""
    problem, geometry = operator.problem, operator.problem.geometry
    shape, dtype = (geometry.channels, *geometry.signal), problem.filters.dtype
    size, axes = prod(shape), tuple(range(1, len(shape)))
    tolerance = 1e-6 if dtype == np.float32 else 1e-12

    def product(flat: NDArray) -> NDArray:
        image = flat.reshape(shape).astype(dtype, copy=False)
        return (rho * image + operator.forward(operator.adjoint(image))).ravel()

    # Squares of what float32 holds may be too large for it: products are in float32, the iteration is not.
    matrix = scipy.sparse.linalg.LinearOperator((size, size), product, dtype=np.float64)
    preconditioner = None
    if geometry.channels == 1:
        spectra = scipy.fft.rfftn(problem.filters[:, 0].astype(np.float64), geometry.signal, axes=axes)
        rate = operator.n_codes / problem.operator.n_codes
        seen = 1.0 if operator.roots is None else float(np.mean(operator.roots**2))
        mean = rho + rate * seen * np.sum(np.abs(spectra) ** 2, axis=0)

        def precondition(flat: NDArray) -> NDArray:
            return scipy.fft.irfftn(
                scipy.fft.rfftn(flat.reshape(shape), axes=axes) / mean, shape[1:], axes=axes
            ).ravel()

        preconditioner = scipy.sparse.linalg.LinearOperator((size, size), precondition, dtype=np.float64)

    def solve_one(signal: NDArray) -> NDArray:
        right = signal.ravel().astype(np.float64)
        answer, unfinished = scipy.sparse.linalg.cg(matrix, right, rtol=tolerance, maxiter=500, M=preconditioner)
        if unfinished:
            log.warning("conjugate gradients stopped after %d steps short of their tolerance", unfinished)
        return answer.reshape(shape).astype(dtype, copy=False)

    return lambda signals, n_jobs: np.stack(parallel(solve_one, signals, n_jobs))
