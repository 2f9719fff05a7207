"""Coordinate descent on a CUDA device, and what lives there before and after it: signals, codes, mini-batches.

`DeviceDescent` does the rounds of `CoordinateDescent` for a whole group of signals at a time. The device finds violators
and descends in float32 and evaluates in float64; `solve_by_rounds` decides who is done, from the same certificate as on the
CPU. Signals and filters are rounded to float32, and the certificate is about these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import any_resident, as_cupy, as_kind, group_by_shape, pieces, rows, to_host
from pointillist.codes import SparseCodes
from pointillist.cuda.device import TUNING as device_tuning
from pointillist.cuda.device import Device, open_device
from pointillist.cuda.engine import Engine, SignalGroup
from pointillist.cuda.plan import DEPTH, KernelPlan, as_volume, make_plan, signal_groups
from pointillist.cuda.sums import CodeLists
from pointillist.problem import Certificate, Geometry, Problem, certificate, relative_gap
from pointillist.solvers.base import Result, merge_results
from pointillist.solvers.coordinate_descent import CoordinateDescent, RoundReport, solve_by_rounds
from pointillist.validation import kept_precision


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Memory that may be taken, and precision that is enough; measured by benchmarks.gpu on one H200."""

    memory: float = 0.8
    """Share of the free device memory that solving may take."""
    resident: float = 0.25
    """Share of the free device memory that signals may take for as long as they are learned from."""
    rechecked: int = 10**8
    """Codes at most whose correlations are recomputed on the host, in float64."""
    tensor_tol: float = 1e-3
    """Smallest tolerance for which correlations of some 16 bits do, those of tensor cores."""


TUNING = Tuning()


@dataclass(frozen=True, kw_only=True)
class DeviceDescent:
    """Solver that does on a CUDA device what `CoordinateDescent` does on the CPU.

    Parameters
    ----------
    settings : CoordinateDescent
        Tolerance, rounds, cells and sweeps.
    device : str
        "cuda" or "cuda:N".
    memory : int or None
        Bytes of device memory that may be taken; None is four fifths of what is free. Signals are solved in groups that fit.
    resident : bool
        Leave codes and residuals on the device, as CuPy arrays; they go to the host otherwise.
    """

    takes_start: ClassVar[bool] = True

    settings: CoordinateDescent = field(default_factory=CoordinateDescent)
    device: str = "cuda"
    memory: int | None = None
    resident: bool = False

    @property
    def tol(self) -> float:
        """Relative duality gap to reach."""
        return self.settings.tol

    def rescaled(self, power: int) -> Self:
        """This solver for w ‖d‖² divided by 2 to the `power`."""
        changed = self.settings.rescaled(power)
        return self if changed is self.settings else replace(self, settings=changed)

    def prepare(self, problem: Problem) -> DeviceState:
        """Lay out what all signals of the problem share, and move it to the device."""
        as_volume(problem.geometry.signal)
        return DeviceState(problem, open_device(self.device))

    def solve(
        self, state: DeviceState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space), from zero or from `start`."""
        device, engine = state.device, state.engine
        if self.memory is None:  # what the problem itself needs is taken already
            memory, shared = int(TUNING.memory * device.free_memory()), 0
        else:
            memory, shared = self.memory, engine.bytes
        slices = list(signal_groups(len(signals), state.plan, memory, device_tuning.streams, shared))

        def work(chosen: slice) -> Result:
            with device.own_stream():
                begin = None if start is None else start[chosen]
                sets = DeviceWorkingSets(self, state, signals[chosen], chosen, begin)
                return solve_by_rounds(sets, self.settings)

        if len(slices) == 1 or engine.seconds is not None:
            results = [work(chosen) for chosen in slices]
        else:
            with ThreadPoolExecutor(device_tuning.streams) as pool:
                results = list(pool.map(work, slices))
        return merge_results(results, [range(chosen.start, chosen.stop) for chosen in slices])


@dataclass(frozen=True, eq=False)
class DeviceState:
    """A problem with what a device shares between its signals."""

    problem: Problem
    device: Device

    @cached_property
    def plan(self) -> KernelPlan:
        geometry = self.problem.geometry
        shapes = as_volume(geometry.grid), as_volume(geometry.filter)
        limit, around = self.device.shared_limit, geometry.boundary == "circular"
        return make_plan(*shapes, geometry.channels, self.problem.n_filters, limit, around=around)

    @cached_property
    def engine(self) -> Engine:
        problem = self.problem
        filters = problem.filters.reshape(problem.n_filters, problem.geometry.channels, *self.plan.filter)
        offset = as_volume(problem.geometry.offset, 0)
        with self.device.use():
            made = Engine(self.device, self.plan, filters, problem.penalty, offset, problem.nonnegative, problem.sample)
            self.device.wait()  # what follows runs on other streams
        return made

    def rounding(self, tensor: bool) -> float:
        """Bound of the rounding errors of max |Dᵀr| / λ, for each unit of ‖r‖ over a box: n ε ‖d‖ for n products.

        On tensor cores numbers are split into two halves, and sums of 17 terms are cut off.
        """
        unit = float(np.finfo(np.float32).eps)
        errors = (self.plan.taps + 2) * unit / 2
        if tensor:
            errors = 3 * 2.0**-16 + 3 * 17 * (self.plan.paired_taps // DEPTH) * unit
        return errors * self.problem.largest_norm / self.problem.smallest_penalty


class DeviceWorkingSets:
    """The codes of a group of signals while they are solved for on a device; with the methods of `HostWorkingSet`."""

    epsilon = float(np.finfo(np.float32).eps)

    def __init__(
        self,
        solver: DeviceDescent,
        state: DeviceState,
        signals: Sequence[NDArray],
        chosen: slice,
        start: SparseCodes | None,
    ) -> None:
        self.settings, self.resident, self.state, self.problem = solver.settings, solver.resident, state, state.problem
        self.signals, self.n_signals, self.first = signals, len(signals), chosen.start
        weights: Any = self.problem.weights
        if weights is not None:
            weights = list(weights[chosen]) if self.problem.has_own_weights else [weights]
        self.group = SignalGroup(state.engine, signals, weights)
        self.raises = start is None
        if start is not None:
            self.group.begin(start.indices, start.values)
        self.tensor = state.engine.has_tensor_scan and (
            self.settings.tol >= TUNING.tensor_tol or self.settings.ridge > 0
        )
        self.bare = np.zeros(self.n_signals)  # the gap if nothing were rounded

    def look(self, active: NDArray, *, last: bool) -> RoundReport:
        """Evaluate and certify, by a scan in float32 where only the rounding of tensor cores stands in the way."""
        found = self._look(active, self.tensor)
        doubtful = (self.bare[active] <= self.settings.tol) & (found.gap > self.settings.tol)
        if self.tensor and doubtful.any():
            for before, after in zip(found, self._look(active[doubtful], False), strict=True):
                before[doubtful] = after
        return found

    def _look(self, active: NDArray, tensor: bool) -> RoundReport:
        found = self.group.look(active, tensor)
        loss, energy, ratio = found.loss[active], found.energy[active], found.ratio[active]
        objective = loss + found.price[active]
        constants = self.problem.constants
        constant = np.zeros(len(active)) if constants is None else constants[self.first + active]
        self.bare[active] = relative_gap(objective, loss, energy, ratio, constant)
        gap = relative_gap(objective, loss, energy, ratio + self.state.rounding(tensor) * found.box[active], constant)
        return RoundReport(objective + constant, gap, ratio)

    def descend(
        self, active: NDArray, cell: int, targets: NDArray, raised: NDArray, smallest: float | None = None
    ) -> None:
        """Take the best violator of every cell in, and sweep; drop codes smaller than a share of their penalty."""
        settings, goals = self.settings, np.zeros((2, self.n_signals))
        goals[:, active] = targets, raised
        self.group.enlarge(active, cell, goals[1] * (1 + 4 * self.epsilon))
        self.group.descend(active, goals[0], goals[1], settings.max_sweeps, settings.extra, settings.ridge)
        if smallest is not None:
            self.group.prune(active, smallest)

    def collect(self) -> tuple[list[Any], list[Any]]:
        with self.state.engine.stage("transfers"):
            index, value, bounds = self.group.collect()
            value = value.astype(self.problem.filters.dtype, copy=False)
            return pieces(self._answer(index), bounds), pieces(self._answer(value), bounds)

    def recheck(self, i: int, indices: Any, values: Any) -> Certificate | None:
        if self.bare[i] > 10 * self.settings.tol or self.problem.operator.n_codes > TUNING.rechecked:
            return None
        n = self.first + i
        constants = np.array([self.problem.constant_of(n)])
        exact = replace(self.problem, weights=to_host(self.problem.weights_of(n)), constants=constants)
        return certificate(exact, 0, to_host(self.signals[i]), to_host(indices), to_host(values))

    def residuals(self) -> list[Any]:
        geometry = self.problem.geometry
        with self.state.engine.stage("transfers"):
            shape = (self.n_signals, geometry.channels, *geometry.signal)
            left = self._answer(self.group.residuals().reshape(shape)).astype(self.problem.filters.dtype, copy=False)
        if self.resident:
            self.state.device.wait()  # others will use what was made here
        return rows(left)

    def _answer(self, array: Any) -> Any:
        """An array of the device where answers stay there, its copy on the host otherwise."""
        return array if self.resident else self.state.device.download(array)


def upload(arrays: Any, device: Device) -> Any:
    """An array or a list of arrays on the device, moved shape by shape; float64 stays, everything else becomes float32.

    A list whose entries are one and the same array stays such a list.
    """
    if not isinstance(arrays, list | tuple):
        return device.upload(arrays, kept_precision(arrays.dtype))
    moved: list[Any] = [None] * len(arrays)
    for members in group_by_shape(arrays):
        some = [arrays[i] for i in members]
        shared = all(one is some[0] for one in some)
        stack = device.upload(
            some[:1] if shared else some, np.result_type(*{kept_precision(one.dtype) for one in some})
        )
        for i, one in zip(members, [stack[0]] * len(some) if shared else rows(stack), strict=True):
            moved[i] = one
    return moved


def of_kind(result: Result, kind: str) -> Result:
    """A result whose codes and residuals are arrays of the kind ("cupy" or "torch") instead of CuPy's."""
    if kind == "cupy":
        return result
    codes = result.codes
    lists = (codes.indices, codes.values, result.residuals)
    indices, values, residuals = ([as_kind(array, kind) for array in arrays] for arrays in lists)
    return replace(result, codes=codes.replaced(indices, values), residuals=residuals)


def decode_resident(
    codes: SparseCodes, filters: NDArray, shapes: Sequence[tuple[int, ...]], boundary: str, kind: str
) -> list[Any]:
    """Signals (channels, *space) from codes that live on a device, of the codes' kind."""
    signals: list[Any] = [None] * len(codes)
    device = open_device(f"cuda:{as_cupy(codes.values[0]).device.id}")
    device.settle()
    n_filters, channels, *size = filters.shape
    for shape in dict.fromkeys(shapes):
        geometry = Geometry(shape, tuple(size), channels, boundary)
        members = [i for i, other in enumerate(shapes) if other == shape]
        some = codes[members]
        with device.use():
            grid, box = as_volume(geometry.grid), as_volume(size)
            values = [device.take(value) for value in some.values]
            indices = [device.take(index) for index in some.indices]
            around = boundary == "circular"
            lists = CodeLists(device, grid, box, channels, n_filters, indices, values, around=around)
            padded = lists.synthesise(filters.reshape(n_filters, -1))
            spans = zip(as_volume(geometry.offset, 0), as_volume(geometry.signal), strict=True)
            fits = padded[(slice(None), slice(None), *(slice(o, o + s) for o, s in spans))].astype(values[0].dtype)
            device.wait()
        for i, fit in zip(members, rows(fits), strict=True):
            signals[i] = as_kind(fit.reshape(channels, *geometry.signal), kind)
    return signals


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
    opened, waiting = open_device(device), iter(batches)

    def next_batch() -> tuple[Any, ...]:
        """Move the next batch through page-locked memory, on a stream of its own; an empty tuple after the last."""
        for batch in waiting:
            with opened.use(), opened.mover:
                return (_moved(batch, opened),)
        return ()

    def moved() -> Iterator[Any]:
        with ThreadPoolExecutor(1, thread_name_prefix="pointillist-move") as mover:
            coming = mover.submit(next_batch)
            while arrived := coming.result():
                coming = mover.submit(next_batch)
                yield arrived[0]

    return moved()


def placed(batch: Any, device: str | None) -> Any:
    """Put a batch that is learned from again and again on the device, if that leaves most of the memory free."""
    if device is None:
        return batch
    opened = open_device(device)
    size = sum(array.nbytes for array in [*batch.signals, *(batch.weights or [])])
    if size > TUNING.resident * opened.free_memory():
        return batch
    with opened.use():
        return _moved(batch, opened)


def _moved(batch: Any, device: Device) -> Any:
    """Arrays, or a batch of signals and weights, on the device; what is there already as it is."""
    signals = getattr(batch, "signals", batch)
    if any_resident(signals):
        return batch
    if signals is batch:
        return upload(batch, device)
    weights = None if batch.weights is None else upload(batch.weights, device)
    return replace(batch, signals=upload(signals, device), weights=weights)
