"""The frequency-domain method that the paper compares with, written with the package's own ``fft`` solver.

Batch: codes by ten ADMM iterations on all frequencies, filters by ten more under their constraints (support and norm), in
turns, as in Bristow, Eriksson and Lucey (2013), Heide, Heidrich and Wetzstein (2015) and Wohlberg (2016). Online: one image
at a time, and a projected gradient step on the filters with a step size that falls, as in Liu et al. (2018).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from paper.inputs import PENALTY
from paper.judging import Due, Trajectory, drawn, quiet_encode
from pointillist.parallel import effective_jobs
from pointillist.solvers.admm import FrequencyADMM

ITERATIONS = 10
SIGMA = 10.0
"""ρ of the filters' ADMM, for images whose codes were divided by none."""


class BatchFrequency:
    """Batch learning in the frequency domain; iterate it, once for each outer iteration."""

    def __init__(self, images: NDArray, start: NDArray) -> None:
        self.images, self.filters = images, start
        self.seconds = 0.0
        self._scaled_dual = np.zeros((len(start), *images.shape[1:]), np.float32)

    def __iter__(self) -> Iterator[float]:
        """The objective after each outer iteration, for its codes and its new filters."""
        spectra = scipy.fft.rfft2(self.images)
        while True:
            begin = time.perf_counter()
            codes = circular_codes(self.images, self.filters)
            transformed = scipy.fft.rfft2(codes, workers=effective_jobs(-1))
            self.update(transformed, spectra)
            self.seconds += time.perf_counter() - begin
            yield self._objective(transformed, spectra, float(np.sum(np.abs(codes), dtype=np.float64)))

    def update(self, codes: NDArray, images: NDArray) -> None:
        """ADMM on the filters: least squares at every frequency by Woodbury's identity, then support and norm."""
        shape, size = self.images.shape[1:], self.filters.shape[1:]
        n_images = len(images)
        by_frequency = np.ascontiguousarray(np.moveaxis(codes.reshape(*codes.shape[:2], -1), 2, 0))  # (F, n, K)
        gram = by_frequency @ by_frequency.conj().swapaxes(1, 2) + SIGMA * np.eye(n_images, dtype=codes.dtype)
        inverse = np.linalg.inv(gram)
        data = np.einsum("fnk,nf->kf", by_frequency.conj(), images.reshape(n_images, -1))
        kept, dual = pad(self.filters, shape), self._scaled_dual
        for _ in range(ITERATIONS):
            right = data + SIGMA * scipy.fft.rfft2(kept - dual).reshape(len(kept), -1)
            small = inverse @ (by_frequency @ right.T[..., None])
            solved = (right - (by_frequency.conj().swapaxes(1, 2) @ small)[..., 0].T) / SIGMA
            free = scipy.fft.irfft2(solved.reshape(len(kept), *codes.shape[2:]), shape).astype(np.float32)
            kept = pad(project(crop(free + dual, size)), shape)
            dual = dual + free - kept
        self.filters, self._scaled_dual = crop(kept, size), dual

    def _objective(self, codes: NDArray, images: NDArray, price: float) -> float:
        fits = np.einsum("nkyx,kyx->nyx", codes, scipy.fft.rfft2(pad(self.filters, self.images.shape[1:])))
        residuals = scipy.fft.irfft2(images - fits, self.images.shape[1:])
        return 0.5 * float(np.sum(residuals**2, dtype=np.float64)) + PENALTY * price


def learn_batch(images: NDArray, start: NDArray, seconds: float) -> Trajectory:
    """Batch learning for so many seconds."""
    trajectory, learner = Trajectory("frequency domain, batch"), BatchFrequency(images, start)
    for number, _ in enumerate(learner, 1):
        trajectory.add(learner.seconds, number * len(images), learner.filters)
        if learner.seconds >= seconds:
            break
    return trajectory


def learn_online(images: NDArray, start: NDArray, *, passes: int, due: Due, first: float, delay: float) -> Trajectory:
    """Online learning in the frequency domain, by steps of size first / (delay + i).

    Filters are kept after every step that is due, and after the last.
    """
    trajectory = Trajectory("frequency domain, online")
    filters, seconds = start, 0.0
    shape, size = images.shape[1:], start.shape[1:]
    for step, i in enumerate(drawn(len(images), passes), 1):
        begin = time.perf_counter()
        codes = scipy.fft.rfft2(circular_codes(images[i][None], filters)[0])
        left = scipy.fft.rfft2(images[i]) - np.sum(codes * scipy.fft.rfft2(pad(filters, shape)), axis=0)
        gradient = crop(scipy.fft.irfft2(codes.conj() * left, shape), size)
        filters = project(filters + first / (delay + step - 1) * gradient).astype(np.float32)
        seconds += time.perf_counter() - begin
        if due(step) or step == passes * len(images):
            trajectory.add(seconds, step, filters)
    return trajectory


def circular_codes(images: NDArray, filters: NDArray) -> NDArray:
    """Dense codes (n, K, H, W) after ten ADMM iterations."""
    solver = FrequencyADMM(max_iter=ITERATIONS, tol=0.0)
    return np.asarray(quiet_encode(images, filters, boundary="circular", solver=solver).codes)


def pad(filters: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Filters on the whole grid, their centre on sample 0."""
    grid = np.zeros((len(filters), *shape), filters.dtype)
    grid[:, : filters.shape[1], : filters.shape[2]] = filters
    return np.roll(grid, [-((side - 1) // 2) for side in filters.shape[1:]], (1, 2))


def crop(grid: NDArray, size: tuple[int, ...]) -> NDArray:
    """The inverse of `pad`; what lies outside the filters' support is dropped."""
    return np.roll(grid, [(side - 1) // 2 for side in size], (1, 2))[:, : size[0], : size[1]]


def project(filters: NDArray) -> NDArray:
    """Filters with norms of at most one."""
    return filters / np.maximum(1.0, np.linalg.norm(filters, axis=(1, 2), keepdims=True))
