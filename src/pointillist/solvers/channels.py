"""Signals of more channels than their filters span, coded in that span.

Each filter, seen as a matrix (channels, samples), has columns in some space of channel patterns. With an orthonormal basis Q
of the space that the columns of all filters span together, every D z lies in it, and

    ½ Σ w (x − D z)² = ½ Σ w (Qᵀx − QᵀD z)² + ½ Σ w (x − Q Qᵀx)²

wherever the weights w do not differ between channels. The last term does not depend on the codes, so that Qᵀx is coded with
the filters QᵀD: 200 channels and 5 filters of rank one become 5 channels, whatever the solver and the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import as_cupy, is_mapped, is_resident, scratch, walked
from pointillist.kernels.projection import project
from pointillist.parallel import one_blas_thread
from pointillist.problem import Problem
from pointillist.sampling import generator
from pointillist.solvers.base import Result


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of the projection to a span."""

    most: float = 0.75
    """Share of the channels that filters may span for a projection to be worth its time (`benchmarks.channels`)."""
    lost: int = 64
    """Units of rounding, beside its norm, that may be lost of a filter."""
    large_terms: float = 16.0
    """Terms that are so many times the root of the objective lose digits of it by rounding: all channels are needed then."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class Span:
    """The space of channel patterns that filters span.

    Attributes
    ----------
    basis : (channels, rank) float64 array
        Orthonormal columns.
    filters : (n_filters, rank, *size) array
        The filters in the span.
    lost : float
        A bound of the norm of what a filter loses by being projected and rounded.
    """

    basis: NDArray
    filters: NDArray
    lost: float


def filter_span(filters: NDArray) -> Span | None:
    """The span of the channel patterns of filters (n_filters, channels, *size); None where it is most of the channels."""
    channels, unit = filters.shape[1], float(np.finfo(filters.dtype).eps)
    if channels == 1:
        return None
    flat = filters.reshape(len(filters), channels, -1).astype(np.float64)
    with one_blas_thread():
        # The columns of random mixtures span the same space, up to chance of measure zero, and are few.
        count = min(16, channels)
        while True:
            mix = generator(0, 5, count).standard_normal((len(flat), flat.shape[2], count))
            left, sizes, _ = np.linalg.svd((flat @ mix).sum(axis=0), full_matrices=False)
            rank = int(np.count_nonzero(sizes > channels * unit * sizes[0]))  # the rest may be rounding
            if rank > TUNING.most * channels or rank == 0:
                return None
            if rank < count or count == channels:
                break
            count = min(2 * count, channels)
        # Mixtures carry rounding of the largest of them; one more turn through the columns leaves that behind.
        basis = np.linalg.qr((flat @ (flat.transpose(0, 2, 1) @ left[:, :rank])).sum(axis=0))[0]
        inside = basis.T @ flat
        missed = _norms(basis @ inside - flat)
    if not np.all(missed <= TUNING.lost * unit * _norms(flat)):
        return None
    rounded = inside.astype(filters.dtype)
    lost = float(np.max(missed)) + float(np.max(_norms(inside - rounded)))
    return Span(basis, rounded.reshape(len(filters), rank, *filters.shape[2:]), lost)


def in_span(problem: Problem, signals: list[NDArray]) -> Projection | None:
    """Bring a problem into the span of its filters, where that has fewer channels and all channels have one weight."""
    weights, span = problem.weights, filter_span(problem.filters)
    if span is None:
        return None
    if weights is not None:
        first = weights[:, :1] if problem.has_own_weights else weights[:1]
        if bool((weights != first).any()):
            return None
    return Projection(span, problem, signals)


class Projection:
    """Signals in the span of their filters, and the way back.

    Attributes
    ----------
    smaller : Problem
        That of the signals in the span; its constants are ½ Σ w x² over what no filter reaches.
    inside : list of (rank, *space) arrays
        Qᵀx of each signal, in a file where it is in one.
    outside : list of (*space) float64 arrays
        The energy of x − Q Qᵀx, summed over channels.
    """

    def __init__(self, span: Span, problem: Problem, signals: list[NDArray]) -> None:
        self.span, self.problem, self.signals = span, problem, signals
        rank, weights = span.basis.shape[1], problem.weights
        split = [self._split(signal) for signal in signals]
        self.inside, self.outside = [inside for inside, _ in split], [outside for _, outside in split]
        if weights is not None:
            weights = weights[:, :rank] if problem.has_own_weights else weights[:rank]
        self.smaller = replace(
            problem,
            filters=span.filters,
            geometry=replace(problem.geometry, channels=rank),
            weights=weights,
            constants=np.array([0.5 * float(self._times(i, one).sum()) for i, one in enumerate(self.outside)]),
        )

    def _split(self, signal: NDArray) -> tuple[Any, Any]:
        """Qᵀx for a signal x (channels, *space), and the energy of what is left of it."""
        basis, dtype = self.span.basis, self.problem.filters.dtype
        if is_resident(signal):
            basis, flat = as_cupy(basis.astype(dtype)), _flat(signal.astype(dtype, copy=False))
            within = basis.T @ flat
            left = flat - basis @ within
            energies = np.einsum("ct,ct->t", left, left)
            return within.reshape(-1, *signal.shape[1:]), energies.reshape(signal.shape[1:])
        inside = scratch(signal, (basis.shape[1], *signal.shape[1:]), dtype)
        outside = np.empty(signal.shape[1:])
        for band in walked(signal, inside) if is_mapped(signal) else [(slice(None),)]:
            here = np.ascontiguousarray(signal[band], dtype)
            part, rest = np.empty((len(inside), *here.shape[1:]), dtype), np.empty(here.shape[1:])
            project(basis, _flat(here), _flat(part), rest.reshape(-1))
            inside[band], outside[band[1:]] = part, rest
        return inside, outside

    def _without(self, signal: NDArray, fit: NDArray, weights: NDArray | None) -> NDArray:
        """w x − Q y for a signal x (channels, *space) and y = `fit` in the span, in a file where the signal is in one."""
        basis = self.span.basis.astype(fit.dtype)
        if is_resident(signal):
            taken = (as_cupy(basis) @ _flat(fit)).reshape(signal.shape)
            return (signal if weights is None else weights * signal) - taken
        out = scratch(signal, signal.shape, fit.dtype)
        for band in walked(signal, out, fit) if is_mapped(signal) else [(slice(None),)]:
            here = signal[band] if weights is None else weights[band] * signal[band]
            here, part = np.ascontiguousarray(here, fit.dtype), np.ascontiguousarray(fit[band])
            left = np.empty_like(here) if is_mapped(signal) else out
            with one_blas_thread():
                np.matmul(basis, _flat(part), out=_flat(left))
            np.subtract(here, left, out=left)
            if left is not out:
                out[band] = left
        return out

    def _times(self, i: int, energy: NDArray, power: int = 1) -> NDArray:
        """Energies (*space) of signal i, in float64, times a power of the weights."""
        weights = self.problem.weights_of(i)
        return energy.astype(np.float64) if weights is None else weights[0].astype(np.float64) ** power * energy

    def restore(self, result: Result) -> Result:
        """The result for the signals as they were; the gap has room for what was lost by rounding."""
        residuals = []
        for i, (signal, inside, left) in enumerate(zip(self.signals, self.inside, result.residuals, strict=True)):
            weights = self.problem.weights_of(i)
            fit = (inside if weights is None else weights[:1] * inside) - left
            residuals.append(self._without(signal, fit.astype(left.dtype, copy=False), weights))
        gaps = result.gap + [self.rounding(i, result) for i in range(len(residuals))]
        return replace(result, residuals=residuals, gap=gaps)

    def rounding(self, i: int, result: Result) -> float:
        """Growth of the gap of signal i, relative to its objective, that rounding can have hidden.

        It is infinite where a fit is so much larger than what it leaves that the objective itself loses digits.
        """
        objective, left, outside = float(result.objective[i]), result.residuals[i], self.outside[i]
        if objective == 0:
            return 0.0
        unit = float(np.finfo(self.problem.filters.dtype).eps) / 2
        size, weights, reached = self.problem.geometry.filter, self.problem.weights_of(i), _energies(self.inside[i])
        if not is_resident(outside):
            norms = _norms(self.span.filters)[result.codes.indices[i] // self.problem.geometry.n_positions]
            terms = np.linalg.norm(norms * result.codes.values[i]) + np.sqrt(reached.sum())
            if terms > TUNING.large_terms * np.sqrt(objective):
                return np.inf
        largest = 1.0 if weights is None else max(float(weights.max()), 1.0)
        # A residual that correlates with a filter by this much more than λ is scaled down to be dual feasible, and the
        # dual objective, which is concave, loses no larger share.
        moved = 1.01 * self.span.lost * _largest_box(self._times(i, outside, 2) + _energies(left), size)
        moved += (self.smaller.largest_norm + self.span.lost) * unit * largest * _largest_box(reached, size)
        # The energy outside is the difference of two sums over channels in float64.
        differs = self.problem.geometry.channels * 2.0**-53 * largest * float((outside + reached).sum())
        change = differs + 2 * unit * np.sqrt(2 * objective * largest) * np.sqrt(float(reached.sum()))
        return float(moved / self.problem.smallest_penalty + change / objective)


def _flat(array: NDArray) -> NDArray:
    return array.reshape(len(array), -1)


def _norms(filters: NDArray) -> NDArray:
    return np.linalg.norm(_flat(filters).astype(np.float64, copy=False), axis=1)


def _energies(array: NDArray) -> NDArray:
    """Σ x² over the channels of an array (channels, *space), in float64."""
    return np.einsum("c...,c...->...", *[array.astype(np.float64, copy=False)] * 2)


def _largest_box(energy: NDArray, size: tuple[int, ...]) -> float:
    """An upper bound of the norm over any box of a size, from the energy of every sample (*space).

    Every box lies within two neighbouring blocks of its size along each axis.
    """
    if is_resident(energy):
        return float(np.sqrt(float(energy.sum())))
    for axis, side in enumerate(size):
        energy = np.moveaxis(np.add.reduceat(energy, np.arange(0, energy.shape[axis], side), axis=axis), axis, 0)
        energy[:-1] += energy[1:].copy()
        energy = np.moveaxis(energy, 0, axis)
    return float(np.sqrt(np.max(energy)))
