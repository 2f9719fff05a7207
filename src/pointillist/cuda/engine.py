"""The working set of a group of signals on a device: arrays, and the launches that evaluate, enlarge and descend on it.

`Engine` holds what all signals of a problem share, `SignalGroup` the signals that are being solved. Every method works on
the signals listed in `active` and leaves the others alone. Decisions (who is done, how far to descend) are the caller's.

Circular signals lie on a padded grid: behind the circle, its first samples are repeated as far as a filter reaches. A code
at position p adds its filter to the padded samples p … p + size − 1; sample j stands for sample (j − offset) modulo the
circle's length.
"""

import time
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from pointillist.arrays import joined
from pointillist.cuda.plan import (
    BANKS,
    CHUNK,
    DEPTH,
    RESERVED_SHARED,
    RUN,
    KernelPlan,
    Shape,
    as_volume,
    colours,
    lane_order,
    tap_offsets,
)

WARPS = 4
"""Warps of a block of the kernels that give each warp a bucket or a code."""


class Evaluation(NamedTuple):
    """Sums and peaks of each signal after `SignalGroup.look`, float64 arrays (n_signals,)."""

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
        lane_filters, lanes = lane_taps(plan, flat)
        factors = np.zeros((plan.filter_blocks * RUN, penalty.shape[1]), np.float32)
        factors[: plan.n_filters] = 1 / penalty
        arrays = {"integers": plan.integers(), "filters": flat, "blocks": filter_blocks(flat), "factors": factors}
        arrays |= {"lane_filters": lane_filters, "lanes": lanes, "penalty": penalty.astype(np.float32)}
        arrays |= {"penalty64": penalty.astype(np.float64, copy=False)}
        if sample is not None:
            arrays["sample"] = sample.astype(np.int64, copy=False)
        if self.has_tensor_scan:
            arrays["fragments"] = fragments(paired(filters, plan.paired_taps))
            arrays["tensor_factors"] = np.pad(factors[: plan.n_filters, 0], (0, -plan.n_filters % CHUNK))
        with device.use():
            self.there = there = SimpleNamespace(**device.upload_all(arrays))
            # The sample as bits that the scan can test.
            words = 1 if sample is None else plan.filter_blocks * plan.mask_positions // 4
            there.mask = device.cupy.zeros(words, np.uint32)
            if sample is not None and len(sample):
                count = len(sample)
                self.launch("mark", (-(-count // 256),), 256, there.sample, np.int64(count), there.mask)

    def allowed(self, indices, values):
        """Mask of the codes, flat indices and values on the device, that the sign and the sample allow."""
        cupy, kept = self.device.cupy, values > 0 if self.flags[0] else values != 0
        if not self.flags[1]:
            return kept
        sample = self.there.sample
        if len(sample) == 0:
            return cupy.zeros_like(kept)
        place = cupy.minimum(cupy.searchsorted(sample, indices), len(sample) - 1)
        return kept & (sample[place] == indices)

    def launch(self, name, grid, threads, *arguments, shared=0):
        """Run a kernel, its first argument the plan's integers."""
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = self.device.kernel(name, self.shape, self.flags, shared)
        kernel(grid, (threads,), (self.there.integers, *arguments), shared_mem=shared)

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
            self.weights = self._spread(weights)
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

    def _spread(self, arrays=None):
        """Lay arrays (channels, *space), or ones, into zeros of the padded shape, or continue them around the circle."""
        plan, device = self.engine.plan, self.engine.device
        count = 1 if arrays is None else len(arrays)
        flat = device.cupy.zeros((count, plan.channels, *plan.padded), np.float32)
        within = flat[(slice(None), slice(None), *self.inside)]
        within[...] = 1 if arrays is None else device.upload(arrays).reshape(within.shape)
        if plan.around:
            continue_around(flat, plan.grid, self.engine.offset)
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
        arguments = (engine.there.filters, self.weights, self.weight_stride, self.codes, self.counts, self.curvatures)
        engine.launch("measure", (-(-plan.n_buckets // WARPS), self.n), 32 * WARPS, *arguments)

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
        engine, plan, there = self.engine, self.engine.plan, self.engine.there
        grid, found = (plan.scan_blocks, len(chosen)), (there.mask, self.best, self.winner, self.peaks[0])
        if tensor:
            arguments = (chosen, self.residual, there.fragments, there.tensor_factors, *found, np.int32(plan.threads))
            engine.launch("scan_tensor", grid, 256, *arguments, shared=plan.tensor_bytes)
        else:
            arguments = (chosen, self.residual, there.blocks, there.factors, *found)
            engine.launch("scan", grid, plan.threads, *arguments, shared=plan.scan_bytes)

    def _evaluate(self, chosen):
        engine, plan, there, n = self.engine, self.engine.plan, self.engine.there, len(chosen)
        held = self.codes, self.values, self.counts
        if engine.appraises:
            arguments = (chosen, self.signals, there.filters, there.penalty64, self.weights, self.weight_stride)
            arguments = (*arguments, *held, self.residual, self.sums)
            engine.launch("appraise", (n,), 512, *arguments, shared=plan.appraisal_bytes)
        else:
            spread = (min(-(-plan.samples // 1024), 1024), n)
            if self.difference is None:
                self.difference = engine.device.cupy.empty((self.n, plan.channels, *plan.padded), np.float64)
            engine.launch("fill", spread, 256, chosen, self.signals, self.difference)
            if plan.around:
                clear(self.difference, plan.grid)
            for colour, count in colours(plan.buckets):
                arguments = (
                    chosen,
                    there.filters,
                    there.penalty64,
                    *held,
                    self.difference,
                    self.sums,
                    np.int32(colour),
                )
                engine.launch("subtract", (-(-count // WARPS), n), 32 * WARPS, *arguments)
            if plan.around:
                fold(self.difference, plan.grid)
            weighted = self.signals, self.weights, self.weight_stride, self.difference
            engine.launch("finish", spread, 256, chosen, *weighted, self.residual, self.sums)
            if plan.around:
                extend(self.residual, plan.grid)
        grid, shared = (plan.box_tiles, n), plan.box_bytes
        engine.launch("boxes", grid, 256, chosen, self.residual, self.peaks[1], shared=shared)

    def enlarge(self, active, cell: int, floors) -> None:
        """Drop zeros from the working sets and take the best violator of every cell in, above the signal's floor."""
        engine, plan, chosen = self.engine, self.engine.plan, self._chosen(active)
        with engine.stage("selection"):
            arguments: tuple = (chosen, self.best, self.winner, engine.there.filters, self.weights, self.weight_stride)
            arguments = (*arguments, self.codes, self.values, self.curvatures, self.counts, np.int32(cell))
            least = engine.device.cupy.asarray(floors.astype(np.float32))
            grid, threads = (-(-plan.n_buckets // plan.enlarge_warps), len(active)), 32 * plan.enlarge_warps
            engine.launch("enlarge", grid, threads, *arguments, least, shared=plan.enlarge_bytes)

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
                    seams = Seams(self.residual, plan.grid, plan.seams)
                    self._sweep(chosen, goals, ridge, tiles, 1, extra, extrapolated, write_back=True)
                    seams.join()
                if np.all(self.moved.get()[active] < targets[active]):
                    return

    def _sweep(self, chosen, goals, ridge, tiles, max_sweeps, extra, extrapolated, write_back):
        engine, plan, there, (colour, count) = self.engine, self.engine.plan, self.engine.there, tiles
        size = plan.history_floats if extrapolated else 0
        room = engine.device.cupy.empty(count * len(chosen) * size, np.float32) if size else np.uint64(0)
        arguments = (chosen, self.residual, there.lane_filters, there.lanes, there.penalty)
        arguments = (*arguments, self.weights, self.weight_stride, self.plain)
        arguments = (*arguments, self.codes, self.values, self.curvatures, self.counts, goals[0], goals[1], self.moved)
        arguments = (*arguments, np.float32(ridge), np.int32(colour), np.int32(max_sweeps), np.int32(extra))
        arguments = (*arguments, np.int32(write_back), room, np.int64(size))
        engine.launch("descend", (count, len(chosen)), 32 * plan.warps, *arguments, shared=plan.tile_bytes)

    def prune(self, active, share: float) -> None:
        """Set codes smaller than `share` of their penalty to zero."""
        engine, plan, chosen = self.engine, self.engine.plan, self._chosen(active)
        arguments = (chosen, engine.there.penalty, self.codes, self.values, self.counts, np.float32(share))
        engine.launch("prune", (-(-plan.n_buckets // WARPS), len(active)), 32 * WARPS, *arguments)

    def collect(self):
        """Non-zero codes of all signals on the device: ascending flat indices, values, and where each signal's begin."""
        engine, plan, cupy = self.engine, self.engine.plan, self.engine.device.cupy
        total = self.n * plan.n_buckets
        places, blocks = cupy.empty(total, np.int64), -(-total // WARPS)
        arguments = (self.codes, self.values, self.counts, np.int32(total))
        none = cupy.empty(1, np.int64)
        engine.launch("collect", (blocks,), 32 * WARPS, *arguments, np.int32(0), places, none, none)
        places = cupy.cumsum(places)
        bounds = [0, *places[plan.n_buckets - 1 :: plan.n_buckets].get().tolist()]
        keys, values = cupy.empty(bounds[-1], np.int64), cupy.empty(bounds[-1], np.float32)
        if bounds[-1]:
            engine.launch("collect", (blocks,), 32 * WARPS, *arguments, np.int32(1), places, keys, values)
        order = cupy.argsort(keys)
        return keys[order] % (plan.n_filters * plan.n_positions), values[order], bounds

    def residuals(self):
        """w (x − Dz) of all signals as last evaluated, (n, channels, layers, rows, columns) float32, on the device."""
        return self.engine.device.cupy.ascontiguousarray(self.residual[(slice(None), slice(None), *self.inside)])


def owners(cupy, counts):
    """Number of the list that each of Σ counts items is from, when lists of so many items are put one behind the other."""
    bounds = np.cumsum(counts)
    return cupy.searchsorted(cupy.asarray(bounds), cupy.arange(int(bounds[-1])), side="right")


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


def pack(plan: KernelPlan, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bucket number and packed code of flat code indices (filter · n_positions + position)."""
    filters, positions = indices // plan.n_positions, indices % plan.n_positions
    lines, columns = positions // plan.grid[2], positions % plan.grid[2]
    layers, rows = lines // plan.grid[1], lines % plan.grid[1]
    bucket = (layers // plan.bucket[0] * plan.buckets[1] + rows // plan.bucket[1]) * plan.buckets[2]
    codes = filters << 12 | layers % plan.bucket[0] << plan.lift | rows % plan.bucket[1] << plan.shift
    return bucket + columns // plan.bucket[2], (codes | columns % plan.bucket[2]).astype(np.int32)


def slots(buckets: np.ndarray, capacity: int, xp: Any = np) -> tuple[np.ndarray, np.ndarray]:
    """Number the codes of every bucket, and say which of them find room there; `xp` is NumPy or CuPy."""
    order = xp.argsort(buckets, kind="stable")
    ordered = buckets[order]
    number = xp.empty_like(order)
    number[order] = xp.arange(len(buckets)) - xp.searchsorted(ordered, ordered)
    return number, number < capacity


def lane_taps(plan: KernelPlan, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Filters (n, taps) with their samples in the order in which the lanes of a warp take them, and that order.

    Both are padded to whole warps, the filters by zeros. The order is (2, padded taps) int32: numbers of samples, and where
    these lie in the padded signal from a filter's first. Samples that a lane loads at once lie together in the filters.
    """
    lanes = _lanes(plan)
    filters = np.zeros((len(flat), lanes.shape[1]), np.float32)
    filters[:, : plan.taps] = flat[:, lanes[0, : plan.taps]]
    together = filters.reshape(len(flat), -1, at_once(plan), BANKS).swapaxes(2, 3)
    return np.ascontiguousarray(together).reshape(filters.shape), lanes


def at_once(plan: KernelPlan) -> int:
    """Samples of a filter that a lane loads at once, of those that it has: AT_ONCE of `common.cuh`."""
    share = -(-plan.taps // BANKS)
    return next(count for count in (4, 2, 1) if share % count == 0)


@cache
def _lanes(plan: KernelPlan) -> np.ndarray:
    order = lane_order(tap_offsets(plan.channels, plan.filter, plan.window))
    lanes = np.stack([order, tap_offsets(plan.channels, plan.filter, plan.padded)[order]]).astype(np.int32)
    return np.pad(lanes, [(0, 0), (0, -plan.taps % BANKS)], mode="edge")


AXES = (-1, -2, -3)


def part(axis: int, begin: int, end: int) -> tuple[Any, ...]:
    """An index for the samples begin … end − 1 along one of the last three axes."""
    return (..., slice(begin, end), *[slice(None)] * (-axis - 1))


def extend(array: Any, lengths: Shape) -> None:
    """Repeat the first samples of the circle behind its last."""
    for axis in AXES:
        length, padded = lengths[axis], array.shape[axis]
        if padded > length:
            array[part(axis, length, padded)] = array[part(axis, 0, padded - length)]


def clear(array: Any, lengths: Shape) -> None:
    """Set what lies behind the circle to zero."""
    for axis in AXES:
        array[part(axis, lengths[axis], array.shape[axis])] = 0


def fold(array: Any, lengths: Shape) -> None:
    """Add what lies behind the circle to its first samples, and clear it: the adjoint of `extend`."""
    for axis in AXES:
        length, padded = lengths[axis], array.shape[axis]
        if padded > length:
            behind = array[part(axis, length, padded)]
            array[part(axis, 0, padded - length)] += behind
            behind[...] = 0


def continue_around(array: Any, lengths: Shape, offset: Shape) -> None:
    """Continue around the circle what lies within, at offset … offset + length − 1 along each axis."""
    for axis in AXES:
        length, first = lengths[axis], offset[axis]
        array[part(axis, 0, first)] = array[part(axis, length, length + first)]
    extend(array, lengths)


class Seams:
    """Remembers the repeated samples, to join what was then changed of them and of the samples that they repeat."""

    def __init__(self, array: Any, lengths: Shape, axes: tuple[int, ...]) -> None:
        self.array, self.lengths, self.axes = array, lengths, axes
        self.before = [array[self._behind(axis)].copy() for axis in axes]

    def _behind(self, axis: int) -> tuple[Any, ...]:
        return part(axis, self.lengths[axis], self.array.shape[axis])

    def join(self) -> None:
        """Add the changes of both copies to both."""
        for axis, before in zip(self.axes, self.before, strict=True):
            behind = self.array[self._behind(axis)]
            front = self.array[part(axis, 0, before.shape[axis])]
            front += behind - before
            behind[...] = front
