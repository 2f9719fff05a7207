"""Learning on a CUDA device: statistics that live there, and mini-batches that are moved while another is learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.devices import CodeLists, Device, DeviceSums, any_resident, as_volume, open_device
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import ToeplitzStatistics
from pointillist.model.problem import Problem
from pointillist.solvers.resident import upload

Codes = tuple[Sequence[NDArray], Sequence[NDArray]]
AnyBatch = TypeVar("AnyBatch", bound=Any)

_RESIDENT_PART = 0.25  # of the free memory that signals may take for good


class DeviceStatistics:
    """`ToeplitzStatistics` whose sums live on a device.

    What a step does happens there; what is asked for rarely (storing, reordering, the surrogate) is done by a
    `ToeplitzStatistics` with a copy of the sums. The device is opened when it is first needed, so that a stored model can be
    read where there is none.
    """

    def __init__(self, n_filters: int, channels: int, size: tuple[int, ...], device: str) -> None:
        self.n_filters, self.channels, self.size, self.device = n_filters, channels, tuple(size), device
        self.total = 0.0
        self._energy: Any = 0.0  # on the device once something was added
        self._restored: ToeplitzStatistics | None = None  # what the device is to begin with
        self._laid: dict[tuple[int, ...], tuple[list[NDArray], CodeLists]] = {}

    @cached_property
    def _sums(self) -> DeviceSums:
        sums = DeviceSums(open_device(self.device), self.n_filters, self.channels, as_volume(self.size))
        if self._restored is not None:
            sums.linear.set(self._restored.linear().reshape(sums.linear.shape))
            sums.pairs.set(self._restored.pairs.reshape(sums.pairs.shape))
            self._restored = None
        return sums

    def on_host(self) -> ToeplitzStatistics:
        """A copy of the sums for the CPU."""
        if self._restored is not None:
            return self._restored
        copy = ToeplitzStatistics(self.n_filters, self.channels, self.size)
        arrays = copy.arrays()
        linear, pairs = (array.get().reshape(arrays[name].shape) for name, array in self._device_arrays().items())
        copy.restore({"linear": linear, "pairs": pairs, "sums": np.array([self.total, float(self._energy)])})
        return copy

    def _device_arrays(self) -> dict[str, Any]:
        return {"linear": self._sums.linear, "pairs": self._sums.pairs}

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
        codes: Codes,
        residuals: Sequence[NDArray],
        counts: NDArray,
        weights: Sequence[NDArray] | None,
    ) -> None:
        """Add signals of one shape at once; `counts` is how much each of them counts."""
        self._energy = self._energy + self._sums.add(
            self._lists(problem, codes),
            problem.filters.reshape(self.n_filters, -1),
            residuals,
            as_volume(problem.geometry.offset, 0),
            counts,
            weights,
        )
        self.total += float(np.sum(counts))

    def objectives(
        self, problem: Problem, codes: Codes, signals: Sequence[NDArray], weights: Sequence[NDArray] | None
    ) -> NDArray:
        """½ Σ w (x − Dz)² + Σ λ|z| of signals (channels, *space) of the problem's shape, for its filters and penalty."""
        lists = self._lists(problem, codes)
        losses = self._sums.losses(
            lists,
            problem.filters.reshape(self.n_filters, -1),
            signals,
            as_volume(problem.geometry.offset, 0),
            weights,
        )
        objectives: NDArray = (losses + lists.prices(problem.penalty)).get()
        return objectives

    def _lists(self, problem: Problem, codes: Codes) -> CodeLists:
        """The codes laid out on the device; those of the last step are there already when they are evaluated."""
        indices, values = codes
        grid, around = problem.geometry.grid, problem.geometry.boundary == "circular"
        known, lists = self._laid.get(grid, ([], None))
        if lists is None or len(known) != len(indices) or any(a is not b for a, b in zip(known, indices, strict=True)):
            lists = self._sums.lay_out(as_volume(grid), indices, values, around=around)
            self._laid = {grid: (list(indices), lists)}
        return lists

    def sweep(self, filters: NDArray, constraints: FilterConstraints) -> NDArray:
        support = np.ones((self.n_filters, prod(self.size)), bool)
        if constraints.support is not None:
            support = constraints.support.reshape(support.shape)
        flat = filters.reshape(self.n_filters, -1)
        moved = self._sums.sweep(flat, support, constraints.zero_mean, constraints.nonnegative).get()
        return moved.reshape(filters.shape).astype(filters.dtype)

    def lipschitz(self) -> NDArray:
        bounds: NDArray = self._sums.lipschitz().get()
        return bounds

    def energies(self) -> NDArray:
        energies: NDArray = self._sums.energies().get()
        return energies

    def product(self, filters: NDArray, k: int) -> NDArray:
        return self.on_host().product(filters, k)

    def objective(self, filters: NDArray) -> float:
        """The surrogate Σ ½‖x̃ − Zd‖² for these filters."""
        return self.on_host().objective(filters)

    def linear(self) -> NDArray:
        return self.on_host().linear()

    def permute(self, order: NDArray) -> None:
        moved = self.on_host()
        moved.permute(order)
        self.restore(moved.arrays())

    def arrays(self) -> dict[str, NDArray]:
        return self.on_host().arrays()

    def restore(self, arrays: dict[str, NDArray]) -> None:
        self._restored = ToeplitzStatistics(self.n_filters, self.channels, self.size)
        self._restored.restore(arrays)
        self.total, self._energy = (float(value) for value in arrays["sums"])
        self.__dict__.pop("_sums", None)


def prefetch(batches: Iterable[Any], device: str = "cuda") -> Iterator[Any]:
    """Mini-batches from a stream on a device, each moved there while the caller is busy with the one before.

    Parameters
    ----------
    batches : iterable
        Of arrays (n_signals, [channels,] *space) or lists of arrays, which a thread takes one ahead of the caller.
    device : str
        "cuda" or "cuda:N".

    Yields
    ------
    CuPy arrays or lists of them, which `encode` and the learners take with the same `device`; float64 stays, everything else
    becomes float32.

    Examples
    --------
    >>> import pointillist as pt
    >>> model = pt.OnlineCSC(100, 11, device="cuda")
    >>> for batch in pt.prefetch(stream, device="cuda"):  # doctest: +SKIP
    ...     model.partial_fit(batch)
    """
    opened = open_device(device)
    return _ahead(batches, opened, lambda batch: batch if any_resident(batch) else upload(batch, opened))


def ahead(batches: Iterable[AnyBatch], device: str | None) -> Iterable[AnyBatch]:
    """`prefetch` for the learners' batches, data classes with `signals` and `weights`; as they are without a device."""
    if device is None:
        return batches
    opened = open_device(device)
    return _ahead(batches, opened, lambda batch: _moved(batch, opened))


def placed(batch: AnyBatch, device: str | None) -> AnyBatch:
    """A batch that is learned from again and again, on the device for good if that leaves most of the memory free."""
    if device is None:
        return batch
    opened = open_device(device)
    size = sum(array.nbytes for array in [*batch.signals, *(batch.weights or [])])
    return _moved(batch, opened) if size <= _RESIDENT_PART * opened.free_memory() else batch


def _moved(batch: AnyBatch, device: Device) -> AnyBatch:
    if any_resident(batch.signals):
        return batch
    with device.use():
        weights = None if batch.weights is None else upload(batch.weights, device)
        return replace(batch, signals=upload(batch.signals, device), weights=weights)


def _ahead(items: Iterable[Any], device: Device, move: Callable[[Any], Any]) -> Iterator[Any]:
    waiting = iter(items)

    def step() -> tuple[Any, ...]:
        """The next item, moved through page-locked memory on a stream of its own; nothing after the last."""
        for item in waiting:
            with device.use(), device.mover:
                return (move(item),)
        return ()

    with ThreadPoolExecutor(1, thread_name_prefix="pointillist-move") as mover:
        coming = mover.submit(step)
        while arrived := coming.result():
            coming = mover.submit(step)
            yield arrived[0]
