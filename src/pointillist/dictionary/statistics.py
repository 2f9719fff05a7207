"""Sums over codes that filters are updated from: B = Zᵀx and C = ZᵀZ, block-Toeplitz on the host or a GPU, or dense.

Both add up over signals, threads and machines, and are all that the update needs: encode → add → update. They are never
averages: what is added is weighted by the caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from math import prod

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pointillist.arrays import group_by_shape, is_cpu
from pointillist.codes import SparseCodes
from pointillist.cuda.device import open_device
from pointillist.cuda.plan import as_volume
from pointillist.cuda.sums import CodeLists, DeviceSums
from pointillist.dictionary.constraints import Factors, FilterConstraints, sweep_factors
from pointillist.kernels import convolution, statistics
from pointillist.parallel import SharedMap
from pointillist.problem import ConvolutionOperator, Geometry, broadcast_penalty, synthesise


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Work that statistics do at once, and amounts from which on threads share it; measured by benchmarks.online."""

    group: int = 25
    """Filters that are updated in a row at most: fewer make threads wait more often, more leave them less to do."""
    shared_products: int = 2**24
    """Products of a group with all filters from which on threads share them: half a millisecond of them."""
    shared_pairs: int = 150_000
    """Pairs of codes from which on threads share them: about a millisecond, beside which waking threads is little."""
    positions: int = 2**18
    """Positions of signals whose pairs are added together: 26 signals of 100×100; more gain hardly anything."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class CodedBatch:
    """Signals of any shapes with their codes, as statistics take them in.

    Parameters
    ----------
    signals : sequence of (channels, *space) arrays
    weights : None or sequence of arrays like the signals
        w ≥ 0; None is ones everywhere.
    codes : SparseCodes
    residuals : sequence of (channels, *space) arrays
        w (x − Dz) for the filters D that the codes were solved for.
    boundary : {"same", "valid", "full", "circular"}
    """

    signals: Sequence[NDArray]
    weights: Sequence[NDArray] | None
    codes: SparseCodes
    residuals: Sequence[NDArray]
    boundary: str = "same"

    def __len__(self) -> int:
        return len(self.signals)

    def take(self, members: Sequence[int]) -> CodedBatch:
        """Some of the signals; the batch itself where these are all."""
        if len(members) == len(self):
            return self
        weights = None if self.weights is None else [self.weights[i] for i in members]
        signals, residuals = ([some[i] for i in members] for some in (self.signals, self.residuals))
        return CodedBatch(signals, weights, self.codes[members], residuals, self.boundary)

    def geometry(self, filters: NDArray, i: int = 0) -> Geometry:
        """The geometry of signal i with filters (n_filters, channels, *size)."""
        return Geometry(self.signals[i].shape[1:], filters.shape[2:], filters.shape[1], self.boundary)

    def prices(self, filters: NDArray, penalty: float | NDArray, i: int) -> NDArray:
        """λ|z| of each code of signal i, in float64."""
        geometry = self.geometry(filters, i)
        price = broadcast_penalty(penalty, len(filters), geometry)
        owner, position = np.divmod(self.codes.indices[i], geometry.n_positions)
        return price[owner, position if price.shape[1] > 1 else 0] * np.abs(self.codes.values[i]).astype(np.float64)


class Statistics(ABC):
    """Sums over signals from which the filters are updated.

    Parameters
    ----------
    n_filters, channels : int
    size : tuple of int
        Spatial shape of the filters.

    Attributes
    ----------
    total : float
        How much all signals that were added count together.
    linear : (n_filters, channels, *size) float64 array
        B.
    device : str
        Where the sums live: "cpu", or the name of a CUDA device.
    """

    device = "cpu"
    linear: NDArray

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...]) -> None:
        self.n_filters, self.channels, self.size = n_filters, channels, tuple(size)
        self.total = 0.0
        self._stored: dict[str, NDArray] = {}  # what files hold, by name; changed in place only

    @abstractmethod
    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        """Add signals that were coded with `filters`; ``counts[i]`` is how much signal i counts.

        The sums do not depend on `n_jobs`, the number of threads.
        """

    @abstractmethod
    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        """One pass of projected block coordinate descent on ½ dᵀCd − Bᵀd over all filters or the chosen ones.

        Filters (n_filters, channels, *size) keep their precision. ``chosen`` has the numbers of filters, ascending; the
        others stay as they are. Gradient steps are `relaxation` times as long as the bound of the curvature says; below two
        they descend. The filters do not depend on `n_jobs`, the number of threads.
        """

    @abstractmethod
    def energies(self) -> NDArray:
        """Σ z² for each filter."""

    @abstractmethod
    def permute(self, order: NDArray) -> None:
        """Follow filters that were reordered as ``filters[order]``."""

    @abstractmethod
    def forget(self, which: NDArray) -> None:
        """Take away all that belongs to some filters, as if no code had used them."""

    def arrays(self) -> dict[str, NDArray]:
        """The sums as arrays of the host, for storage and for other statistics of the same kind."""
        return {**self._stored, "sums": np.array([self.total, 0.0])}  # files have a second number, which says nothing

    def load(self, arrays: dict[str, NDArray]) -> None:
        """Replace the sums by those that `arrays` gave."""
        for name, array in self._stored.items():
            array[...] = arrays[name]
        self.total = float(arrays["sums"][0])

    def objectives(self, batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
        """½ Σ w (x − Dz)² + Σ λ|z| of each signal for its codes and any filters, in float64."""
        shapes = [signal.shape[1:] for signal in batch.signals]
        fits = synthesise(batch.codes, filters.astype(np.float64), shapes, filters.shape[1], batch.boundary)
        found = np.empty(len(batch))
        for i, (signal, fit) in enumerate(zip(batch.signals, fits, strict=True)):
            squares = (signal - fit) ** 2
            loss = 0.5 * np.sum(squares if batch.weights is None else batch.weights[i] * squares)
            found[i] = loss + np.sum(batch.prices(filters, penalty, i))
        return found


class ToeplitzStatistics(Statistics):
    """B and C in block-Toeplitz form, half of the pairs (C_kl(δ) = C_lk(−δ)), in float64.

    Where no filter is clipped, C depends on the shift of two codes only: K²(2h−1)(2w−1) numbers instead of (Khw)². Clipped
    and masked signals are *imputed* (x̃ = Dz + r on the padded grid): ½‖x̃ − Zd‖² majorises the weighted loss, up to a
    constant, and touches it at the filters that made the codes.
    """

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...]) -> None:
        super().__init__(n_filters, channels, size)
        self.linear = np.zeros((n_filters, channels, *size))
        shape = (n_filters * (n_filters + 1) // 2, *(2 * side - 1 for side in size))
        self._blocks = np.zeros(prod(shape) + statistics.toeplitz_spare(self.size))
        self.pairs = self._blocks[: prod(shape)].reshape(shape)
        self._stored = {"linear": self.linear, "pairs": self.pairs}
        k = np.arange(n_filters, dtype=np.int64)
        self.first = k * n_filters - k * (k - 1) // 2  # number of pair (k, k); pair (k, l ≥ k) is l − k further

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        # Signals of one shape that follow each other are taken together, so that the order of the sums is theirs.
        for _, run in groupby(range(len(batch)), lambda i: batch.signals[i].shape):
            members = list(run)
            some = batch.take(members)
            operator = ConvolutionOperator(filters, some.geometry(filters))
            weights = [self._add_imputed(operator, some, i, float(counts[n])) for i, n in enumerate(members)]
            add_pairs(
                operator.geometry, self.n_filters, some.codes.indices, some.codes.values, weights, self.pairs, n_jobs
            )

    def _add_imputed(self, operator: ConvolutionOperator, batch: CodedBatch, i: int, count: float) -> float:
        """Add Zᵀx̃ of signal i to B, x̃ = Dz + r / max(w, 1); returns how much the signal counts in C then."""
        largest = 1.0 if batch.weights is None else max(float(np.max(batch.weights[i])), 1.0)
        indices, values, weight = batch.codes.indices[i], batch.codes.values[i], count * largest
        fit = operator.synthesise_padded(indices, values)
        left = (batch.residuals[i] / largest).astype(fit.dtype, copy=False)
        if batch.boundary == "circular":  # nothing is clipped: x̃ lives on the circle
            imputed = operator.geometry.spread(operator.geometry.gather(fit) + left)
        else:
            imputed = fit + operator.geometry.spread(left)
        weighted = weight * values.astype(np.float64)
        convolution.accumulate_boxes(operator.layout, indices, weighted, imputed, self.linear.reshape(-1))
        self.total += count
        return weight

    def product(self, filters: NDArray, k: int) -> NDArray:
        """(C d)_k, of shape (channels, *size), for filters d."""
        out = np.empty((filters.shape[1], prod(self.size)))
        toeplitz = statistics.make_toeplitz(self._blocks, self.size, out.dtype)
        statistics.toeplitz_product(toeplitz, 1.0, _flat(filters, out.dtype), k, out)
        return out.reshape(-1, *self.size)

    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        # The sums need float64, a step from them does not: in float32 it takes half the time, in a scale that fits.
        scale = 1 / max(float(np.max(self.energies())), np.finfo(np.float64).tiny)
        bounds = scale * step_bounds(self, chosen, relaxation)
        if constraints.rank is not None:
            return self._sweep_factors(filters, constraints, constraints.rank, bounds, scale)
        flat, dtype = _flat(filters, filters.dtype), filters.dtype
        chosen = np.arange(self.n_filters) if chosen is None else chosen
        support = constraints.flat_support(self.n_filters, prod(self.size))
        toeplitz = statistics.make_toeplitz(self._blocks, self.size, dtype)
        linear, bounds = _flat(scale * self.linear, dtype), bounds.astype(dtype)
        signs, gradient = (constraints.zero_mean, constraints.nonnegative), np.empty_like(flat[0])
        products = min(TUNING.group, len(chosen)) * flat.size * flat.shape[2]
        threads = min(n_jobs, TUNING.group) if products >= TUNING.shared_products else 1
        sums = statistics.make_sums(toeplitz, flat, TUNING.group)
        rooms = [sums._replace(block=np.zeros_like(sums.block)) for _ in range(threads)]
        # All that a gradient is made of but the filters of its own group does not change while the group is updated, so that
        # threads share it; what is left is added filter by filter.
        for group in np.array_split(chosen, max(1, -(-len(chosen) // TUNING.group))):
            ranks = np.full(self.n_filters, -1)
            ranks[group] = np.arange(len(group))

            def work(part: tuple[int, int, bool, int], group: NDArray = group, ranks: NDArray = ranks) -> None:
                first, last, moves, room = part
                statistics.sweep_group(
                    toeplitz, scale, linear, group, first, last, moves, bounds, support, *signs, flat, ranks, rooms[room],
                    gradient,
                )  # fmt: skip

            cuts = [len(group) * i // threads for i in range(threads + 1)]
            SharedMap(threads)(work, [(a, b, False, i) for i, (a, b) in enumerate(pairwise(cuts))])
            work((0, len(group), True, 0))
        return flat.reshape(filters.shape)

    def _sweep_factors(
        self, filters: NDArray, constraints: FilterConstraints, rank: int, bounds: NDArray, scale: float
    ) -> NDArray:
        """One pass over the factors of filters of a rank, without ever making full filters of many channels."""
        dtype, linear = filters.dtype, self.linear.reshape(*filters.shape[:2], -1)
        # Blocks are met often: all are converted at once.
        blocks = np.multiply(self._blocks, scale, out=np.empty(self._blocks.shape, dtype), casting="same_kind")
        toeplitz = statistics.make_toeplitz(blocks, self.size, dtype)

        def shape_slope(factors: Factors, k: int) -> NDArray:
            (patterns, shapes), own = factors, factors[0][k].T
            seen = (own @ patterns @ shapes).astype(dtype)  # all filters, as the patterns of this one see them
            out = np.empty(shapes.shape[1:], dtype)
            statistics.toeplitz_product(toeplitz, 1.0, seen, k, out)
            return out - scale * (own @ linear[k])

        def pattern_slope(factors: Factors, k: int, rows: NDArray) -> tuple[NDArray, float]:
            patterns, shapes = factors
            around = np.empty(shapes.shape, dtype)
            statistics.toeplitz_columns(toeplitz, rows.astype(dtype), k, around)
            products = np.swapaxes(around.astype(np.float64), 1, 2)
            slope = np.sum(patterns @ (shapes @ products), axis=0) - scale * (linear[k] @ rows.T)
            curvature = float(np.linalg.eigvalsh(rows @ products[k])[-1])
            return slope, curvature * (1 + 8 * float(np.finfo(dtype).eps))

        return sweep_factors(shape_slope, pattern_slope, bounds, filters, constraints, rank)

    def lipschitz(self, chosen: NDArray | None = None) -> NDArray:
        """Upper bounds of the eigenvalues of the own blocks of C of all filters or the chosen ones."""
        axes = tuple(range(1, len(self.size) + 1))
        own = np.fft.ifftshift(self.pairs[self.first if chosen is None else self.first[chosen]], axes=axes)
        # The block is a principal part of the circulant matrix with these shifts, whose eigenvalues the FFT gives. A real
        # signal's other half of the spectrum mirrors the first.
        return np.fft.rfftn(own, axes=axes).real.reshape(len(own), -1).max(axis=1)

    def energies(self) -> NDArray:
        return self.pairs[(self.first, *(s - 1 for s in self.size))].copy()

    def forget(self, which: NDArray) -> None:
        self.linear[which] = 0
        others = np.arange(self.n_filters)
        low, high = np.minimum.outer(which, others), np.maximum.outer(which, others)
        self.pairs[self.first[low] + high - low] = 0

    def permute(self, order: NDArray) -> None:
        self.linear[...] = self.linear[order]
        rows, columns = (order[numbers] for numbers in np.triu_indices(self.n_filters))
        low, high = np.minimum(rows, columns), np.maximum(rows, columns)
        moved = self.pairs[self.first[low] + high - low]
        for n in np.flatnonzero(rows > columns):
            moved[n] = np.flip(moved[n]).copy()
        self.pairs[...] = moved


class DenseStatistics(Statistics):
    """B and C as they stand in the paper, (K·M)² for each channel: exact for any boundary and weights, of small problems."""

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...]) -> None:
        super().__init__(n_filters, channels, size)
        width = n_filters * prod(size)
        self._stored = {"linear": np.zeros((channels, width)), "quadratic": np.zeros((channels, width, width))}
        self.linear = np.moveaxis(self._stored["linear"].reshape(channels, n_filters, *size), 1, 0)
        self.quadratic = self._stored["quadratic"].reshape(channels, *(n_filters, prod(size)) * 2)

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        for i, (signal, count) in enumerate(zip(batch.signals, counts.tolist(), strict=True)):
            geometry = batch.geometry(filters, i)
            codes = code_matrix(geometry, self.n_filters, batch.codes.indices[i], batch.codes.values[i])
            for c in range(self.channels):
                x = signal[c].astype(np.float64).ravel()
                w = np.ones(x.size) if batch.weights is None else batch.weights[i][c].astype(np.float64).ravel()
                weighted = scipy.sparse.diags_array(w) @ codes
                self.linear[:, c] += (count * (weighted.T @ x)).reshape(-1, *self.size)
                self.quadratic[c] += (count * (codes.T @ weighted).toarray()).reshape(self.quadratic[c].shape)
            self.total += count

    def product(self, filters: NDArray, k: int) -> NDArray:
        """(C d)_k, of shape (channels, *size), for filters d."""
        rows = self.quadratic[:, k].reshape(self.channels, prod(self.size), -1)
        exact = np.moveaxis(filters.astype(np.float64), 1, 0).reshape(self.channels, -1)
        return np.einsum("cmj,cj->cm", rows, exact).reshape(-1, *self.size)

    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        bounds = step_bounds(self, chosen, relaxation)
        if constraints.rank is None:
            return plain_sweep(self, filters, constraints, bounds)

        def slope(factors: Factors, k: int) -> NDArray:
            full = (factors[0] @ factors[1]).reshape(filters.shape)
            return (self.product(full, k) - self.linear[k]).reshape(self.channels, -1)

        def pattern_slope(factors: Factors, k: int, rows: NDArray) -> tuple[NDArray, float]:
            curvatures = np.linalg.eigvalsh(rows @ self.quadratic[:, k, :, k] @ rows.T)
            return slope(factors, k) @ rows.T, float(np.max(curvatures))

        return sweep_factors(
            lambda factors, k: factors[0][k].T @ slope(factors, k),
            pattern_slope,
            bounds,
            filters,
            constraints,
            constraints.rank,
        )

    def lipschitz(self, chosen: NDArray | None = None) -> NDArray:
        """Largest eigenvalues of the own blocks of C of all filters or the chosen ones."""
        which = np.arange(self.n_filters) if chosen is None else chosen
        return np.linalg.eigvalsh(self.quadratic[:, which, :, which])[..., -1].max(axis=1)

    def energies(self) -> NDArray:
        return np.einsum("ckmkm->ckm", self.quadratic).max(axis=(0, 2))

    def forget(self, which: NDArray) -> None:
        self.linear[which] = 0
        self.quadratic[:, which] = 0
        self.quadratic[:, :, :, which] = 0

    def permute(self, order: NDArray) -> None:
        self.linear[...] = self.linear[order]
        self.quadratic[...] = self.quadratic[:, order][:, :, :, order]


class DeviceStatistics(Statistics):
    """`ToeplitzStatistics` whose sums live on a CUDA device.

    What a step does happens there; what is asked for rarely (storing, reordering) is done by a `ToeplitzStatistics` with a
    copy of the sums. The device is opened when it is first needed, so that a stored model can be read where there is none.

    Parameters
    ----------
    device : str
        "cuda" or "cuda:N".
    """

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...], device: str) -> None:
        super().__init__(n_filters, channels, size)
        self.device = device
        self._loaded: ToeplitzStatistics | None = None  # what the device is to begin with

    @cached_property
    def _sums(self) -> DeviceSums:
        sums = DeviceSums(open_device(self.device), self.n_filters, self.channels, as_volume(self.size))
        if self._loaded is not None:
            sums.linear.set(self._loaded.linear.reshape(sums.linear.shape))
            sums.pairs.set(self._loaded.pairs.reshape(sums.pairs.shape))
            self._loaded = None
        return sums

    def on_host(self) -> ToeplitzStatistics:
        """A copy of the sums for the CPU."""
        if self._loaded is not None:
            return self._loaded
        copy = ToeplitzStatistics(self.n_filters, self.channels, self.size)
        copy.linear[...] = self._sums.linear.get().reshape(copy.linear.shape)
        copy.pairs[...] = self._sums.pairs.get().reshape(copy.pairs.shape)
        copy.total = self.total
        return copy

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        flat = filters.reshape(self.n_filters, -1)
        for members, some, lists, offset in self._parts(batch, filters):
            self._sums.add(lists, flat, some.residuals, offset, counts[members], some.weights)
            self.total += float(np.sum(counts[members]))

    def objectives(self, batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
        found, flat = np.empty(len(batch)), filters.reshape(self.n_filters, -1)
        for members, some, lists, offset in self._parts(batch, filters):
            losses = self._sums.losses(lists, flat, some.signals, offset, some.weights)
            penalties = broadcast_penalty(penalty, self.n_filters, some.geometry(filters))
            found[members] = (losses + lists.penalty_sums(penalties)).get()
        return found

    def _parts(
        self, batch: CodedBatch, filters: NDArray
    ) -> Iterator[tuple[list[int], CodedBatch, CodeLists, tuple[int, ...]]]:
        """Yield the signals of each shape with their codes laid out, and where they lie on the padded grid."""
        for members in group_by_shape(batch.signals):
            some = batch.take(members)
            geometry, codes = some.geometry(filters), some.codes
            around = geometry.boundary == "circular"
            lists = self._sums.lay_out(as_volume(geometry.grid), codes.indices, codes.values, around=around)
            yield members, some, lists, as_volume(geometry.offset, 0)

    def sweep(
        self,
        filters: NDArray,
        constraints: FilterConstraints,
        chosen: NDArray | None = None,
        *,
        relaxation: float = 1.0,
        n_jobs: int = 1,
    ) -> NDArray:
        if constraints.rank is not None:  # small products of patterns and shapes, which the host does as fast
            return self.on_host().sweep(filters, constraints, chosen, relaxation=relaxation, n_jobs=n_jobs)
        chosen = np.arange(self.n_filters) if chosen is None else chosen
        support = constraints.flat_support(self.n_filters, prod(self.size))
        signs = constraints.zero_mean, constraints.nonnegative
        moved = self._sums.sweep(filters.reshape(self.n_filters, -1), chosen, relaxation, support, *signs).get()
        return moved.reshape(filters.shape).astype(filters.dtype)

    def energies(self) -> NDArray:
        return self._sums.energies().get()

    def forget(self, which: NDArray) -> None:
        left = self.on_host()
        left.forget(which)
        self.load(left.arrays())

    def permute(self, order: NDArray) -> None:
        moved = self.on_host()
        moved.permute(order)
        self.load(moved.arrays())

    def arrays(self) -> dict[str, NDArray]:
        return self.on_host().arrays()

    def load(self, arrays: dict[str, NDArray]) -> None:
        self._loaded = ToeplitzStatistics(self.n_filters, self.channels, self.size)
        self._loaded.load(arrays)
        self.total = self._loaded.total
        self.__dict__.pop("_sums", None)


def make_statistics(kind: str, n_filters: int, channels: int, size: tuple[int, ...], device: str = "cpu") -> Statistics:
    """Empty statistics of a kind, "toeplitz" or "dense"; only the first can live on a CUDA device."""
    if kind == "dense":
        return DenseStatistics(n_filters, channels, size)
    if is_cpu(device):
        return ToeplitzStatistics(n_filters, channels, size)
    return DeviceStatistics(n_filters, channels, size, device)


def step_bounds(sums: ToeplitzStatistics | DenseStatistics, chosen: NDArray | None, relaxation: float) -> NDArray:
    """Inverse lengths of steps, with zeros for filters that are not chosen, which stay as they are."""
    bounds = np.zeros(sums.n_filters)
    bounds[slice(None) if chosen is None else chosen] = sums.lipschitz(chosen) / relaxation
    return bounds


def plain_sweep(
    sums: ToeplitzStatistics | DenseStatistics, filters: NDArray, constraints: FilterConstraints, bounds: NDArray
) -> NDArray:
    """The sweep of the paper, filter by filter: of dense statistics, and the slow reference of the others."""
    current = filters.astype(np.float64)
    for k in np.flatnonzero(bounds > 0).tolist():
        gradient = sums.product(current, k) - sums.linear[k]
        current[k] = constraints.project(current[k] - gradient / bounds[k], k)
    return current.astype(filters.dtype)


def add_pairs(
    geometry: Geometry,
    n_filters: int,
    indices: Sequence[NDArray],
    values: Sequence[NDArray],
    weights: Sequence[float],
    out: NDArray,
    n_jobs: int = 1,
) -> None:
    """Add weight · z_i z_j to C for every pair of codes of a signal closer than a filter.

    C is larger than a processor's caches; what belongs to one filter is not. Going filter by filter through the codes of
    many signals, stacked like layers of one, each part of C is fetched once for all of them. Every sum is still added up in
    the order of the signals, so that its bits depend neither on how many are taken together nor on the threads.

    Parameters
    ----------
    geometry : Geometry
        Of all signals.
    n_filters : int
    indices, values : sequences of arrays
        Codes of each signal, flat.
    weights : sequence of float
        How much each signal counts.
    out : (n_pairs, *shifts) float64 array
        `ToeplitzStatistics.pairs`.
    n_jobs : int
        Threads.
    """
    together = max(1, TUNING.positions // geometry.n_positions)
    for begin in range(0, len(indices), together):
        grid, layers = geometry.grid, []
        for number, i in enumerate(range(begin, min(begin + together, len(indices)))):
            filters, positions = np.divmod(indices[i], geometry.n_positions)
            value, own = values[i].astype(np.float64), np.ones(len(filters), bool)
            if geometry.boundary == "circular":
                # Behind its border the circle goes on with copies, which codes at the other end meet there.
                margins = [(side - 1, side - 1) for side in geometry.filter]
                wide = np.pad(np.arange(geometry.n_positions).reshape(geometry.grid), margins, mode="wrap")
                sparse = scipy.sparse.csc_array((value, (filters, positions)), (n_filters, geometry.n_positions))
                around = sparse[:, wide.ravel()].tocoo()
                filters, positions, value, grid = around.row, around.col, around.data, wide.shape
                own = np.pad(np.ones(geometry.grid, bool), margins).ravel()[positions]
            layers.append((filters, positions + number * prod(grid), value, weights[i] * value, own))
        filters, positions, value, weighted, own = (np.concatenate(some) for some in zip(*layers, strict=True))
        order = np.argsort(positions, kind="stable")
        filters, positions = filters[order], positions[order]
        shape = (len(layers), *grid)
        owners = np.argsort(filters, kind="stable")
        arrays = (owners[own[order][owners]], filters, positions, value[order], weighted[order])

        pairs = len(filters) ** 2 * prod(2 * s - 1 for s in geometry.filter) / prod(shape)  # as if codes lay evenly
        threads = n_jobs if pairs >= TUNING.shared_pairs else 1
        # Each thread owns filters and so rows of C. The first filters have more pairs than the last, hence more parts.
        counts = np.cumsum(np.bincount(filters, minlength=n_filters))
        parts = 1 if threads == 1 else 2 * threads
        cuts = [0, *np.searchsorted(counts, counts[-1] * np.arange(1, parts) / parts).tolist(), n_filters]
        spans = [(first, last) for first, last in pairwise(cuts) if first < last]
        flat, size = out.reshape(len(out), -1), (1, *geometry.filter)
        statistics.add_pairs(*arrays, shape, size, spans, flat, SharedMap(threads))


def code_matrix(geometry: Geometry, n_filters: int, indices: NDArray, values: NDArray) -> scipy.sparse.csc_array:
    """Z of one channel: (samples, n_filters · taps), so that the signal is Z d; each column the codes moved by a tap."""
    taps = prod(geometry.filter)
    units = np.eye(taps).reshape(taps, 1, *geometry.filter)
    operator = ConvolutionOperator(units, replace(geometry, channels=1))
    filters, positions = np.divmod(indices, geometry.n_positions)
    columns = []
    for k in range(n_filters):
        own = filters == k
        for tap in range(taps):
            moved = operator.synthesise(tap * geometry.n_positions + positions[own], values[own])
            columns.append(scipy.sparse.csc_array(moved.reshape(-1, 1)))
    return scipy.sparse.hstack(columns, format="csc")


def _flat(filters: NDArray, dtype: np.dtype) -> NDArray:
    return np.array(filters, dtype).reshape(*filters.shape[:2], -1)
