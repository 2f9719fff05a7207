"""The block-Toeplitz statistics with their sums on a CUDA device, where a step adds to them and sweeps over the filters."""

from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.cuda.device import open_device
from pointillist.cuda.plan import as_volume
from pointillist.cuda.sums import CodeLists, DeviceSums
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import CodedBatch
from pointillist.dictionary.toeplitz import ToeplitzStatistics
from pointillist.problem import Geometry, broadcast_penalty
from pointillist.validation import group_by_shape


class DeviceStatistics:
    """`ToeplitzStatistics` whose sums live on a device.

    What a step does happens there; what is asked for rarely (storing, reordering) is done by a
    `ToeplitzStatistics` with a copy of the sums. The device is opened when it is first needed, so that a stored model can be
    read where there is none.

    Parameters
    ----------
    n_filters : int
    channels : int
    size : tuple of int
        Spatial shape of the filters.
    device : str
        "cuda" or "cuda:N".
    """

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...], device: str) -> None:
        self.n_filters, self.channels, self.size, self.device = n_filters, channels, tuple(size), device
        self.total = 0.0
        self._energy: Any = 0.0  # on the device once something was added
        self._loaded: ToeplitzStatistics | None = None  # what the device is to begin with
        self._laid: dict[tuple[int, ...], tuple[list[NDArray], CodeLists]] = {}

    @cached_property
    def _sums(self) -> DeviceSums:
        sums = DeviceSums(open_device(self.device), self.n_filters, self.channels, as_volume(self.size))
        if self._loaded is not None:
            sums.linear.set(self._loaded.linear().reshape(sums.linear.shape))
            sums.pairs.set(self._loaded.pairs.reshape(sums.pairs.shape))
            self._loaded = None
        return sums

    def on_host(self) -> ToeplitzStatistics:
        """A copy of the sums for the CPU."""
        if self._loaded is not None:
            return self._loaded
        copy = ToeplitzStatistics(self.n_filters, self.channels, self.size)
        shapes = {name: array.shape for name, array in copy.arrays().items()}
        linear, pairs = self._sums.linear.get().reshape(shapes["linear"]), self._sums.pairs.get()
        sums = np.array([self.total, float(self._energy)])
        copy.load({"linear": linear, "pairs": pairs.reshape(shapes["pairs"]), "sums": sums})
        return copy

    def add(self, batch: CodedBatch, filters: NDArray, counts: NDArray, n_jobs: int = 1) -> None:
        flat = filters.reshape(self.n_filters, -1)
        for members, some, lists, offset in self._parts(batch, filters):
            added = self._sums.add(lists, flat, some.residuals, offset, counts[members], some.weights)
            self._energy = self._energy + added
            self.total += float(np.sum(counts[members]))

    def objectives(self, batch: CodedBatch, filters: NDArray, penalty: float | NDArray) -> NDArray:
        objectives, flat = np.empty(len(batch)), filters.reshape(self.n_filters, -1)
        for members, some, lists, offset in self._parts(batch, filters):
            losses = self._sums.losses(lists, flat, some.signals, offset, some.weights)
            penalties = broadcast_penalty(penalty, self.n_filters, some.geometry(filters))
            objectives[members] = (losses + lists.penalty_sums(penalties)).get()
        return objectives

    def _parts(
        self, batch: CodedBatch, filters: NDArray
    ) -> Iterator[tuple[list[int], CodedBatch, CodeLists, tuple[int, ...]]]:
        """Yield the signals of each shape with their codes laid out, and where they lie on the padded grid."""
        for members in group_by_shape(batch.signals):
            some = batch if len(members) == len(batch) else batch.take(members)
            geometry = some.geometry(filters)
            yield members, some, self._lists(geometry, some.codes), as_volume(geometry.offset, 0)

    def _lists(self, geometry: Geometry, codes: SparseCodes) -> CodeLists:
        """The codes laid out on the device; those of the last step are there already when they are evaluated."""
        grid, around = geometry.grid, geometry.boundary == "circular"
        known, lists = self._laid.get(grid, ([], None))
        same = len(known) == len(codes) and all(a is b for a, b in zip(known, codes.indices, strict=True))
        if lists is None or not same:
            lists = self._sums.lay_out(as_volume(grid), codes.indices, codes.values, around=around)
            self._laid = {grid: (list(codes.indices), lists)}
        return lists

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
        support = np.ones((self.n_filters, prod(self.size)), bool)
        if constraints.support is not None:
            support = constraints.support.reshape(support.shape)
        flat = filters.reshape(self.n_filters, -1)
        signs = constraints.zero_mean, constraints.nonnegative
        moved = self._sums.sweep(flat, chosen, relaxation, support, *signs).get()
        return moved.reshape(filters.shape).astype(filters.dtype)

    def energies(self) -> NDArray:
        return self._sums.energies().get()

    def retire(self, filters: NDArray, which: NDArray) -> None:
        left = self.on_host()
        left.retire(filters, which)
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
        self.total, self._energy = (float(value) for value in arrays["sums"])
        self.__dict__.pop("_sums", None)
