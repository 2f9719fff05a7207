"""B and C of the dictionary update as full matrices, for small problems and as the reference for other statistics."""

from math import prod

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.lowrank import Factors, sweep_factors
from pointillist.dictionary.statistics import CodedBatch, host_objectives
from pointillist.dictionary.toeplitz import ToeplitzStatistics
from pointillist.problem import Geometry


class DenseStatistics:
    """B and C as they stand in the paper, (K·M)² for each channel; exact for any boundary and weights.

    Parameters
    ----------
    n_filters : int
    channels : int
    size : tuple of int
        Spatial shape of the filters.
    """

    device = "cpu"

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
        held = 8 * sum(map(prod, dense_shapes(n_filters, channels, size).values()))
        return held, held

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        for i, (signal, weight) in enumerate(zip(batch.signals, counts.tolist(), strict=True)):
            codes = code_matrix(
                batch.geometry(filters, i), self.n_filters, batch.codes.indices[i], batch.codes.values[i]
            )
            for c in range(self.channels):
                x = signal[c].astype(np.float64).ravel()
                w = np.ones(x.size) if batch.weights is None else batch.weights[i][c].astype(np.float64).ravel()
                weighted = scipy.sparse.diags_array(w) @ codes
                self._linear[c] += weight * (weighted.T @ x)
                self._quadratic[c] += weight * (codes.T @ weighted).toarray()
                self._energy += 0.5 * weight * float(np.sum(w * x**2))
            self.total += weight

    def objectives(self, batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
        return host_objectives(batch, filters, penalty)

    def product(self, filters: NDArray, k: int) -> NDArray:
        taps = prod(self.size)
        d = np.moveaxis(filters.astype(np.float64), 1, 0).reshape(self.channels, -1)
        rows = self._quadratic[:, k * taps : (k + 1) * taps]
        return np.einsum("cmj,cj->cm", rows, d).reshape(self.channels, *self.size)

    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        if constraints.rank is None:
            return sweep_by_blocks(self, filters, constraints, chosen, relaxation)
        bounds = only(chosen, self.lipschitz()) / relaxation
        return sweep_factors(FullSlopes(self), bounds, filters, constraints, constraints.rank)

    def curvature(self, rows: NDArray, k: int) -> float:
        """The largest eigenvalue of W C_kk Wᵀ over all channels, for rows W of shape (n_rows, n_taps)."""
        own = slice(k * prod(self.size), (k + 1) * prod(self.size))
        return float(np.max(np.linalg.eigvalsh(rows @ self._quadratic[:, own, own] @ rows.T)))

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

    def surrogate(self, filters: NDArray) -> float:
        """Σ ½ w (x − Zd)² for these filters."""
        d = np.moveaxis(filters.astype(np.float64), 1, 0).reshape(self.channels, -1)
        quadratic = np.einsum("ci,cij,cj->", d, self._quadratic, d)
        return self._energy + 0.5 * float(quadratic) - float(np.vdot(d, self._linear))

    def retire(self, filters: NDArray, which: NDArray) -> None:
        retired = np.zeros(filters.shape)
        retired[which] = filters[which]
        places = (which[:, None] * prod(self.size) + np.arange(prod(self.size))).ravel()
        d = np.moveaxis(retired, 1, 0).reshape(self.channels, -1)
        explained = np.einsum("cij,cj->ci", self._quadratic, d)
        self._energy += 0.5 * float(np.vdot(d, explained)) - float(np.vdot(d, self._linear))
        self._linear -= explained
        self._linear[:, places] = 0
        self._quadratic[:, places] = 0
        self._quadratic[:, :, places] = 0

    def permute(self, order: NDArray) -> None:
        taps = prod(self.size)
        places = (np.asarray(order)[:, None] * taps + np.arange(taps)).ravel()
        self._linear = self._linear[:, places]
        self._quadratic = self._quadratic[:, places][:, :, places]

    def arrays(self) -> dict[str, NDArray]:
        return {"linear": self._linear, "quadratic": self._quadratic, "sums": np.array([self.total, self._energy])}

    def load(self, arrays: dict[str, NDArray]) -> None:
        self._linear[...] = arrays["linear"]
        self._quadratic[...] = arrays["quadratic"]
        self.total, self._energy = (float(value) for value in arrays["sums"])


def dense_shapes(n_filters: int, channels: int, size: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of what `DenseStatistics.arrays` gives."""
    width = n_filters * prod(size)
    return {"linear": (channels, width), "quadratic": (channels, width, width), "sums": (2,)}


def only(chosen: NDArray | None, lipschitz: NDArray) -> NDArray:
    """Lipschitz constants with zeros for filters that are not chosen, which keeps these as they are."""
    return lipschitz if chosen is None else np.where(np.isin(np.arange(len(lipschitz)), chosen), lipschitz, 0.0)


def sweep_by_blocks(
    sums: DenseStatistics | ToeplitzStatistics,
    filters: NDArray,
    constraints: FilterConstraints,
    chosen: NDArray | None = None,
    relaxation: float = 1.0,
) -> NDArray:
    """One pass of projected block coordinate descent over all filters or the chosen ones, as the paper writes it."""
    current = filters.astype(np.float64)
    linear, lipschitz = sums.linear(), only(chosen, sums.lipschitz()) / relaxation
    for k in np.flatnonzero(lipschitz > 0).tolist():
        gradient = sums.product(current, k) - linear[k]
        current[k] = constraints.project(current[k] - gradient / lipschitz[k], k)
    return current.astype(filters.dtype)


class FullSlopes:
    """Derivatives by the factors of a filter from those by the full filter: `Slopes` for any statistics of the host."""

    def __init__(self, sums: DenseStatistics) -> None:
        self._sums, self._linear = sums, sums.linear()

    def of_shapes(self, factors: Factors, k: int) -> NDArray:
        return factors[0][k].T @ self._slope(factors, k)

    def of_patterns(self, factors: Factors, k: int, rows: NDArray) -> tuple[NDArray, float]:
        return self._slope(factors, k) @ rows.T, self._sums.curvature(rows, k)

    def _slope(self, factors: Factors, k: int) -> NDArray:
        patterns, shapes = factors
        filters = (patterns @ shapes).reshape(self._linear.shape)
        return (self._sums.product(filters, k) - self._linear[k]).reshape(patterns.shape[1], -1)


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
