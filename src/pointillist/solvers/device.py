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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.cuda.device import Device, is_cpu, open_device
from pointillist.backends.cuda.engine import Batch, Engine, Evaluation
from pointillist.backends.cuda.plan import Plan, batches, make_plan
from pointillist.model.codes import SparseCodes
from pointillist.model.problem import Problem, certificate
from pointillist.solvers.base import Result, Solver, judge
from pointillist.solvers.descent import _NEGLIGIBLE, _STALLED_ROUNDS, CoordinateDescent

_RECHECKED = 10**8  # codes at most whose correlations are recomputed on the host, in float64
_MEMORY = 0.8  # part of the free device memory that may be taken


def on_device(solver: Solver, device: str) -> Solver:
    """The solver itself for "cpu", its counterpart on the device otherwise; the device is looked for at once."""
    if is_cpu(device):
        return solver
    if isinstance(solver, DeviceDescent):
        return replace(solver, device=device)
    if not isinstance(solver, CoordinateDescent):
        raise ValueError(f'device="{device}" solves with solver="cd" only, got {solver!r}')
    open_device(device)
    return DeviceDescent(settings=solver, device=device)


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
    """

    settings: CoordinateDescent = field(default_factory=CoordinateDescent)
    device: str = "cuda"
    memory: int | None = None

    def prepare(self, problem: Problem) -> DeviceState:
        """Lay out what all signals of the problem share, and move it to the device."""
        geometry = problem.geometry
        if geometry.boundary == "circular":
            raise ValueError('device="cuda" does not wrap around; use device="cpu" for boundary="circular"')
        if len(geometry.signal) > 2:
            raise ValueError('device="cuda" codes signals of one or two dimensions; use device="cpu" for more')
        if self.settings.keep_start:
            raise ValueError('device="cuda" does not know keep_start; use device="cpu"')
        return DeviceState(problem, open_device(self.device))

    def solve(
        self, state: DeviceState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
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
                    return _Rounds(self.settings, state, signals[part], part, begin).run()
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
        shapes = _plane(geometry.grid), _plane(geometry.filter)
        return make_plan(*shapes, geometry.channels, self.problem.n_filters, self.device.shared_limit)

    @cached_property
    def engine(self) -> Engine:
        problem = self.problem
        filters = problem.filters.reshape(problem.n_filters, problem.geometry.channels, *self.plan.filter)
        offset = (0, *problem.geometry.offset)[-2:]
        with self.device.use():
            made = Engine(self.device, self.plan, filters, problem.penalty, offset, problem.nonnegative, problem.sample)
            self.device.cupy.cuda.get_current_stream().synchronize()  # what follows runs on other streams
        return made

    @cached_property
    def smallest_penalty(self) -> float:
        return float(np.min(self.problem.penalty))

    @cached_property
    def rounding(self) -> float:
        """What rounding can take from max |Dᵀr| / λ, for each unit of ‖r‖ over a box: n products are off by n ε ‖d‖ ‖r‖."""
        flat = self.problem.filters.reshape(self.problem.n_filters, -1).astype(np.float64)
        norm = float(np.sqrt(np.max(np.sum(flat**2, axis=1))))
        return (self.plan.taps + 2) * float(np.finfo(np.float32).eps) / 2 * norm / self.smallest_penalty


def _plane(shape: tuple[int, ...]) -> tuple[int, int]:
    """A shape of one or two dimensions as rows and columns."""
    rows, columns = (1, *shape)[-2:]
    return rows, columns


class _Rounds:
    """One batch being solved."""

    def __init__(
        self,
        settings: CoordinateDescent,
        state: DeviceState,
        signals: Sequence[NDArray],
        part: slice,
        start: SparseCodes | None,
    ) -> None:
        self.settings, self.state, self.problem = settings, state, state.problem
        self.signals, self.first = signals, part.start
        n = len(signals)
        self.batch = Batch(state.engine, _planes(signals), self._weights(part))
        if start is not None:
            self.batch.begin(*self._allowed(start))
        self.objective, self.gap = np.zeros(n), np.zeros(n)
        self.bare = np.zeros(n)  # the gap if nothing were rounded
        self.iterations = np.zeros(n, int)
        self.lowest, self.stalled = np.full(n, np.inf), np.zeros(n, int)

    def _weights(self, part: slice) -> list[NDArray] | None:
        weights = self.problem.weights
        if weights is None:
            return None
        return _planes(list(weights[part]) if self.problem.has_own_weights else [weights])

    def _allowed(self, start: SparseCodes) -> tuple[list[NDArray], list[NDArray]]:
        """Codes to start from that the sample and the sign allow."""
        indices, values = [], []
        for index, value in zip(start.indices, start.values, strict=True):
            kept = value > 0 if self.problem.nonnegative else value != 0
            if self.problem.sample is not None:
                kept &= np.isin(index, self.problem.sample)
            indices.append(index[kept])
            values.append(value[kept])
        return indices, values

    def run(self) -> Result:
        settings, batch = self.settings, self.batch
        active, rounds = np.arange(len(self.signals)), 0
        floor = 1 + 4 * float(np.finfo(np.float32).eps)
        while True:
            found = batch.look(active)
            active = active[~self._judge(found, active, rounds)]
            if len(active) == 0:
                return self._result()
            batch.enlarge(active, settings.cells[min(rounds, len(settings.cells) - 1)], floor)
            batch.descend(active, self._targets(found), settings.max_sweeps, settings.extra, settings.ridge)
            rounds += 1
            if settings.ridge > 0 and rounds == settings.max_iter:
                batch.prune(active, _NEGLIGIBLE)

    def _judge(self, found: Evaluation, active: NDArray, rounds: int) -> NDArray:
        """Certify the active signals and say which of them are to stop."""
        loss, energy, ratio = found.loss[active], found.energy[active], found.ratio[active]
        objective = loss + found.price[active]
        self.objective[active] = objective
        self.gap[active] = _gaps(objective, loss, energy, ratio + self.state.rounding * found.box[active])
        self.bare[active] = _gaps(objective, loss, energy, ratio)
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
            indices, values = self.batch.collect()
            shape = (len(self.signals), problem.geometry.channels, *problem.geometry.signal)
            residuals = self.batch.residuals().reshape(shape).astype(dtype, copy=False)
        values = [value.astype(dtype, copy=False) for value in values]
        tol = self.settings.tol
        near = (self.gap > tol) & (self.bare <= 10 * tol)
        for i in np.flatnonzero(near).tolist() if problem.operator.n_codes <= _RECHECKED else ():
            # Perhaps only rounding stands in the way: evaluate in float64 throughout.
            found = certificate(problem, self.first + i, self.signals[i], indices[i], values[i])
            self.objective[i], self.gap[i] = found.objective, found.gap
        statuses = tuple(judge(gap, value, tol) for gap, value in zip(self.gap, self.objective, strict=True))
        codes = SparseCodes(indices, values, [problem.geometry.grid] * len(indices), problem.n_filters)
        return Result(codes, self.objective, self.gap, statuses, self.iterations, list(residuals))


def _planes(arrays: Sequence[NDArray]) -> list[NDArray]:
    """Arrays (channels, *space) of one or two dimensions as (channels, rows, columns)."""
    return [array if array.ndim == 3 else array[:, None, :] for array in arrays]


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
