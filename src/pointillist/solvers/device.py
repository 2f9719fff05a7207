"""Coordinate descent on a CUDA device: the rounds of `CoordinateDescent` for a whole batch of signals at a time.

The device finds violators and descends in float32 and evaluates in float64; who is done is decided here, from the same
certificate as on the CPU. Signals and filters are rounded to float32, and the certificate is about these.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.cuda.device import Device, is_cpu, open_device
from pointillist.backends.cuda.engine import Batch, Engine, Evaluation
from pointillist.backends.cuda.exchange import pieces, rows, to_host
from pointillist.backends.cuda.plan import DEPTH, Plan, as_volume, batches, make_plan
from pointillist.model.codes import SparseCodes
from pointillist.model.problem import Problem, certificate
from pointillist.solvers.base import Result, Solver, judge
from pointillist.solvers.descent import _NEGLIGIBLE, _STALLED_ROUNDS, CoordinateDescent

_RECHECKED = 10**8  # codes at most whose correlations are recomputed on the host, in float64
_MEMORY = 0.8  # part of the free device memory that may be taken
_TENSOR_TOL = 1e-3  # the smallest tolerance for which correlations of some 16 bits do


def on_device(solver: Solver, device: str, *, resident: bool = False) -> Solver:
    """The solver itself for "cpu", its counterpart on the device otherwise; the device is looked for at once."""
    if is_cpu(device):
        return solver
    if isinstance(solver, DeviceDescent):
        return replace(solver, device=device, resident=resident)
    if not isinstance(solver, CoordinateDescent):
        raise ValueError(f'device="{device}" solves with solver="cd" only, got {solver!r}')
    open_device(device)
    return DeviceDescent(settings=solver, device=device, resident=resident)


@dataclass(frozen=True, kw_only=True)
class DeviceDescent:
    """`CoordinateDescent` on a CUDA device.

    Parameters
    ----------
    settings : CoordinateDescent
        Tolerance, rounds, cells and sweeps; `tile` is the device's own affair.
    device : str
        "cuda" or "cuda:N".
    memory : int or None
        Bytes of device memory that may be taken; None is four fifths of what is free. The batch is split to fit.
    resident : bool
        Leave codes and residuals on the device, as CuPy arrays; they go to the host otherwise.
    """

    takes_start: ClassVar[bool] = True

    settings: CoordinateDescent = field(default_factory=CoordinateDescent)
    device: str = "cuda"
    memory: int | None = None
    resident: bool = False

    def prepare(self, problem: Problem) -> DeviceState:
        """Lay out what all signals of the problem share, and move it to the device."""
        as_volume(problem.geometry.signal)
        if self.settings.keep_start:
            raise ValueError('device="cuda" does not know keep_start; use device="cpu"')
        return DeviceState(problem, open_device(self.device))

    def solve(
        self,
        state: DeviceState,
        signals: Sequence[NDArray],
        *,
        n_jobs: int = 1,
        start: SparseCodes | None = None,
    ) -> Result:
        """Solve for the codes of signals (channels, *space), from zero or from `start`."""
        device, engine = state.device, state.engine
        if self.memory is None:  # what the problem itself needs is taken already
            memory, shared = int(_MEMORY * device.free_memory()), 0
        else:
            memory, shared = self.memory, engine.bytes
        parts = list(batches(len(signals), state.plan, memory, len(device.streams), shared))
        streams: SimpleQueue[Any] = SimpleQueue()
        for stream in device.streams:
            streams.put(stream)

        def work(part: slice) -> Result:
            stream = streams.get()
            try:
                with device.use(), stream:
                    begin = None if start is None else start[part]
                    return _Rounds(self, state, signals[part], part, begin).run()
            finally:
                streams.put(stream)

        if len(parts) == 1 or engine.seconds is not None:
            results = [work(part) for part in parts]
        else:
            with ThreadPoolExecutor(len(device.streams)) as pool:
                results = list(pool.map(work, parts))
        if len(results) == 1:
            return results[0]
        return Result.merge(results, [range(part.start, part.stop) for part in parts])


@dataclass(frozen=True, eq=False)
class DeviceState:
    """A problem with what a device shares between its signals."""

    problem: Problem
    device: Device

    @cached_property
    def plan(self) -> Plan:
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

    @cached_property
    def smallest_penalty(self) -> float:
        return float(np.min(self.problem.penalty))

    @cached_property
    def rounding(self) -> float:
        """What rounding can take from max |Dᵀr| / λ, for each unit of ‖r‖ over a box: n products are off by n ε ‖d‖ ‖r‖."""
        return (self.plan.taps + 2) * float(np.finfo(np.float32).eps) / 2 * self._steepness

    @cached_property
    def tensor_rounding(self) -> float:
        """The same on tensor cores: what the split leaves out, and sums of 17 terms that are cut off, thrice a step."""
        sums = 3 * 17 * (self.plan.paired_taps // DEPTH) * float(np.finfo(np.float32).eps)
        return (3 * 2.0**-16 + sums) * self._steepness

    @cached_property
    def _steepness(self) -> float:
        flat = self.problem.filters.reshape(self.problem.n_filters, -1).astype(np.float64)
        return float(np.sqrt(np.max(np.sum(flat**2, axis=1)))) / self.smallest_penalty


class _Rounds:
    """One batch being solved."""

    def __init__(
        self,
        solver: DeviceDescent,
        state: DeviceState,
        signals: Sequence[NDArray],
        part: slice,
        start: SparseCodes | None,
    ) -> None:
        self.settings, self.resident, self.state, self.problem = solver.settings, solver.resident, state, state.problem
        self.signals, self.first = signals, part.start
        n = len(signals)
        self.batch = Batch(state.engine, signals, self._weights(part))
        if start is not None:
            self.batch.begin(start.indices, start.values)
        self.objective, self.gap = np.zeros(n), np.zeros(n)
        self.bare = np.zeros(n)  # the gap if nothing were rounded
        self.iterations = np.zeros(n, int)
        self.lowest, self.stalled = np.full(n, np.inf), np.zeros(n, int)

    def _weights(self, part: slice) -> list[NDArray] | None:
        weights = self.problem.weights
        if weights is None:
            return None
        return list(weights[part]) if self.problem.has_own_weights else [weights]

    def run(self) -> Result:
        settings, batch = self.settings, self.batch
        active, rounds = np.arange(len(self.signals)), 0
        floor = 1 + 4 * float(np.finfo(np.float32).eps)
        tensor = self.state.engine.has_tensor_scan and (settings.tol >= _TENSOR_TOL or settings.ridge > 0)
        while True:
            found = self._look(active, tensor)
            active = active[~self._judge(active, rounds)]
            if len(active) == 0:
                return self._result()
            batch.enlarge(active, settings.cells[min(rounds, len(settings.cells) - 1)], floor)
            batch.descend(active, self._targets(found), settings.max_sweeps, settings.extra, settings.ridge)
            rounds += 1
            if settings.ridge > 0 and rounds == settings.max_iter:
                batch.prune(active, _NEGLIGIBLE)

    def _look(self, active: NDArray, tensor: bool) -> Evaluation:
        """Evaluate and certify the active signals, in float32 where only the rounding of tensor cores stands in the way."""
        found = self.batch.look(active, tensor)
        self._certify(found, active, self.state.tensor_rounding if tensor else self.state.rounding)
        doubtful = active[(self.bare[active] <= self.settings.tol) & (self.gap[active] > self.settings.tol)]
        if tensor and len(doubtful):
            again = self.batch.look(doubtful)
            self._certify(again, doubtful, self.state.rounding)
            for before, after in zip(found, again, strict=True):
                before[doubtful] = after[doubtful]
        return found

    def _certify(self, found: Evaluation, active: NDArray, rounding: float) -> None:
        loss, energy, ratio = found.loss[active], found.energy[active], found.ratio[active]
        objective = loss + found.price[active]
        self.objective[active] = objective
        self.gap[active] = _gaps(objective, loss, energy, ratio + rounding * found.box[active])
        self.bare[active] = _gaps(objective, loss, energy, ratio)

    def _judge(self, active: NDArray, rounds: int) -> NDArray:
        """Say which of the active signals are to stop."""
        objective = self.objective[active]
        self.iterations[active] = rounds
        lower = (objective < self.lowest[active] * (1 - 1e-10)) | (self.settings.ridge > 0)  # that is another objective
        self.stalled[active] = np.where(lower, 0, self.stalled[active] + 1)
        self.lowest[active] = np.minimum(self.lowest[active], objective)
        done = (self.gap[active] <= self.settings.tol) | ~np.isfinite(objective)
        return done | (rounds == self.settings.max_iter) | (self.stalled[active] > _STALLED_ROUNDS)

    def _targets(self, found: Evaluation) -> NDArray:
        """How little a code may move at the end of a round, for each signal."""
        violation = np.clip(found.ratio - 1, 0.0, 1.0)
        return np.maximum(self.settings.inner * violation, 4 * np.finfo(np.float32).eps) * self.state.smallest_penalty

    def _result(self) -> Result:
        problem, dtype = self.problem, self.problem.filters.dtype
        with self.state.engine.stage("transfers"):
            index, value, bounds = self.batch.collect()
            shape = (len(self.signals), problem.geometry.channels, *problem.geometry.signal)
            arrays: tuple[Any, ...] = index, value.astype(dtype, copy=False), self.batch.residuals().reshape(shape)
            if not self.resident:
                arrays = tuple(self.state.device.download(array) for array in arrays)
        indices, values = (pieces(flat, bounds) for flat in arrays[:2])
        residuals = rows(arrays[2].astype(dtype, copy=False))
        tol = self.settings.tol
        near = (self.gap > tol) & (self.bare <= 10 * tol)
        for i in np.flatnonzero(near).tolist() if problem.operator.n_codes <= _RECHECKED else ():
            # Perhaps only rounding stands in the way: evaluate in float64 throughout, on the host.
            exact = replace(problem, weights=to_host(problem.weights_of(self.first + i)))
            found = certificate(exact, 0, to_host(self.signals[i]), to_host(indices[i]), to_host(values[i]))
            self.objective[i], self.gap[i] = found.objective, found.gap
        if self.resident:
            self.state.device.wait()  # others will use what was made here
        statuses = tuple(judge(gap, value, tol) for gap, value in zip(self.gap, self.objective, strict=True))
        codes = SparseCodes(indices, values, [problem.geometry.grid] * len(indices), problem.n_filters)
        return Result(codes, self.objective, self.gap, statuses, self.iterations, residuals)


def _gaps(objective: NDArray, loss: NDArray, energy: NDArray, ratio: NDArray) -> NDArray:
    """`relative_gap` for all signals at once."""
    scale = np.divide(np.maximum(energy, 0.0), 2 * loss, out=np.ones_like(loss), where=loss > 0)
    scale = np.where(scale * ratio > 1, 1 / np.maximum(ratio, np.finfo(np.float64).tiny), scale)
    gap = np.maximum(objective - (scale * energy - scale**2 * loss), 0.0)
    return np.divide(gap, objective, out=np.zeros_like(gap), where=objective > 0)


def timings(state: DeviceState) -> dict[str, float]:
    """Make the engine of a prepared state time its stages; the dict fills up as signals are solved."""
    state.engine.seconds = {}
    seconds: dict[str, float] = state.engine.seconds
    return seconds
