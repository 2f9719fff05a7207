"""B and C of the dictionary update in block-Toeplitz form, which is small and exact where no filter is clipped.

When no filter is clipped, C depends on the shift of two codes only: K²(2h−1)(2w−1) numbers instead of (Khw)². Clipped and
masked signals are *imputed* (x̃ = Dz + r on the padded grid), which majorises the weighted loss, up to a constant, and
touches it at the current filters.
"""

from itertools import groupby
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.lowrank import Factors, sweep_factors
from pointillist.dictionary.pairs import add_pairs
from pointillist.dictionary.statistics import CodedBatch, host_objectives
from pointillist.dictionary.sweeping import sweep_filters
from pointillist.kernels import convolution, statistics
from pointillist.problem import ConvolutionOperator


class ToeplitzStatistics:
    """B and C in block-Toeplitz form, half of the pairs (C_kl(δ) = C_lk(−δ)), in float64.

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
        self.span = tuple(2 * s - 1 for s in size)
        self.total = 0.0
        n_pairs = n_filters * (n_filters + 1) // 2
        k = np.arange(n_filters, dtype=np.int64)
        self.first = k * n_filters - k * (k - 1) // 2  # number of pair (k, k); pair (k, l ≥ k) is l − k further
        self._linear = np.zeros((n_filters, channels, *self.size))
        self._spare = statistics.toeplitz_spare(self.size)
        self._blocks = np.zeros(n_pairs * prod(self.span) + self._spare)
        self._energy = 0.0  # Σ weight · ½‖x̃‖²

    @staticmethod
    def bytes_for(n_filters: int, channels: int, size: tuple[int, ...]) -> tuple[int, int]:
        """Bytes of the sums, and bytes that updating and reordering filters takes besides: a copy of C and its spectra."""
        held = 8 * sum(map(prod, toeplitz_shapes(n_filters, channels, size).values()))
        return held, held + 40 * n_filters * prod(2 * side - 1 for side in size)

    @property
    def pairs(self) -> NDArray:
        """C as (n_pairs, *span), k ≤ l; entry δ + size − 1 belongs to shift δ."""
        return self._blocks[: -self._spare].reshape(-1, *self.span)

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        # Signals of one shape that follow each other are taken together, so that the order of the sums is theirs.
        for _, run in groupby(range(len(batch)), lambda i: batch.signals[i].shape):
            members = list(run)
            self._add_alike(batch.take(members), filters, counts[members], n_jobs)

    def _add_alike(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int) -> None:
        """Add signals of one shape."""
        codes, operator = batch.codes, ConvolutionOperator(filters, batch.geometry(filters))
        factors = []
        for n, residual in enumerate(batch.residuals):
            largest = 1.0 if batch.weights is None else max(float(np.max(batch.weights[n])), 1.0)
            factors.append(float(counts[n]) * largest)
            solved = codes.indices[n], codes.values[n]
            self._energy += _add_linear(operator, *solved, residual / largest, factors[n], self._linear)
            self.total += factors[n] / largest
        out = self._blocks[: -self._spare].reshape(-1, prod(self.span))
        add_pairs(operator.geometry, self.n_filters, codes.indices, codes.values, factors, out, n_jobs)

    def objectives(self, batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
        return host_objectives(batch, filters, penalty)

    def product(self, filters: NDArray, k: int) -> NDArray:
        out = np.empty((self.channels, prod(self.size)))
        toeplitz = statistics.make_toeplitz(self._blocks, self.size, self._blocks.dtype)
        statistics.toeplitz_product(toeplitz, 1.0, _flat(filters, self._blocks.dtype), k, out)
        return out.reshape(self.channels, *self.size)

    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        # The sums need float64, a step from them does not: in float32 it takes half the time.
        chosen = np.arange(self.n_filters) if chosen is None else chosen
        dtype, lipschitz = filters.dtype, self.lipschitz(chosen) / relaxation
        # Keeps the sums within float32's range.
        scale = 1 / max(float(np.max(self.energies())), np.finfo(np.float64).tiny)
        if constraints.rank is not None:
            bounds = np.zeros(self.n_filters)
            bounds[chosen] = scale * lipschitz
            # Blocks are met often: all are converted at once.
            blocks = np.multiply(self._blocks, scale, out=np.empty(self._blocks.shape, dtype), casting="same_kind")
            slopes = ToeplitzSlopes(statistics.make_toeplitz(blocks, self.size, dtype), self._linear, scale)
            return sweep_factors(slopes, bounds, filters, constraints, constraints.rank)
        toeplitz = statistics.make_toeplitz(self._blocks, self.size, dtype)
        flat = _flat(filters, dtype)
        linear, bounds = _flat(scale * self._linear[chosen], dtype), (scale * lipschitz).astype(dtype)
        sweep_filters(toeplitz, scale, linear, chosen, bounds, constraints, flat, n_jobs)
        return flat.reshape(filters.shape)

    def linear(self) -> NDArray:
        return self._linear

    def lipschitz(self, chosen: NDArray | None = None) -> NDArray:
        axes = tuple(range(1, len(self.span) + 1))
        own = np.fft.ifftshift(self.pairs[self.first if chosen is None else self.first[chosen]], axes=axes)
        # The block is a principal part of the circulant matrix with these shifts, whose eigenvalues the FFT gives. A real
        # signal's other half of the spectrum mirrors the first.
        return np.fft.rfftn(own, axes=axes).real.reshape(len(own), -1).max(axis=1)

    def energies(self) -> NDArray:
        centre = tuple(s - 1 for s in self.size)
        return self.pairs[(self.first, *centre)].copy()

    def surrogate(self, filters: NDArray) -> float:
        """Σ ½‖x̃ − Zd‖² for these filters."""
        quadratic = sum(float(np.vdot(filters[k], self.product(filters, k))) for k in range(self.n_filters))
        return self._energy + 0.5 * quadratic - float(np.vdot(filters, self._linear))

    def retire(self, filters: NDArray, which: NDArray) -> None:
        retired = np.zeros(filters.shape)
        retired[which] = filters[which]
        explained = np.stack([self.product(retired, k) for k in range(self.n_filters)])
        # ½‖x̃ − Zd‖² as a function of the other filters: x̃ without what the retired ones explain.
        self._energy += 0.5 * float(np.vdot(retired, explained)) - float(np.vdot(retired, self._linear))
        self._linear -= explained
        self._linear[which] = 0
        for k in which.tolist():
            others = np.arange(self.n_filters)
            low, high = np.minimum(k, others), np.maximum(k, others)
            self.pairs[self.first[low] + high - low] = 0

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
        return {"linear": self._linear, "pairs": self.pairs, "sums": np.array([self.total, self._energy])}

    def load(self, arrays: dict[str, NDArray]) -> None:
        self._linear[...] = arrays["linear"]
        self.pairs[...] = arrays["pairs"]
        self.total, self._energy = (float(value) for value in arrays["sums"])


class ToeplitzSlopes:
    """Derivatives of the surrogate by patterns and shapes, from block-Toeplitz sums: `Slopes` that never make full filters.

    Parameters
    ----------
    toeplitz : Toeplitz
        C, scaled, in the precision that products with it are computed in.
    linear : (n_filters, channels, *size) array
        B, not scaled.
    scale : float
        What C was multiplied by.
    """

    def __init__(self, toeplitz: statistics.Toeplitz, linear: NDArray, scale: float) -> None:
        self._toeplitz, self._scale = toeplitz, scale
        self._linear = linear.reshape(*linear.shape[:2], -1)

    def of_shapes(self, factors: Factors, k: int) -> NDArray:
        patterns, shapes = factors
        dtype, own = self._toeplitz.blocks.dtype, patterns[k].T
        seen = (own @ patterns @ shapes).astype(dtype)  # all filters, as the patterns of this one see them
        out = np.empty(shapes.shape[1:], dtype)
        statistics.toeplitz_product(self._toeplitz, 1.0, seen, k, out)
        return out - self._scale * (own @ self._linear[k])

    def of_patterns(self, factors: Factors, k: int, rows: NDArray) -> tuple[NDArray, float]:
        patterns, shapes = factors
        dtype = self._toeplitz.blocks.dtype
        around = np.empty(shapes.shape, dtype)
        statistics.toeplitz_columns(self._toeplitz, rows.astype(dtype), k, around)
        products = np.swapaxes(around.astype(np.float64), 1, 2)
        slope = np.sum(patterns @ (shapes @ products), axis=0) - self._scale * (self._linear[k] @ rows.T)
        curvature = float(np.linalg.eigvalsh(rows @ products[k])[-1])
        return slope, curvature * (1 + 8 * float(np.finfo(dtype).eps))


def toeplitz_shapes(n_filters: int, channels: int, size: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of what `ToeplitzStatistics.arrays` gives."""
    pairs = (n_filters * (n_filters + 1) // 2, *(2 * side - 1 for side in size))
    return {"linear": (n_filters, channels, *size), "pairs": pairs, "sums": (2,)}


def _add_linear(
    operator: ConvolutionOperator, indices: NDArray, values: NDArray, left: NDArray, weight: float, linear: NDArray
) -> float:
    """Add to B and return the energy of x̃ = Dz + left, `left` being w (x − Dz) divided by the largest w, or by one."""
    # ½ weight ‖x̃ − Zd‖² majorises the weighted loss and touches it at the filters that made the codes.
    geometry = operator.geometry
    fit = operator.synthesise_padded(indices, values)
    left = left.astype(fit.dtype, copy=False)
    if geometry.boundary == "circular":  # nothing is clipped: x̃ lives on the circle
        around = geometry.gather(fit) + left
        imputed = geometry.spread(around)
    else:
        around = imputed = fit + geometry.spread(left)
    flat = linear.reshape(-1)
    convolution.accumulate_boxes(operator.layout, indices, weight * values.astype(np.float64), imputed, flat)
    return 0.5 * weight * float(np.sum(around.astype(np.float64) ** 2))


def _flat(filters: NDArray, dtype: np.dtype) -> NDArray:
    return np.array(filters, dtype).reshape(*filters.shape[:2], -1)
