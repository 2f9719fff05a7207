"""Everything the dictionary update needs from the codes: B = Zᵀx and C = ZᵀZ, sums over signals.

`ToeplitzStatistics` uses that, when no filter is clipped, C depends on the shift of two codes only: K²(2h−1)(2w−1)
numbers instead of (Khw)². Clipped and masked signals are *imputed* (x̃ = Dz + r on the padded grid), which majorises the
weighted loss, up to a constant, and touches it at the current filters. `DenseStatistics` is exact for any boundary and
weights, for small problems and as the reference. Both hold sums, never averages: what is added is weighted by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pointillist.backends import convolution, statistics
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.pairs import add_pairs
from pointillist.model.geometry import Geometry
from pointillist.model.problem import Problem


class Statistics(Protocol):
    """Sums over signals from which the filters are updated."""

    total: float

    def add(
        self,
        problem: Problem,
        i: int,
        signal: NDArray,
        indices: NDArray,
        values: NDArray,
        residual: NDArray,
        weight: float,
    ) -> None:
        """Add signal i (channels, *space), coded with `problem.filters`, leaving `residual` = w (x − Dz)."""
        ...

    def product(self, filters: NDArray, k: int) -> NDArray:
        """(C d)_k for filters (n_filters, channels, *size), float64."""
        ...

    def sweep(self, filters: NDArray, constraints: FilterConstraints) -> NDArray:
        """One pass of projected block coordinate descent over all filters, in their precision."""
        ...

    def linear(self) -> NDArray:
        """B, of the filters' shape, float64."""
        ...

    def lipschitz(self) -> NDArray:
        """For each filter an upper bound of the largest eigenvalue of its diagonal block of C."""
        ...

    def energies(self) -> NDArray:
        """Σ z² for each filter."""
        ...

    def permute(self, order: NDArray) -> None:
        """Follow filters that were reordered as ``filters[order]``."""
        ...

    def arrays(self) -> dict[str, NDArray]:
        """The sums as arrays, for storage; `restore` takes them back."""
        ...

    def restore(self, arrays: dict[str, NDArray]) -> None: ...


class ToeplitzStatistics:
    """B and C in block-Toeplitz form, half of the pairs (C_kl(δ) = C_lk(−δ)), in float64.

    Parameters
    ----------
    n_filters : int
    channels : int
    size : tuple of int
        Spatial shape of the filters.
    """

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...]) -> None:
        self.n_filters, self.channels, self.size = n_filters, channels, tuple(size)
        self.span = tuple(2 * s - 1 for s in size)
        self.total = 0.0
        n_pairs = n_filters * (n_filters + 1) // 2
        self._linear = np.zeros((n_filters, channels, *self.size))
        self._spare = statistics.toeplitz_spare(self.size)
        self._blocks = np.zeros(n_pairs * prod(self.span) + self._spare)
        self._energy = 0.0  # Σ weight · ½‖x̃‖²

    @staticmethod
    def bytes_for(n_filters: int, channels: int, size: tuple[int, ...]) -> tuple[int, int]:
        """Bytes of the sums, and bytes that updating and reordering filters takes besides: a copy of C and its spectra."""
        span = prod(2 * side - 1 for side in size)
        held = 8 * (n_filters * channels * prod(size) + n_filters * (n_filters + 1) // 2 * span)
        return held, held + 40 * n_filters * span

    @cached_property
    def first(self) -> NDArray:
        """Pair number of (k, k); pair (k, l ≥ k) is l − k further."""
        k = np.arange(self.n_filters, dtype=np.int64)
        return k * self.n_filters - k * (k - 1) // 2

    @property
    def pairs(self) -> NDArray:
        """C as (n_pairs, *span), k ≤ l; entry δ + size − 1 belongs to shift δ."""
        return self._blocks[: -self._spare].reshape(-1, *self.span)

    def add(
        self,
        problem: Problem,
        i: int,
        signal: NDArray,
        indices: NDArray,
        values: NDArray,
        residual: NDArray,
        weight: float,
    ) -> None:
        weights = problem.weights_of(i)
        own = None if weights is None else [weights]
        self.add_all(problem, ([indices], [values]), [residual], np.array([weight]), own)

    def add_all(
        self,
        problem: Problem,
        codes: tuple[Sequence[NDArray], Sequence[NDArray]],
        residuals: Sequence[NDArray],
        counts: NDArray,
        weights: Sequence[NDArray] | None,
    ) -> None:
        """Add signals of one shape at once; `counts` is how much each counts, `codes` are lists of indices and of values."""
        indices, values = codes
        factors = []
        for n, residual in enumerate(residuals):
            largest = 1.0 if weights is None else max(float(np.max(weights[n])), 1.0)
            factors.append(float(counts[n]) * largest)
            self._add_linear(problem, indices[n], values[n], residual / largest, factors[n])
            self.total += factors[n] / largest
        out = self._blocks[: -self._spare].reshape(-1, prod(self.span))
        add_pairs(problem.geometry, self.n_filters, indices, values, factors, out)

    def _add_linear(self, problem: Problem, indices: NDArray, values: NDArray, left: NDArray, weight: float) -> None:
        """B and the energy of x̃ = Dz + left, `left` being w (x − Dz) divided by the largest w, or by one."""
        # ½ weight ‖x̃ − Zd‖² majorises the weighted loss and touches it at the filters that made the codes.
        geometry, operator = problem.geometry, problem.operator
        fit = operator.synthesise_padded(indices, values)
        left = left.astype(fit.dtype, copy=False)
        if geometry.boundary == "circular":  # nothing is clipped: x̃ lives on the circle
            around = geometry.gather(fit) + left
            imputed = geometry.spread(around)
        else:
            around = imputed = fit + geometry.spread(left)
        flat = self._linear.reshape(-1)
        convolution.accumulate_boxes(operator.layout, indices, weight * values.astype(np.float64), imputed, flat)
        self._energy += 0.5 * weight * float(np.sum(around.astype(np.float64) ** 2))

    def product(self, filters: NDArray, k: int) -> NDArray:
        out = np.empty((self.channels, prod(self.size)))
        toeplitz = statistics.make_toeplitz(self._blocks, self.size)
        statistics.toeplitz_product(toeplitz, self._flat(filters, self._blocks.dtype), k, out)
        return out.reshape(self.channels, *self.size)

    def sweep(self, filters: NDArray, constraints: FilterConstraints) -> NDArray:
        # The sums need float64, a step from them does not: in float32 it takes half the time.
        dtype, lipschitz = filters.dtype, self.lipschitz()
        scale = 1 / max(float(np.max(lipschitz)), np.finfo(np.float64).tiny)  # keeps the sums within float32's range
        blocks = np.multiply(self._blocks, scale, out=np.empty(self._blocks.shape, dtype), casting="same_kind")
        toeplitz = statistics.make_toeplitz(blocks, self.size)
        flat = self._flat(filters, dtype)
        support = np.ones((self.n_filters, prod(self.size)), bool)
        if constraints.support is not None:
            support = constraints.support.reshape(support.shape)
        statistics.sweep_filters(
            toeplitz,
            self._flat(scale * self._linear, dtype),
            (scale * lipschitz).astype(dtype),
            support,
            constraints.zero_mean,
            constraints.nonnegative,
            flat,
        )
        return flat.reshape(filters.shape)

    def _flat(self, filters: NDArray, dtype: np.dtype) -> NDArray:
        return np.array(filters, dtype).reshape(self.n_filters, self.channels, -1)

    def linear(self) -> NDArray:
        return self._linear

    def lipschitz(self) -> NDArray:
        axes = tuple(range(1, len(self.span) + 1))
        own = np.fft.ifftshift(self.pairs[self.first], axes=axes)
        # The block is a principal part of the circulant matrix with these shifts, whose eigenvalues the FFT gives.
        return np.fft.fftn(own, axes=axes).real.reshape(self.n_filters, -1).max(axis=1)

    def energies(self) -> NDArray:
        centre = tuple(s - 1 for s in self.size)
        return self.pairs[(self.first, *centre)].copy()

    def objective(self, filters: NDArray) -> float:
        """The surrogate Σ ½‖x̃ − Zd‖² for these filters."""
        quadratic = sum(float(np.vdot(filters[k], self.product(filters, k))) for k in range(self.n_filters))
        return self._energy + 0.5 * quadratic - float(np.vdot(filters, self._linear))

    def permute(self, order: NDArray) -> None:
        self._linear = self._linear[order]
        pairs = self.pairs
        moved = np.empty_like(pairs)
        flip = tuple(slice(None, None, -1) for _ in self.span)
        for k, old_k in enumerate(order):
            later = np.asarray(order[k:])
            straight = later >= old_k
            low, high = np.minimum(old_k, later), np.maximum(old_k, later)
            rows = pairs[self.first[low] + high - low]
            rows[~straight] = rows[~straight][(slice(None), *flip)]
            moved[self.first[k] : self.first[k] + len(later)] = rows
        pairs[...] = moved

    def arrays(self) -> dict[str, NDArray]:
        return {
            "linear": self._linear,
            "pairs": self.pairs,
            "sums": np.array([self.total, self._energy]),
        }

    def restore(self, arrays: dict[str, NDArray]) -> None:
        self._linear[...] = arrays["linear"]
        self.pairs[...] = arrays["pairs"]
        self.total, self._energy = (float(value) for value in arrays["sums"])


class DenseStatistics:
    """B and C as they stand in the paper, (K·M)² for each channel; exact for any boundary and weights."""

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...]) -> None:
        self.n_filters, self.channels, self.size = n_filters, channels, tuple(size)
        self.total = 0.0
        width = n_filters * prod(size)
        self._linear = np.zeros((channels, width))
        self._quadratic = np.zeros((channels, width, width))
        self._energy = 0.0

    @staticmethod
    def bytes_for(n_filters: int, channels: int, size: tuple[int, ...]) -> tuple[int, int]:
        """Bytes of the sums, and bytes that reordering filters takes besides: a copy of C."""
        width = n_filters * prod(size)
        held = 8 * channels * (width + width**2)
        return held, held

    def add(
        self,
        problem: Problem,
        i: int,
        signal: NDArray,
        indices: NDArray,
        values: NDArray,
        residual: NDArray,
        weight: float,
    ) -> None:
        weights = problem.weights_of(i)
        codes = code_matrix(problem.geometry, self.n_filters, indices, values)
        for c in range(self.channels):
            x = signal[c].astype(np.float64).ravel()
            w = np.ones(x.size) if weights is None else weights[c].astype(np.float64).ravel()
            weighted = scipy.sparse.diags_array(w) @ codes
            self._linear[c] += weight * (weighted.T @ x)
            self._quadratic[c] += weight * (codes.T @ weighted).toarray()
            self._energy += 0.5 * weight * float(np.sum(w * x**2))
        self.total += weight

    def product(self, filters: NDArray, k: int) -> NDArray:
        taps = prod(self.size)
        d = np.moveaxis(filters.astype(np.float64), 1, 0).reshape(self.channels, -1)
        rows = self._quadratic[:, k * taps : (k + 1) * taps]
        return np.einsum("cmj,cj->cm", rows, d).reshape(self.channels, *self.size)

    def sweep(self, filters: NDArray, constraints: FilterConstraints) -> NDArray:
        return sweep_by_blocks(self, filters, constraints)

    def linear(self) -> NDArray:
        return np.moveaxis(self._linear.reshape(self.channels, self.n_filters, *self.size), 0, 1)

    def lipschitz(self) -> NDArray:
        taps = prod(self.size)
        tiles = self._quadratic.reshape(self.channels, self.n_filters, taps, self.n_filters, taps)
        own = np.einsum("ckmkn->ckmn", tiles)
        return np.linalg.eigvalsh(own)[..., -1].max(axis=0)

    def energies(self) -> NDArray:
        diagonal = np.einsum("cii->ci", self._quadratic).reshape(self.channels, self.n_filters, -1)
        return diagonal.max(axis=(0, 2))

    def objective(self, filters: NDArray) -> float:
        """Σ ½ w (x − Zd)² for these filters."""
        d = np.moveaxis(filters.astype(np.float64), 1, 0).reshape(self.channels, -1)
        quadratic = np.einsum("ci,cij,cj->", d, self._quadratic, d)
        return self._energy + 0.5 * float(quadratic) - float(np.vdot(d, self._linear))

    def permute(self, order: NDArray) -> None:
        taps = prod(self.size)
        places = (np.asarray(order)[:, None] * taps + np.arange(taps)).ravel()
        self._linear = self._linear[:, places]
        self._quadratic = self._quadratic[:, places][:, :, places]

    def arrays(self) -> dict[str, NDArray]:
        return {
            "linear": self._linear,
            "quadratic": self._quadratic,
            "sums": np.array([self.total, self._energy]),
        }

    def restore(self, arrays: dict[str, NDArray]) -> None:
        self._linear[...] = arrays["linear"]
        self._quadratic[...] = arrays["quadratic"]
        self.total, self._energy = (float(value) for value in arrays["sums"])


def sweep_by_blocks(sums: Statistics, filters: NDArray, constraints: FilterConstraints) -> NDArray:
    """One pass of projected block coordinate descent, as the paper writes it; any statistics will do."""
    current = filters.astype(np.float64)
    linear, lipschitz = sums.linear(), sums.lipschitz()
    for k in np.flatnonzero(lipschitz > 0).tolist():
        gradient = sums.product(current, k) - linear[k]
        current[k] = constraints.project(current[k] - gradient / lipschitz[k], k)
    return current.astype(filters.dtype)


def code_matrix(geometry: Geometry, n_filters: int, indices: NDArray, values: NDArray) -> scipy.sparse.csr_array:
    """Z of one channel: (samples, n_filters · taps), so that the signal is Z d."""
    taps = prod(geometry.filter)
    filters, positions = np.divmod(indices, geometry.n_positions)
    corner = np.stack(np.unravel_index(positions, geometry.grid))
    inside = np.stack(np.unravel_index(np.arange(taps), geometry.filter))
    place = corner[:, :, None] + inside[:, None, :] - np.array(geometry.offset)[:, None, None]
    shape = np.array(geometry.signal)[:, None, None]
    if geometry.boundary == "circular":
        place = place % shape
    kept = np.all((place >= 0) & (place < shape), axis=0)
    rows = np.ravel_multi_index(tuple(np.where(kept, axis, 0) for axis in place), geometry.signal)
    columns = filters[:, None] * taps + np.arange(taps)
    entries = np.broadcast_to(values.astype(np.float64)[:, None], kept.shape)
    return scipy.sparse.csr_array(
        (entries[kept], (rows[kept], columns[kept])), shape=(prod(geometry.signal), n_filters * taps)
    )


def make_statistics(
    kind: str, n_filters: int, channels: int, size: tuple[int, ...]
) -> ToeplitzStatistics | DenseStatistics:
    """The named kind of statistics, empty."""
    return _kind(kind)(n_filters, channels, size)


def statistics_bytes(kind: str, n_filters: int, channels: int, size: tuple[int, ...]) -> tuple[int, int]:
    """Bytes of the named kind of statistics, and bytes that updating and reordering filters takes besides."""
    return _kind(kind).bytes_for(n_filters, channels, size)


def _kind(kind: str) -> type[ToeplitzStatistics] | type[DenseStatistics]:
    if kind not in ("toeplitz", "dense"):
        raise ValueError(f'statistics must be "toeplitz" or "dense", got {kind!r}')
    return ToeplitzStatistics if kind == "toeplitz" else DenseStatistics
