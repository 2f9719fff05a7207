"""Signals of more channels than their filters span, coded in that span.

Each filter, seen as a matrix (channels, samples), has columns in some space of channel patterns. With an orthonormal basis Q
of the space that the columns of all filters span together, every D z lies in it, and

    ½ Σ w (x − D z)² = ½ Σ w (Qᵀx − QᵀD z)² + ½ Σ w (x − Q Qᵀx)²

wherever the weights w do not differ between channels. The last term does not depend on the codes, so that Qᵀx is coded with
the filters QᵀD: 200 channels and 5 filters of rank one become 5 channels, whatever the solver and the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import as_cupy, is_mapped, is_resident, scratch, walked
from pointillist.kernels.projection import project, take_product
from pointillist.parallel import one_blas_thread
from pointillist.problem import Problem, inner
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
    """Terms that are so many times the root of the objective lose digits of it by rounding."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class Split:
    """What filters reach of a signal, and how much they do not."""

    inside: NDArray  # Qᵀx, (rank, *space)
    energy: NDArray  # of x − Q Qᵀx, summed over channels, (*space)

    @cached_property
    def reached(self) -> NDArray:
        """The energy of Qᵀx, summed over channels, (*space)."""
        return _energies(self.inside)


@dataclass(frozen=True, eq=False)
class Span:
    """The space of channel patterns that filters span.

    Attributes
    ----------
    filters : (n_filters, channels, *size) array
    basis : (channels, rank) float64 array
        Orthonormal columns.
    inside : (n_filters, rank, samples) float64 array
        The filters in the span.
    missed : float
        The largest norm of what a filter has besides.
    """

    filters: NDArray
    basis: NDArray
    inside: NDArray
    missed: float

    @cached_property
    def projected(self) -> NDArray:
        """The filters in the span, (n_filters, rank, *size)."""
        return self.inside.reshape(len(self.filters), -1, *self.filters.shape[2:]).astype(self.filters.dtype)

    @cached_property
    def norms(self) -> NDArray:
        """Norms of the filters in the span."""
        return _norms(self.inside)

    @cached_property
    def lost(self) -> float:
        """A bound of the norm of what a filter loses by being projected and rounded."""
        rounded = self.inside - self.projected.reshape(self.inside.shape)
        return self.missed + float(np.max(_norms(rounded)))

    def split(self, signal: NDArray, dtype: np.dtype) -> Split:
        """Qᵀx for a signal x (channels, *space), in a file where it is in one, and the energy of what is left of it."""
        if is_resident(signal):
            return _split_on_device(as_cupy(self.basis.astype(dtype)), signal.astype(dtype, copy=False))
        inside = scratch(signal, (self.basis.shape[1], *signal.shape[1:]), dtype)
        energy = np.empty(signal.shape[1:])
        if not is_mapped(signal):
            project(self.basis, _flat(signal), _flat(inside), energy.reshape(-1))
            return Split(inside, energy)
        for band in walked(signal, inside):
            here = np.ascontiguousarray(signal[band], dtype)
            part, left = np.empty((self.basis.shape[1], *here.shape[1:]), dtype), np.empty(here.shape[1:])
            project(self.basis, _flat(here), _flat(part), left.reshape(-1))
            inside[band], energy[band[1:]] = part, left
        return Split(inside, energy)

    def less(self, signal: NDArray, inside: NDArray, weights: NDArray | None) -> NDArray:
        """w x − Q y for a signal x (channels, *space) and y in the span, in a file where the signal is in one."""
        basis = self.basis.astype(inside.dtype)
        if is_resident(signal):
            taken = (as_cupy(basis) @ inside.reshape(len(inside), -1)).reshape(signal.shape)
            return (signal if weights is None else weights * signal) - taken
        out = scratch(signal, signal.shape, inside.dtype)
        for band in walked(signal, out, inside) if is_mapped(signal) else [(slice(None),)]:
            here = signal[band] if weights is None else weights[band] * signal[band]
            here, part = np.ascontiguousarray(here, inside.dtype), np.ascontiguousarray(inside[band])
            left = np.empty_like(here) if is_mapped(signal) else out
            take_product(basis, _flat(part), _flat(here), _flat(left))
            if left is not out:
                out[band] = left
        return out


def _flat(array: NDArray) -> NDArray:
    return array.reshape(len(array), -1)


def _split_on_device(basis: Any, signal: Any) -> Split:
    flat = _flat(signal)
    inside = basis.T @ flat
    outside = flat - basis @ inside
    energy = np.einsum("ct,ct->t", outside, outside)
    return Split(inside.reshape(-1, *signal.shape[1:]), energy.reshape(signal.shape[1:]))


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
        rest = basis @ inside
    rest -= flat
    missed, norms = (np.sqrt(np.einsum("kcs,kcs->k", one, one)) for one in (rest, flat))
    if not np.all(missed <= TUNING.lost * unit * norms):
        return None
    return Span(filters, basis, inside, float(np.max(missed)))


def differs_by_channel(weights: NDArray | None, axis: int) -> bool:
    """True if weights differ between channels, which lie along an axis."""
    if weights is None or weights.shape[axis] == 1:
        return False
    others = weights[:, 1:] != weights[:, :1] if axis == 1 else weights[1:] != weights[:1]
    return bool(others.any())


@dataclass(frozen=True, eq=False)
class Projection:
    """Signals in the span of their filters, and the way back.

    Attributes
    ----------
    span : Span
    problem : Problem
        Its weights are the same in all channels.
    signals : list of (channels, *space) arrays
    """

    span: Span
    problem: Problem
    signals: list[NDArray]

    @cached_property
    def smaller(self) -> Problem:
        """The problem of the signals in the span."""
        rank, weights = self.span.basis.shape[1], self.problem.weights
        if weights is not None:
            weights = weights[:, :rank] if self.problem.has_own_weights else weights[:rank]
        return replace(
            self.problem,
            filters=self.span.projected,
            geometry=replace(self.problem.geometry, channels=rank),
            weights=weights,
            constants=self.constants,
        )

    @cached_property
    def splits(self) -> list[Split]:
        """Each signal split into what filters reach and what they do not."""
        return [self.span.split(signal, self.problem.filters.dtype) for signal in self.signals]

    @property
    def inside(self) -> list[NDArray]:
        """The signals in the span, (rank, *space) each."""
        return [split.inside for split in self.splits]

    @cached_property
    def constants(self) -> NDArray:
        """½ Σ w x² over what no filter reaches, for each signal, in float64."""
        return np.array([0.5 * float(self._times(i, split.energy).sum()) for i, split in enumerate(self.splits)])

    def _times(self, i: int, energy: NDArray, power: int = 1) -> NDArray:
        """Energies (*space) of signal i, in float64, times a power of the weights."""
        weights = self.problem.weights_of(i)
        return energy.astype(np.float64) if weights is None else weights[0].astype(np.float64) ** power * energy

    def restore(self, result: Result) -> Result:
        """The result for the signals as they were; the gap has room for what was lost by rounding.

        Where a fit is so much larger than what it leaves that rounding is seen, codes are valued in all channels.
        """
        residuals, gaps, objectives = [], np.empty(len(self.signals)), result.objective.copy()
        for i, (signal, split) in enumerate(zip(self.signals, self.splits, strict=True)):
            left, weights = result.residuals[i], self.problem.weights_of(i)
            fit = (split.inside if weights is None else weights[:1] * split.inside) - left
            gaps[i] = result.gap[i] + self.rounding(i, left, float(result.objective[i]))
            indices, values = result.codes.indices[i], result.codes.values[i]
            if not is_resident(signal) and self._terms(i, indices, values) > TUNING.large_terms * np.sqrt(
                objectives[i]
            ):
                objectives[i], whole = self._valued(i, indices, values)
                residuals.append(whole.astype(left.dtype))
            else:
                residuals.append(self.span.less(signal, fit.astype(left.dtype, copy=False), weights))
        return replace(result, residuals=residuals, gap=gaps, objective=objectives)

    def _terms(self, i: int, indices: NDArray, values: NDArray) -> float:
        """The size of what a residual of signal i is the difference of: the signal in the span, and filters times codes."""
        norms = self.span.norms[indices // self.problem.geometry.n_positions]
        return float(np.linalg.norm(norms * values)) + float(np.sqrt(self.splits[i].reached.sum()))

    def _valued(self, i: int, indices: NDArray, values: NDArray) -> tuple[float, NDArray]:
        """The objective of codes of signal i and what they leave of it, in all channels and float64."""
        weights = self.problem.weights_of(i)
        difference = self.signals[i] - self.problem.operator.synthesise_exactly(indices, values)
        residual = difference if weights is None else weights * difference
        price = inner(self.problem.penalty_at(indices), np.abs(values))
        return 0.5 * inner(residual, difference) + price + self.problem.constant_of(i), residual

    def rounding(self, i: int, left: NDArray, objective: float) -> float:
        """How much the gap, relative to the objective, can have grown by rounding; `left` is the residual in the span."""
        if objective == 0:
            return 0.0
        unit = float(np.finfo(self.problem.filters.dtype).eps) / 2
        size, split, weights = self.problem.geometry.filter, self.splits[i], self.problem.weights_of(i)
        largest = 1.0 if weights is None else max(float(weights.max()), 1.0)
        residual = self._times(i, split.energy, 2) + _energies(left)
        inside = split.reached
        # A residual that correlates with a filter by this much more than λ is scaled down to be dual feasible, and the
        # dual objective, which is concave, loses no larger share.
        moved = 1.01 * self.span.lost * _largest_box(residual, size)
        moved += (self.smaller.largest_norm + self.span.lost) * unit * largest * _largest_box(inside, size)
        # The energy outside is the difference of two sums over channels in float64.
        differs = self.problem.geometry.channels * 2.0**-53 * largest * float((split.energy + inside).sum())
        change = differs + 2 * unit * np.sqrt(2 * objective * largest) * np.sqrt(float(inside.sum()))
        return float(moved / self.problem.smallest_penalty + change / objective)


def _norms(filters: NDArray) -> NDArray:
    return np.linalg.norm(filters.reshape(len(filters), -1).astype(np.float64), axis=1)


def _energies(array: NDArray) -> NDArray:
    """Σ x² over the channels of an array (channels, *space), in float64."""
    return np.einsum("c...,c...->...", *[array.astype(np.float64)] * 2)


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
