"""The quadratic step of the paper's ADMM: apply (ρ I + A Aᵀ)⁻¹ in signal space, A = √w D restricted to the sample.

A is fat (many more codes than samples), so by Woodbury's identity the small matrix is all that is needed. It is
banded: one Cholesky factor is shared by all signals of a batch. Where the band would not fit its memory budget, or does
not exist (circular boundaries, channels), conjugate gradients with a circulant preconditioner need products only.
"""

import logging
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray

from pointillist.kernels import banded, convolution
from pointillist.kernels.lanes import width_of
from pointillist.kernels.layout import SPARE_SAMPLES, flat_offsets, strides_of
from pointillist.parallel import parallel
from pointillist.problem import Problem

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SampledOperator:
    """A = √w D restricted to the sampled codes, for signals that share their weights."""

    problem: Problem
    roots: NDArray | None  # √w, (channels, *space)

    @property
    def n_codes(self) -> int:
        sample = self.problem.sample
        return self.problem.operator.n_codes if sample is None else len(sample)

    def forward(self, values: NDArray) -> NDArray:
        """A times the values of all sampled codes, a signal (channels, *space)."""
        operator, geometry = self.problem.operator, self.problem.geometry
        flat = np.zeros(geometry.padded_length, values.dtype)
        if self.problem.sample is None:
            convolution.synthesise_dense(operator.layout, values, flat)
        else:
            convolution.synthesise(operator.layout, self.problem.sample, values, flat)
        signal = geometry.gather(flat)
        return signal if self.roots is None else self.roots * signal

    def adjoint(self, signal: NDArray) -> NDArray:
        """Aᵀ times a signal: one value for each sampled code."""
        weighted = signal if self.roots is None else self.roots * signal
        return self.problem.operator.correlate(weighted, self.problem.sample).reshape(-1)


class SmallSystem(Protocol):
    """(ρ I + A Aᵀ)⁻¹ for a batch of signals (n, channels, *space)."""

    def solve(self, signals: NDArray, n_jobs: int) -> NDArray: ...


class BandedCholesky:
    """One banded Cholesky factor, shared by all signals."""

    def __init__(self, operator: SampledOperator, rho: float) -> None:
        problem, geometry = operator.problem, operator.problem.geometry
        layout, dtype = problem.operator.layout, problem.filters.dtype
        samples, bandwidth = prod(geometry.signal), band_width(geometry.signal, geometry.filter)
        places = geometry.spread(np.arange(1, samples + 1, dtype=np.int64).reshape(1, *geometry.signal)) - 1
        roots = np.ones(1, dtype) if operator.roots is None else operator.roots.astype(dtype)
        padded_roots = geometry.spread(np.broadcast_to(roots, (1, *geometry.signal)))
        band = np.zeros(samples * (bandwidth + 1) + SPARE_SAMPLES, dtype)
        codes = problem.sample if problem.sample is not None else np.arange(problem.operator.n_codes)
        image_offsets = _image_offsets(geometry.signal, geometry.filter, width_of(layout.run_lanes))
        banded.add_gram(layout, codes, places, padded_roots, image_offsets, bandwidth, band)
        matrix = band[: samples * (bandwidth + 1)].reshape(samples, bandwidth + 1).T
        matrix[0] += dtype.type(rho)
        self._factor = scipy.linalg.cholesky_banded(matrix, overwrite_ab=True, lower=True, check_finite=False)

    def solve(self, signals: NDArray, n_jobs: int) -> NDArray:
        columns = signals.reshape(len(signals), -1).T
        solved = scipy.linalg.cho_solve_banded((self._factor, True), columns, check_finite=False)
        return np.ascontiguousarray(solved.T).reshape(signals.shape)


class ConjugateGradients:
    """Matrix-free products, preconditioned by the circulant matrix that A Aᵀ concentrates around."""

    def __init__(self, operator: SampledOperator, rho: float) -> None:
        self._operator = operator
        self._rho = rho
        self._spectrum = _mean_spectrum(operator, rho)
        self._tolerance = 1e-6 if operator.problem.filters.dtype == np.float32 else 1e-12

    def solve(self, signals: NDArray, n_jobs: int) -> NDArray:
        return np.stack(parallel(self._solve_one, signals, n_jobs))

    def _solve_one(self, signal: NDArray) -> NDArray:
        shape, size = signal.shape, signal.size

        def product(flat: NDArray) -> NDArray:
            image = flat.reshape(shape).astype(signal.dtype, copy=False)
            return (self._rho * image + self._operator.forward(self._operator.adjoint(image))).ravel()

        # Squares of what float32 holds may be too large for it: products are in float32, the iteration is not.
        matrix = scipy.sparse.linalg.LinearOperator((size, size), product, dtype=np.float64)
        preconditioner = None
        if self._spectrum is not None:
            preconditioner = scipy.sparse.linalg.LinearOperator(
                (size, size), lambda flat: self._precondition(flat, shape), dtype=np.float64
            )
        answer, unfinished = scipy.sparse.linalg.cg(
            matrix, signal.ravel().astype(np.float64), rtol=self._tolerance, maxiter=500, M=preconditioner
        )
        if unfinished:
            log.warning("conjugate gradients stopped after %d steps short of their tolerance", unfinished)
        return answer.reshape(shape).astype(signal.dtype, copy=False)

    def _precondition(self, flat: NDArray, shape: tuple[int, ...]) -> NDArray:
        axes = tuple(range(1, len(shape)))
        spectrum = scipy.fft.rfftn(flat.reshape(shape), axes=axes) / self._spectrum
        return scipy.fft.irfftn(spectrum, shape[1:], axes=axes).ravel()


def band_width(signal: tuple[int, ...], filter_size: tuple[int, ...]) -> int:
    """Largest distance, in raster order, of two samples that one filter touches."""
    return int(sum((f - 1) * stride for f, stride in zip(filter_size, strides_of(signal), strict=True)))


def choose_system(operator: SampledOperator, n_signals: int, iterations: int, memory: float) -> str:
    """ "cholesky" or "cg", whichever does less arithmetic, within the memory budget in bytes.

    As in the paper the factor pays when signals share it. The decision rests on counts, never on a clock.
    """
    geometry = operator.problem.geometry
    if geometry.boundary == "circular" or geometry.channels > 1:
        return "cg"
    samples, bandwidth = prod(geometry.signal), band_width(geometry.signal, geometry.filter)
    if samples * (bandwidth + 1) * operator.problem.filters.dtype.itemsize > memory:
        return "cg"
    taps = prod(geometry.filter)
    assembly = operator.n_codes * taps**2
    factor = samples * bandwidth**2 / 4  # a quarter: level-3 BLAS against vector kernels
    substitution = n_signals * iterations * 4 * samples * bandwidth
    products = n_signals * iterations * _CG_STEPS * 4 * operator.n_codes * taps
    return "cholesky" if assembly + factor + substitution < products else "cg"


_CG_STEPS = 8


def _image_offsets(signal: tuple[int, ...], filter_size: tuple[int, ...], width: int) -> NDArray:
    offsets = flat_offsets(filter_size[:-1], strides_of(signal)[:-1])
    chunks = -(-filter_size[-1] // width)
    return (offsets[:, None] + width * np.arange(chunks)).reshape(-1)


def _mean_spectrum(operator: SampledOperator, rho: float) -> NDArray | None:
    problem, geometry = operator.problem, operator.problem.geometry
    if geometry.channels > 1:
        return None
    axes = tuple(range(1, len(geometry.signal) + 1))
    spectra = scipy.fft.rfftn(problem.filters[:, 0].astype(np.float64), geometry.signal, axes=axes)
    rate = operator.n_codes / problem.operator.n_codes
    seen = 1.0 if operator.roots is None else float(np.mean(operator.roots**2))
    return rho + rate * seen * np.sum(np.abs(spectra) ** 2, axis=0)


def make_system(kind: str, operator: SampledOperator, rho: float) -> SmallSystem:
    """The named small system."""
    return BandedCholesky(operator, rho) if kind == "cholesky" else ConjugateGradients(operator, rho)


def check_banded(operator: SampledOperator) -> None:
    """Refuse an explicit request for a Cholesky factor where the small matrix has no band."""
    geometry = operator.problem.geometry
    if geometry.boundary == "circular" or geometry.channels > 1:
        raise ValueError(
            'quadratic="cholesky" needs one channel and a boundary other than circular; use quadratic="cg"'
        )
