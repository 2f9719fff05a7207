"""The working set of a batch of signals on a device: arrays, and the launches that evaluate, enlarge and descend on it.

`Engine` holds what all signals of a problem share, `Batch` the signals that are being solved. Every method works on the
signals listed in `active` and leaves the others alone. Decisions (who is done, how far to descend) are the caller's.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from pointillist.backends.cuda.plan import RUN, pack, slots

_WARPS = 4  # a block of the kernels that give each warp a bucket


class Evaluation(NamedTuple):
    """What `Batch.look` found for each signal, float64 arrays (n_signals,)."""

    loss: np.ndarray  # ½ Σ w (x − Dz)²
    energy: np.ndarray  # Σ w x (x − Dz)
    price: np.ndarray  # Σ λ|z|
    ratio: np.ndarray  # max |Dᵀr| / λ, by float32 products
    box: np.ndarray  # the largest ‖r‖ over a filter's box


class Engine:
    """Filters, penalties and sample of one problem on a device.

    Parameters
    ----------
    device : Device
    plan : Plan
    filters : (n_filters, channels, rows, columns) array
    penalty : (n_filters, 1) or (n_filters, n_positions) float64 array
    offset : (row, column) of the signal's first sample in the padded signal
    nonnegative : bool
    sample : None or (n,) int64 array of the codes that may be non-zero
    """

    def __init__(self, device, plan, filters, penalty, offset, nonnegative=False, sample=None):
        self.device, self.plan, self.offset = device, plan, offset
        self.seconds = None  # a dict makes every stage wait and add its time
        mapped = penalty.shape[1] > 1
        self.shape = (plan.channels, *plan.filter)
        self.flags = (bool(nonnegative), sample is not None, mapped)
        cupy = device.cupy
        self.bytes = plan.shared_bytes(sample is not None, mapped)
        with device.use():
            flat = np.ascontiguousarray(filters, np.float32).reshape(plan.n_filters, plan.taps)
            self.integers = cupy.asarray(plan.integers())
            self.filters = cupy.asarray(flat)
            self.blocks = cupy.asarray(filter_blocks(flat))
            self.penalty64 = cupy.asarray(np.ascontiguousarray(penalty, np.float64))
            self.penalty = self.penalty64.astype(np.float32)
            factors = np.zeros((plan.filter_blocks * RUN, penalty.shape[1]), np.float32)
            factors[: plan.n_filters] = 1 / penalty
            self.factors = cupy.asarray(factors)
            self.mask = self._mark(sample)

    def _mark(self, sample):
        plan, cupy = self.plan, self.device.cupy
        if sample is None:
            return cupy.zeros(1, np.uint32)
        words = plan.filter_blocks * plan.panels * plan.grid[0] * plan.runs * RUN // 4
        mask = cupy.zeros(words, np.uint32)
        if len(sample):
            chosen = cupy.asarray(np.ascontiguousarray(sample, np.int64))
            self.launch("mark", (-(-len(sample) // 256),), 256, (chosen, np.int64(len(sample)), mask))
        return mask

    def launch(self, name, grid, threads, arguments, shared=0):
        """Run a kernel, its first argument the plan's integers."""
        kernel = self.device.kernel(name, self.shape, self.flags, shared)
        kernel(grid, (threads,), (self.integers, *arguments), shared_mem=shared)

    @contextmanager
    def stage(self, name):
        """Time a stage where `seconds` asks for it."""
        if self.seconds is None:
            yield
            return
        stream = self.device.cupy.cuda.get_current_stream()
        stream.synchronize()
        begin = time.perf_counter()
        yield
        stream.synchronize()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


def filter_blocks(flat):
    """Filters (n, taps) as (blocks, taps, 8), zero-padded: what the scan loads at a time."""
    count = -(-len(flat) // RUN) * RUN
    padded = np.zeros((count, flat.shape[1]), np.float32)
    padded[: len(flat)] = flat
    return np.ascontiguousarray(padded.reshape(-1, RUN, flat.shape[1]).swapaxes(1, 2))


class Batch:
    """Signals that are solved together.

    Parameters
    ----------
    engine : Engine
    signals : sequence of n arrays (channels, rows, columns)
    weights : None, or a sequence of one such array for all signals or one for each
    """

    def __init__(self, engine, signals, weights=None):
        self.engine, self.n = engine, len(signals)
        plan, cupy = engine.plan, engine.device.cupy
        padded = (plan.channels, *plan.padded)
        self.inside = tuple(slice(o, o + s) for o, s in zip(engine.offset, signals[0].shape[1:], strict=True))
        with engine.stage("transfers"):
            self.signals = self._spread(signals)
            self.weights = self._spread([np.ones(signals[0].shape, np.float32)] if weights is None else weights)
        self.weight_stride = np.int64(0 if len(self.weights) == 1 else np.prod(padded))
        self.difference = cupy.empty((self.n, *padded), np.float64)
        self.residual = cupy.empty((self.n, *padded), np.float32)
        self.best = cupy.empty((self.n, plan.n_positions), np.float32)
        self.winner = cupy.empty((self.n, plan.n_positions), np.int32)
        room = (self.n, plan.n_buckets, plan.capacity)
        self.codes = cupy.empty(room, np.int32)
        self.values = cupy.empty(room, np.float32)
        self.curvatures = cupy.empty(room, np.float32)
        self.counts = cupy.zeros(room[:2], np.int32)
        self.sums = cupy.zeros((self.n, 3), np.float64)
        self.peaks = cupy.zeros((2, self.n), np.float32)
        self.moved = cupy.zeros(self.n, np.float32)

    def _spread(self, arrays):
        """Lay arrays (channels, rows, columns) into zeros of the padded shape."""
        plan, device = self.engine.plan, self.engine.device
        flat = device.cupy.zeros((len(arrays), plan.channels, *plan.padded), np.float32)
        flat[(slice(None), slice(None), *self.inside)] = device.upload(arrays)
        return flat

    def begin(self, indices, values):
        """Start from sparse codes, lists with one array for each signal; those that find no room are left out."""
        plan, engine = self.engine.plan, self.engine
        codes = np.zeros((self.n, plan.n_buckets, plan.capacity), np.int32)
        numbers = np.zeros(codes.shape, np.float32)
        counts = np.zeros(codes.shape[:2], np.int32)
        for i, (index, value) in enumerate(zip(indices, values, strict=True)):
            bucket, packed = pack(plan, index)
            place, fits = slots(bucket, plan.capacity)
            codes[i, bucket[fits], place[fits]] = packed[fits]
            numbers[i, bucket[fits], place[fits]] = value[fits]
            counts[i] = np.minimum(np.bincount(bucket, minlength=plan.n_buckets), plan.capacity)
        self.codes.set(codes)
        self.values.set(numbers)
        self.counts.set(counts)
        arguments = (engine.filters, self.weights, self.weight_stride, self.codes, self.counts, self.curvatures)
        engine.launch("measure", (-(-plan.n_buckets // _WARPS), self.n), 32 * _WARPS, arguments)

    def look(self, active) -> Evaluation:
        """The residual afresh from the codes in float64, the scan, and what they say about all signals in `active`."""
        engine, plan = self.engine, self.engine.plan
        chosen = engine.device.cupy.asarray(active.astype(np.int32))
        self.sums.fill(0)
        self.peaks.fill(0)
        with engine.stage("residual"):
            self._evaluate(chosen)
        with engine.stage("scan"):
            arguments = (chosen, self.residual, engine.blocks, engine.factors, engine.mask, self.best, self.winner)
            engine.launch(
                "scan",
                (plan.panels * plan.blocks, len(active)),
                plan.threads,
                (*arguments, self.peaks[0]),
                plan.scan_bytes,
            )
        sums, peaks = self.sums.get(), self.peaks.get().astype(np.float64)
        return Evaluation(sums[:, 0], sums[:, 1], sums[:, 2], peaks[0], np.sqrt(1.001 * peaks[1]))

    def _evaluate(self, chosen):
        engine, plan = self.engine, self.engine.plan
        samples = plan.channels * plan.padded[0] * plan.padded[1]
        spread = (min(-(-samples // 1024), 1024), len(chosen))
        engine.launch("fill", spread, 256, (chosen, self.signals, self.difference))
        for colour in range(4):
            blocks = -(-plan.of_colour(colour, plan.buckets) // _WARPS)
            if blocks:
                arguments = (chosen, engine.filters, engine.penalty64, self.codes, self.values, self.counts)
                arguments = (*arguments, self.difference, self.sums, np.int32(colour))
                engine.launch("subtract", (blocks, len(chosen)), 32 * _WARPS, arguments)
        arguments = (chosen, self.signals, self.weights, self.weight_stride, self.difference, self.residual, self.sums)
        engine.launch("finish", spread, 256, arguments)
        tiles = -(-plan.grid[0] // 32) * -(-plan.grid[1] // 32)
        height, width = 31 + plan.filter[0], 31 + plan.filter[1]
        shared = 4 * height * (width + 32)
        engine.launch("boxes", (tiles, len(chosen)), 256, (chosen, self.residual, self.peaks[1]), shared)

    def enlarge(self, active, cell: int, floor: float) -> None:
        """Drop zeros from the working sets and take the best violator of every cell in."""
        engine, plan = self.engine, self.engine.plan
        chosen = engine.device.cupy.asarray(active.astype(np.int32))
        with engine.stage("selection"):
            arguments: tuple = (
                chosen,
                self.best,
                self.winner,
                engine.filters,
                self.weights,
                self.weight_stride,
                self.codes,
            )
            arguments = (*arguments, self.values, self.curvatures, self.counts, np.int32(cell), np.float32(floor))
            warps = plan.enlarge_warps
            grid = (-(-plan.n_buckets // warps), len(active))
            engine.launch("enlarge", grid, 32 * warps, arguments, plan.enlarge_bytes)

    def descend(self, active, targets, max_sweeps: int, extra: int, ridge: float = 0.0) -> None:
        """Sweep over the working sets until no code moves more than the signal's target, or `max_sweeps` times.

        Each sweep is followed by up to `extra` over the non-zeros; `ridge` adds ½ ridge z² to the objective.
        """
        engine, plan = self.engine, self.engine.plan
        chosen = engine.device.cupy.asarray(active.astype(np.int32))
        goals = engine.device.cupy.asarray(targets.astype(np.float32))
        with engine.stage("sweeps"):
            if plan.tiles == (1, 1):
                self._sweep(chosen, goals, ridge, 0, max_sweeps, extra, write_back=False)
                return
            for _ in range(max_sweeps):
                self.moved.fill(0)
                for colour in range(4):
                    self._sweep(chosen, goals, ridge, colour, 1, extra, write_back=True)
                if np.all(self.moved.get()[active] < targets[active]):
                    return

    def _sweep(self, chosen, goals, ridge, colour, max_sweeps, extra, write_back):
        engine, plan = self.engine, self.engine.plan
        count = plan.of_colour(colour, plan.tiles)
        if count == 0:
            return
        arguments = (chosen, self.residual, engine.filters, engine.penalty, self.weights, self.weight_stride)
        arguments = (*arguments, self.codes, self.values, self.curvatures, self.counts, goals, self.moved)
        arguments = (*arguments, np.float32(ridge), np.int32(colour), np.int32(max_sweeps), np.int32(extra))
        few = count * len(chosen) <= 2 * engine.device.multiprocessors
        warps = plan.most_warps if few else plan.warps
        grid = (count, len(chosen))
        engine.launch("descend", grid, 32 * warps, (*arguments, np.int32(write_back)), plan.tile_bytes)

    def prune(self, active, part: float) -> None:
        """Set codes smaller than `part` of their penalty to zero."""
        engine, plan = self.engine, self.engine.plan
        chosen = engine.device.cupy.asarray(active.astype(np.int32))
        arguments = (chosen, engine.penalty, self.codes, self.values, self.counts, np.float32(part))
        engine.launch("prune", (-(-plan.n_buckets // _WARPS), len(active)), 32 * _WARPS, arguments)

    def collect(self):
        """Non-zero codes of all signals: lists of ascending flat indices and of values."""
        engine, plan, cupy = self.engine, self.engine.plan, self.engine.device.cupy
        total = self.n * plan.n_buckets
        places, blocks = cupy.empty(total, np.int64), -(-total // _WARPS)
        arguments = (self.codes, self.values, self.counts, np.int32(total))
        none = cupy.empty(1, np.int64)
        engine.launch("collect", (blocks,), 32 * _WARPS, (*arguments, np.int32(0), places, none, none))
        places = cupy.cumsum(places)
        count = int(places[-1])
        if count == 0:
            return [np.empty(0, np.int64)] * self.n, [np.empty(0, np.float32)] * self.n
        keys, values = cupy.empty(count, np.int64), cupy.empty(count, np.float32)
        engine.launch("collect", (blocks,), 32 * _WARPS, (*arguments, np.int32(1), places, keys, values))
        order = cupy.argsort(keys)
        bounds = places[plan.n_buckets - 1 : -1 : plan.n_buckets].get()
        indices = engine.device.download(keys[order] % (plan.n_filters * plan.n_positions))
        return np.split(indices, bounds), np.split(engine.device.download(values[order]), bounds)

    def residuals(self):
        """w (x − Dz) of all signals as last evaluated, (n, channels, rows, columns) float32."""
        return self.engine.device.download(self.residual[(slice(None), slice(None), *self.inside)])
