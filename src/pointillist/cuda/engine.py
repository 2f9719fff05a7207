"""The working set of a group of signals on a device: arrays, and the launches that evaluate, enlarge and descend on it.

`Engine` holds what all signals of a problem share, `SignalGroup` the signals that are being solved. Every method works on
the signals listed in `active` and leaves the others alone. Decisions (who is done, how far to descend) are the caller's.
"""

import time
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pointillist.arrays import joined
from pointillist.cuda import circle
from pointillist.cuda.packing import lane_taps, pack, slots
from pointillist.cuda.plan import CHUNK, DEPTH, RESERVED_SHARED, RUN, as_volume, colours

_WARPS = 4  # a block of the kernels that give each warp a bucket


class Evaluation(NamedTuple):
    """What `SignalGroup.look` finds out about each signal, float64 arrays (n_signals,)."""

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
    plan : KernelPlan
    filters : (n_filters, channels, layers, rows, columns) array
    penalty : (n_filters, 1) or (n_filters, n_positions) float64 array
    offset : (layer, row, column) of the signal's first sample in the padded signal
    nonnegative : bool
    sample : None or (n,) int64 array of the codes that may be non-zero
    """

    def __init__(self, device, plan, filters, penalty, offset, nonnegative=False, sample=None):
        self.device, self.plan, self.offset = device, plan, offset
        self.seconds = None  # a dict makes every stage wait and add its time
        mapped = penalty.shape[1] > 1
        self.shape = (plan.channels, *plan.filter)
        self.flags = (bool(nonnegative), sample is not None, mapped, plan.around)
        self.bytes = plan.shared_bytes(sample is not None, mapped)
        room = device.shared_limit - RESERVED_SHARED
        self.has_tensor_scan = device.has_tensor_cores and not mapped and plan.tensor_bytes <= room
        self.appraises = not plan.around and plan.appraisal_bytes <= room
        self._kernels: dict[str, Any] = {}
        flat = np.ascontiguousarray(filters, np.float32).reshape(plan.n_filters, plan.taps)
        factors = np.zeros((plan.filter_blocks * RUN, penalty.shape[1]), np.float32)
        factors[: plan.n_filters] = 1 / penalty
        arrays = {"integers": plan.integers(), "filters": flat, "blocks": filter_blocks(flat), "factors": factors}
        arrays["lane_filters"], arrays["lanes"] = lane_taps(plan, flat)
        arrays |= {"penalty64": penalty.astype(np.float64, copy=False), "penalty": penalty.astype(np.float32)}
        if sample is not None:
            arrays["sample"] = sample.astype(np.int64, copy=False)
        if self.has_tensor_scan:
            arrays["fragments"] = fragments(paired(filters, plan.paired_taps))
            arrays["tensor_factors"] = np.pad(factors[: plan.n_filters, 0], (0, -plan.n_filters % CHUNK))
        with device.use():
            there = device.upload_all(arrays)
            self.integers, self.filters, self.lane_filters = there["integers"], there["filters"], there["lane_filters"]
            self.lanes, self.blocks, self.factors = there["lanes"], there["blocks"], there["factors"]
            self.penalty64, self.penalty, self.sample = there["penalty64"], there["penalty"], there.get("sample")
            self.fragments, self.tensor_factors = there.get("fragments"), there.get("tensor_factors")
            self.mask = self._mark()

    def _mark(self):
        """The sample as bits that the scan can test."""
        plan, cupy, count = self.plan, self.device.cupy, 0 if self.sample is None else len(self.sample)
        mask = cupy.zeros(1 if self.sample is None else plan.filter_blocks * plan.mask_positions // 4, np.uint32)
        if count:
            self.launch("mark", (-(-count // 256),), 256, (self.sample, np.int64(count), mask))
        return mask

    def allowed(self, indices, values):
        """Which of the given codes, flat indices and values on the device, the sign and the sample allow."""
        cupy, kept = self.device.cupy, values > 0 if self.flags[0] else values != 0
        if self.sample is None:
            return kept
        if len(self.sample) == 0:
            return cupy.zeros_like(kept)
        place = cupy.minimum(cupy.searchsorted(self.sample, indices), len(self.sample) - 1)
        return kept & (self.sample[place] == indices)

    def launch(self, name, grid, threads, arguments, shared=0):
        """Run a kernel, its first argument the plan's integers."""
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = self.device.kernel(name, self.shape, self.flags, shared)
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
    padded = _padded(flat, (-(-len(flat) // RUN) * RUN, flat.shape[1]))
    return np.ascontiguousarray(padded.reshape(-1, RUN, flat.shape[1]).swapaxes(1, 2))


def paired(filters, length):
    """Filters (n, channels, layers, rows, columns) with their rows padded to pairs, flat and zero-padded to `length`."""
    odd = filters.shape[-1] % 2
    flat = _padded(filters, (*filters.shape[:-1], filters.shape[-1] + odd)).reshape(len(filters), -1)
    return _padded(flat, (len(flat), length))


def _padded(array, shape):
    """An array in float32 with zeros behind it along all axes, up to a shape."""
    full = np.zeros(shape, np.float32)
    full[tuple(slice(n) for n in array.shape)] = array
    return full


def fragments(flat):
    """Filters (n, taps) in bfloat16 as the lanes of the tensor cores hold them, high and low halves.

    The answer is uint16 of shape (chunks, instructions, 2 tiles, 2 halves, 32 lanes, 8): lane 4 i + j has taps 2 j, 2 j + 1,
    then the same of filter i + 8, then both with taps 8 further.
    """
    padded = _padded(flat, (-(-len(flat) // CHUNK) * CHUNK, flat.shape[1]))
    high = bfloat16(padded)
    low = bfloat16(padded - (high.astype(np.uint32) << 16).view(np.float32))
    # Axes: high or low half, chunk, tile, half of the filters, filter, instruction, half of the taps, lane, pair.
    tiles = np.stack([high, low]).reshape(2, len(padded) // CHUNK, 2, 2, 8, flat.shape[1] // DEPTH, 2, 4, 2)
    ordered = tiles.transpose(1, 5, 2, 0, 4, 7, 6, 3, 8)
    return np.ascontiguousarray(ordered).reshape(len(padded) // CHUNK, flat.shape[1] // DEPTH, 2, 2, 32, 8)


def bfloat16(array):
    """The upper halves of float32 numbers, rounded to nearest, ties to even, as uint16."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


class SignalGroup:
    """Signals that are solved together on a device.

    Parameters
    ----------
    engine : Engine
    signals : sequence of n arrays (channels, *space), of the host or of the engine's device
    weights : None, or a sequence of one such array for all signals or one for each
    """

    def __init__(self, engine, signals, weights=None):
        self.engine, self.n = engine, len(signals)
        plan, cupy = engine.plan, engine.device.cupy
        padded = (plan.channels, *plan.padded)
        space = as_volume(signals[0].shape[1:])
        self.inside = tuple(slice(o, o + s) for o, s in zip(engine.offset, space, strict=True))
        with engine.stage("transfers"):
            self.signals = self._spread(signals)
            self.weights = self._ones() if weights is None else self._spread(weights)
        self.weight_stride = np.int64(0 if len(self.weights) == 1 else np.prod(padded))
        equal = weights is None or bool(((self.weights == 0) | (self.weights == 1)).all())
        self.plain = np.int32(equal)  # whether all weights are one or zero
        self.difference = None
        self.residual = cupy.empty((self.n, *padded), np.float32)
        self.best = cupy.empty((self.n, plan.n_positions), np.float32)
        self.winner = cupy.empty((self.n, plan.n_positions), np.int32)
        room = (self.n, plan.n_buckets, plan.capacity)
        self.codes = cupy.empty(room, np.int32)
        self.values = cupy.empty(room, np.float32)
        self.curvatures = cupy.empty(room, np.float32)
        self.counts = cupy.zeros(room[:2], np.int32)
        self.found = cupy.zeros((self.n, 4), np.float64)  # sums, then peaks: they come to the host in one piece
        self.sums = self.found.reshape(-1)[: 3 * self.n]
        self.peaks = self.found.reshape(-1)[3 * self.n :].view(np.float32).reshape(2, self.n)
        self.moved = cupy.zeros(self.n, np.float32)
        self._listed: tuple[np.ndarray, Any] = (np.empty(0, int), None)

    def _chosen(self, active):
        """Numbers of signals on the device; they stay there for as long as the same ones are asked for."""
        listed, there = self._listed
        if there is None or not np.array_equal(listed, active):
            there = self.engine.device.cupy.asarray(active.astype(np.int32))
            self._listed = active.copy(), there
        return there

    def _ones(self):
        """Weights of one for all samples of a signal, and of zero around it."""
        plan = self.engine.plan
        flat = self.engine.device.cupy.zeros((1, plan.channels, *plan.padded), np.float32)
        flat[(slice(None), slice(None), *self.inside)] = 1
        if plan.around:
            circle.continue_around(flat, plan.grid, self.engine.offset)
        return flat

    def _spread(self, arrays):
        """Lay arrays (channels, *space) into zeros of the padded shape, or continue them around the circle."""
        plan, device = self.engine.plan, self.engine.device
        flat = device.cupy.zeros((len(arrays), plan.channels, *plan.padded), np.float32)
        within = flat[(slice(None), slice(None), *self.inside)]
        within[...] = device.upload(arrays).reshape(within.shape)
        if plan.around:
            circle.continue_around(flat, plan.grid, self.engine.offset)
        return flat

    def begin(self, indices, values):
        """Start from sparse codes, lists with one array for each signal; those not allowed or without room are left out."""
        plan, engine, cupy = self.engine.plan, self.engine, self.engine.device.cupy
        index, value = cupy.asarray(joined(indices)), cupy.asarray(joined(values), np.float32)
        kept = engine.allowed(index, value)
        index, value, signal = index[kept], value[kept], owners(cupy, [len(one) for one in indices])[kept]
        bucket, packed = pack(plan, index)
        bucket = bucket + plan.n_buckets * signal
        place, fits = slots(bucket, plan.capacity, cupy)
        spot = (bucket * plan.capacity + place)[fits]
        self.codes.reshape(-1)[spot] = packed[fits]
        self.values.reshape(-1)[spot] = value[fits]
        counts = cupy.bincount(bucket, minlength=self.counts.size)
        self.counts[...] = cupy.minimum(counts, plan.capacity).reshape(self.counts.shape)
        arguments = (engine.filters, self.weights, self.weight_stride, self.codes, self.counts, self.curvatures)
        engine.launch("measure", (-(-plan.n_buckets // _WARPS), self.n), 32 * _WARPS, arguments)

    def look(self, active, tensor: bool = False) -> Evaluation:
        """Compute the residuals from the codes in float64, scan them, and evaluate all signals in `active`.

        With `tensor` the scan runs on tensor cores, to some 16 bits.
        """
        engine, chosen = self.engine, self._chosen(active)
        self.found.fill(0)
        with engine.stage("residual"):
            self._evaluate(chosen)
        with engine.stage("scan"):
            self._scan(chosen, tensor)
        found = self.found.get().reshape(-1)
        sums, peaks = found[: 3 * self.n].reshape(self.n, 3), found[3 * self.n :].view(np.float32).astype(np.float64)
        loss, energy, price = sums.T
        return Evaluation(loss, energy, price, peaks[: self.n], np.sqrt(1.001 * peaks[self.n :]))

    def _scan(self, chosen, tensor):
        engine, plan = self.engine, self.engine.plan
        grid, found = (plan.scan_blocks, len(chosen)), (engine.mask, self.best, self.winner, self.peaks[0])
        if tensor:
            arguments = (chosen, self.residual, engine.fragments, engine.tensor_factors, *found, np.int32(plan.threads))
            engine.launch("scan_tensor", grid, 256, arguments, plan.tensor_bytes)
        else:
            arguments = (chosen, self.residual, engine.blocks, engine.factors, *found)
            engine.launch("scan", grid, plan.threads, arguments, plan.scan_bytes)

    def _evaluate(self, chosen):
        engine, plan = self.engine, self.engine.plan
        if engine.appraises:
            arguments = (chosen, self.signals, engine.filters, engine.penalty64, self.weights, self.weight_stride)
            arguments = (*arguments, self.codes, self.values, self.counts, self.residual, self.sums)
            engine.launch("appraise", (len(chosen),), 512, arguments, plan.appraisal_bytes)
        else:
            self._evaluate_in_parts(chosen)
        engine.launch(
            "boxes", (plan.box_tiles, len(chosen)), 256, (chosen, self.residual, self.peaks[1]), plan.box_bytes
        )

    def _evaluate_in_parts(self, chosen):
        engine, plan = self.engine, self.engine.plan
        spread = (min(-(-plan.samples // 1024), 1024), len(chosen))
        if self.difference is None:
            self.difference = engine.device.cupy.empty((self.n, plan.channels, *plan.padded), np.float64)
        engine.launch("fill", spread, 256, (chosen, self.signals, self.difference))
        if plan.around:
            circle.clear(self.difference, plan.grid)
        for colour, count in colours(plan.buckets):
            arguments = (chosen, engine.filters, engine.penalty64, self.codes, self.values, self.counts)
            arguments = (*arguments, self.difference, self.sums, np.int32(colour))
            engine.launch("subtract", (-(-count // _WARPS), len(chosen)), 32 * _WARPS, arguments)
        if plan.around:
            circle.fold(self.difference, plan.grid)
        arguments = (chosen, self.signals, self.weights, self.weight_stride, self.difference, self.residual, self.sums)
        engine.launch("finish", spread, 256, arguments)
        if plan.around:
            circle.extend(self.residual, plan.grid)

    def enlarge(self, active, cell: int, floors) -> None:
        """Drop zeros from the working sets and take the best violator of every cell in, above the signal's floor."""
        engine, plan, chosen = self.engine, self.engine.plan, self._chosen(active)
        with engine.stage("selection"):
            arguments: tuple = (chosen, self.best, self.winner, engine.filters, self.weights, self.weight_stride)
            arguments = (*arguments, self.codes, self.values, self.curvatures, self.counts)
            least = engine.device.cupy.asarray(floors.astype(np.float32))
            arguments = (*arguments, np.int32(cell), least)
            warps = plan.enlarge_warps
            grid = (-(-plan.n_buckets // warps), len(active))
            engine.launch("enlarge", grid, 32 * warps, arguments, plan.enlarge_bytes)

    def descend(
        self, active, targets, raised, max_sweeps: int, extra: int, ridge: float = 0.0, extrapolated: bool = True
    ) -> None:
        """Sweep over the working sets until no code moves more than the signal's target, or `max_sweeps` times.

        Each sweep is followed by up to `extra` over the non-zeros, which may be extrapolated. The penalties of a signal are
        multiplied with what `raised` has for it; `ridge` adds ½ ridge z² to the objective.
        """
        engine, plan, chosen = self.engine, self.engine.plan, self._chosen(active)
        goals = engine.device.cupy.asarray(np.stack([targets, raised]).astype(np.float32))
        with engine.stage("sweeps"):
            order = plan.tile_colours()
            if plan.tiles == (1, 1, 1):
                self._sweep(chosen, goals, ridge, order[0], max_sweeps, extra, extrapolated, write_back=False)
                return
            for _ in range(max_sweeps):
                self.moved.fill(0)
                for tiles in order:
                    seams = circle.Seams(self.residual, plan.grid, plan.seams)
                    self._sweep(chosen, goals, ridge, tiles, 1, extra, extrapolated, write_back=True)
                    seams.join()
                if np.all(self.moved.get()[active] < targets[active]):
                    return

    def _sweep(self, chosen, goals, ridge, tiles, max_sweeps, extra, extrapolated, write_back):
        engine, plan, (colour, count) = self.engine, self.engine.plan, tiles
        arguments = (chosen, self.residual, engine.lane_filters, engine.lanes, engine.penalty, self.weights)
        arguments = (
            *arguments,
            self.weight_stride,
            self.plain,
            self.codes,
            self.values,
            self.curvatures,
            self.counts,
            goals[0],
            goals[1],
            self.moved,
        )
        arguments = (*arguments, np.float32(ridge), np.int32(colour), np.int32(max_sweeps), np.int32(extra))
        grid, size = (count, len(chosen)), plan.history_floats if extrapolated else 0
        room = engine.device.cupy.empty(count * len(chosen) * size, np.float32) if size else np.uint64(0)
        arguments = (*arguments, np.int32(write_back), room, np.int64(size))
        engine.launch("descend", grid, 32 * plan.warps, arguments, plan.tile_bytes)

    def prune(self, active, share: float) -> None:
        """Set codes smaller than `share` of their penalty to zero."""
        engine, plan, chosen = self.engine, self.engine.plan, self._chosen(active)
        arguments = (chosen, engine.penalty, self.codes, self.values, self.counts, np.float32(share))
        engine.launch("prune", (-(-plan.n_buckets // _WARPS), len(active)), 32 * _WARPS, arguments)

    def collect(self):
        """Non-zero codes of all signals on the device: ascending flat indices, values, and where each signal's begin."""
        engine, plan, cupy = self.engine, self.engine.plan, self.engine.device.cupy
        total = self.n * plan.n_buckets
        places, blocks = cupy.empty(total, np.int64), -(-total // _WARPS)
        arguments = (self.codes, self.values, self.counts, np.int32(total))
        none = cupy.empty(1, np.int64)
        engine.launch("collect", (blocks,), 32 * _WARPS, (*arguments, np.int32(0), places, none, none))
        places = cupy.cumsum(places)
        bounds = [0, *places[plan.n_buckets - 1 :: plan.n_buckets].get().tolist()]
        keys, values = cupy.empty(bounds[-1], np.int64), cupy.empty(bounds[-1], np.float32)
        if bounds[-1]:
            engine.launch("collect", (blocks,), 32 * _WARPS, (*arguments, np.int32(1), places, keys, values))
        order = cupy.argsort(keys)
        return keys[order] % (plan.n_filters * plan.n_positions), values[order], bounds

    def residuals(self):
        """w (x − Dz) of all signals as last evaluated, (n, channels, layers, rows, columns) float32, on the device."""
        return self.engine.device.cupy.ascontiguousarray(self.residual[(slice(None), slice(None), *self.inside)])


def owners(cupy, counts):
    """Number of the list that each of Σ counts items is from, when lists of so many items are put one behind the other."""
    bounds = np.cumsum(counts)
    return cupy.searchsorted(cupy.asarray(bounds), cupy.arange(int(bounds[-1])), side="right")
