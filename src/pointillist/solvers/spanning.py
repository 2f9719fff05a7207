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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.devices import as_cupy, is_resident
from pointillist.model.large import bands, scratch
from pointillist.model.problem import Problem
from pointillist.model.sampling import generator
from pointillist.solvers.base import Result, one_blas_thread

_MOST = 0.75
"""The share of the channels that filters may span for a projection to be worth its time."""
_FIRST_GUESS = 16
_LOST = 64
"""Units of rounding, beside its norm, that may be lost of a filter."""
_DRAWS = 5  # sets these draws apart from all others


class Split(NamedTuple):
    """A signal in two parts, of which filters reach the first only."""

    inside: NDArray  # (rank, *space)
    outside: NDArray  # (channels, *space)
    energy: NDArray  # the second's, summed over channels


@dataclass(frozen=True, eq=False)
class Span:
    """The space of channel patterns that filters span.

    Attributes
    ----------
    filters : (n_filters, channels, *size) array
    basis : (channels, rank) float64 array
        Orthonormal columns.
    """

    filters: NDArray
    basis: NDArray

    @cached_property
    def projected(self) -> NDArray:
        """The filters in the span, (n_filters, rank, *size)."""
        flat = _columns(self.filters)
        inside = (self.basis.T @ flat).reshape(-1, len(self.filters), *self.filters.shape[2:])
        return np.ascontiguousarray(np.moveaxis(inside, 0, 1).astype(self.filters.dtype))

    @cached_property
    def lost(self) -> float:
        """The largest norm of what a filter loses by being projected and rounded."""
        whole = np.einsum("pr,kr...->kp...", self.basis, self.projected.astype(np.float64))
        return float(np.max(_norms(self.filters - whole)))

    def split(self, signal: NDArray, dtype: np.dtype) -> Split:
        """Split a signal x (channels, *space) into Qᵀx and x − Q Qᵀx, in files where it is in one."""
        basis = self._matrix(signal, dtype)
        if is_resident(signal):
            return Split(*_split(basis, signal.astype(dtype, copy=False)))
        inside = scratch(signal, (basis.shape[1], *signal.shape[1:]), dtype)
        outside = scratch(signal, signal.shape, dtype)
        energy = np.empty(signal.shape[1:], dtype)
        for band in bands(signal.shape):
            inside[band], outside[band], energy[band[1:]] = _split(basis, signal[band].astype(dtype, copy=False))
        return Split(inside, outside, energy)

    def add_inside(self, whole: NDArray, inside: NDArray) -> None:
        """Add Q y to a whole signal, in place."""
        basis = self._matrix(whole, whole.dtype)
        for band in [(slice(None),)] if is_resident(whole) else bands(whole.shape):
            here = inside[band]
            whole[band] += (basis @ here.reshape(len(here), -1)).reshape(-1, *here.shape[1:])

    def _matrix(self, like: Any, dtype: np.dtype) -> Any:
        basis = self.basis.astype(dtype)
        return as_cupy(basis) if is_resident(like) else basis


def _split(basis: Any, signal: Any) -> tuple[Any, Any, Any]:
    flat = signal.reshape(len(signal), -1)
    inside = basis.T @ flat
    outside = flat - basis @ inside
    energy = np.einsum("ct,ct->t", outside, outside)
    return tuple(one.reshape(*one.shape[:-1], *signal.shape[1:]) for one in (inside, outside, energy))


def filter_span(filters: NDArray) -> Span | None:
    """The span of the channel patterns of filters (n_filters, channels, *size); None where it is most of the channels."""
    channels = filters.shape[1]
    if channels == 1:
        return None
    columns = _columns(filters)
    unit = float(np.finfo(filters.dtype).eps)
    with one_blas_thread():
        # The columns of random mixtures span the same space, up to chance of measure zero, and are few.
        count = min(_FIRST_GUESS, channels)
        while True:
            mix = generator(0, _DRAWS, count).standard_normal((columns.shape[1], count))
            left, sizes, _ = np.linalg.svd(columns @ mix, full_matrices=False)
            rank = int(np.count_nonzero(sizes > channels * unit * sizes[0]))  # the rest may be rounding
            if rank > _MOST * channels:
                return None
            if rank < count or count == channels:
                break
            count = min(2 * count, channels)
        if rank == 0:
            return None
        # Mixtures carry rounding of the largest of them; one more turn through the columns leaves that behind.
        span = Span(filters, np.linalg.qr(columns @ (columns.T @ left[:, :rank]))[0])
        rest = columns - span.basis @ (span.basis.T @ columns)
    lost = _norms(np.moveaxis(rest.reshape(channels, len(filters), -1), 0, 1))
    return span if np.all(lost <= _LOST * unit * _norms(filters)) else None


def differs_by_channel(weights: NDArray | None, axis: int) -> bool:
    """Whether weights differ between channels, which lie along an axis."""
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
        with one_blas_thread():
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
        """The result for the signals as they were; the gap has room for what was lost by rounding."""
        residuals, gaps = [], np.empty(len(self.signals))
        with one_blas_thread():
            for i, split in enumerate(self.splits):
                weights = self.problem.weights_of(i)
                # Without weights the array becomes the residual: nobody needs it any more.
                residual = split.outside if weights is None else (weights * split.outside).astype(split.outside.dtype)
                self.span.add_inside(residual, result.residuals[i])
                residuals.append(residual)
                gaps[i] = result.gap[i] + self._rounding(i, result.residuals[i], float(result.objective[i]))
        return replace(result, residuals=residuals, gap=gaps)

    def _rounding(self, i: int, left: NDArray, objective: float) -> float:
        """How much the gap, relative to the objective, can have grown by rounding; `left` is the residual in the span."""
        if objective == 0:
            return 0.0
        unit = float(np.finfo(self.problem.filters.dtype).eps) / 2
        size, split, weights = self.problem.geometry.filter, self.splits[i], self.problem.weights_of(i)
        largest = 1.0 if weights is None else max(float(weights.max()), 1.0)
        residual = self._times(i, split.energy, 2) + _energies(left)
        inside = _energies(split.inside)
        # A residual that correlates with a filter by this much more than λ is scaled down to be dual feasible, and the
        # dual objective, which is concave, loses no larger share.
        moved = 1.01 * self.span.lost * _largest_box(residual, size)
        moved += self.problem.largest_norm * unit * largest * _largest_box(inside, size)
        change = 2 * unit * np.sqrt(2 * objective * largest) * np.sqrt(float(inside.sum()))
        return float(moved / self.problem.smallest_penalty + change / objective)


def _columns(filters: NDArray) -> NDArray:
    """The filters as (channels, n_filters · samples), in float64."""
    return np.moveaxis(filters, 1, 0).reshape(filters.shape[1], -1).astype(np.float64)


def _norms(filters: NDArray) -> NDArray:
    return np.linalg.norm(filters.reshape(len(filters), -1).astype(np.float64), axis=1)


def _energies(array: NDArray) -> NDArray:
    """Σ x² over the channels of an array (channels, *space), in float64."""
    return (array.astype(np.float64) ** 2).sum(axis=0)


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
