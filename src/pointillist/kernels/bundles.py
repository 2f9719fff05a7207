"""Codes of one row whose boxes nearly coincide, updated together: their samples of the residual are read and written once.

A filter's rows are stored in whole runs, with zeros behind them. Codes that begin within so many samples fit into the box of
the first: their filters are read from a little before their beginning, where the zeros of the row before are. What one of
them does to the slopes of the others is told by the inner products of their filters, which are computed when they are first
needed.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from pointillist.kernels.compiling import helper, spliced
from pointillist.kernels.layout import aligned_zeros, run_width
from pointillist.kernels.updates import close, minimum_of, offsets_of
from pointillist.kernels.vectors import (
    add_product,
    broadcast,
    dot_runs,
    each_offset,
    multiply_add,
    pointer,
    store,
    sum_lanes,
    sums_of,
    vector_at,
    vector_type,
    whole_number,
)

BUNDLED = 4
"""Codes that are updated together at most."""
_WORTH_RUNS, _LEAST_SPARE = 40, 3
"""Runs of a filter, and samples that codes may begin apart, from which on bundles are worth their time."""
_MOST_PRODUCTS = 2**22
"""Inner products of filters that are kept at most."""
_ONE, _TWO, _THREE, _FOUR = ((None,) * n for n in (1, 2, 3, 4))


class Bundles(NamedTuple):
    """What updates of bundles share, and room for one of them."""

    runs: np.ndarray  # the runs of all filters, behind a run of zeros
    products: np.ndarray  # (n_filters, n_filters, spare + 1) of filters, the second shifted; NaN until computed
    run_starts: np.ndarray  # (n_runs,) where each run begins in the store of a filter
    starts: np.ndarray  # (BUNDLED,) where each filter begins, as seen from the bundle's box
    slopes: np.ndarray  # (BUNDLED,)
    changes: np.ndarray  # (BUNDLED,)


def bundle_spare(shape, around=None):
    """How many samples apart codes of a row may begin to be updated together; none if that is not worth its time.

    These are the samples by which whole runs exceed a row of filters (n_filters, channels, *size). A bundle must not meet
    itself on a circle, which has `around` samples along the last axis.
    """
    length = shape[-1]
    width = run_width(length)
    spare, runs = -length % width, prod(shape[1:-1]) * -(-length // width)
    fits = length >= width and (around is None or length + spare <= around)
    worth = runs >= _WORTH_RUNS and spare >= _LEAST_SPARE and shape[0] ** 2 * (spare + 1) <= _MOST_PRODUCTS
    return spare if fits and worth else 0


def make_bundles(layout, spare):
    """What bundles of codes that begin within `spare` samples need, which must be fewer than a row has zeros behind it."""
    width, dtype = 1 << len(layout.run_lanes), layout.runs.dtype
    runs = aligned_zeros((width + len(layout.runs),), dtype)
    runs[width:] = layout.runs
    products = np.full((layout.n_filters, layout.n_filters, spare + 1), np.nan, dtype)
    return Bundles(runs, products, width * np.arange(len(layout.run_offsets)), *_room(dtype))


def with_own_room(bundles):
    """The same bundles for another thread."""
    starts, slopes, changes = _room(bundles.runs.dtype)
    return bundles._replace(starts=starts, slopes=slopes, changes=changes)


def _room(dtype):
    return np.zeros(BUNDLED, np.int64), np.zeros(BUNDLED, dtype), np.zeros(BUNDLED, dtype)


@spliced
def count_bundled(bases, clean, bundles, chosen, n):
    """How many of the codes chosen[n:] are updated together."""
    base, count = bases[chosen[n]], 0
    spare, most = bundles.products.shape[2] - 1, min(BUNDLED, len(chosen) - n)
    while count < most and clean[chosen[n + count]] and 0 <= bases[chosen[n + count]] - base <= spare:
        count += 1
    return max(count, 1)


@helper()
def update_bundle(
    boxes,
    circle,
    curvatures,
    penalties,
    ridge,
    nonnegative,
    values,
    residual,
    members,
    step,
    bundles,
):
    """Move the codes `members` to their minima in turn; returns the largest curvature times the square of a change.

    All of them are clean. Unless it is empty, `step` takes up how x − Dz changes, as in `update_code`.
    """
    starts, slopes, changes, head = bundles.starts, bundles.slopes, bundles.changes, members[0]
    base, offsets, lanes = boxes.bases[head], offsets_of(boxes, circle, head), boxes.lanes
    count, runs, front = len(members), bundles.runs, 1 << len(boxes.lanes)
    for a in range(count):
        starts[a] = front + boxes.starts[members[a]] - (boxes.bases[members[a]] - base)
    if count == 2:
        _dot(lanes, _TWO, residual, base, runs, starts, offsets, slopes, step)
    elif count == 3:
        _dot(lanes, _THREE, residual, base, runs, starts, offsets, slopes, step)
    else:
        _dot(lanes, _FOUR, residual, base, runs, starts, offsets, slopes, step)
    for a in range(count):
        i = members[a]
        new = minimum_of(values[i], slopes[a], curvatures[i], penalties[i], ridge, nonnegative)
        changes[a] = values[i] - new
        values[i] = new
        for b in range(a + 1, count):
            if changes[a] != 0:
                slopes[b] += changes[a] * _product(boxes, bundles, i, members[b])
    largest, kept = 0.0, 0
    for a in range(count):
        moved = changes[a] * changes[a] * curvatures[members[a]]
        if moved > largest:
            largest = moved
        if changes[a] != 0:
            changes[kept], starts[kept] = changes[a], starts[a]
            kept += 1
    if kept == 0:
        return largest
    target = step if len(step) > 0 else residual
    if kept == 1:
        _add(lanes, _ONE, target, base, runs, starts, offsets, changes)
    elif kept == 2:
        _add(lanes, _TWO, target, base, runs, starts, offsets, changes)
    elif kept == 3:
        _add(lanes, _THREE, target, base, runs, starts, offsets, changes)
    else:
        _add(lanes, _FOUR, target, base, runs, starts, offsets, changes)
    close(boxes, circle, head, target, base)
    return largest


@spliced
def _product(boxes, bundles, i, j):
    """The inner product of the filters of two codes where they lie, the first of which does not lie behind the other."""
    start, other, shift = boxes.starts[i], boxes.starts[j], boxes.bases[j] - boxes.bases[i]
    size = len(bundles.run_starts) << len(boxes.lanes)
    k, m = start // size, other // size
    found = bundles.products[k, m, shift]
    if np.isnan(found):
        front = 1 << len(boxes.lanes)
        found = dot_runs(
            boxes.lanes, bundles.runs, front + other - shift, bundles.runs, front + start, bundles.run_starts
        )
        bundles.products[k, m, shift] = found
    return found


@intrinsic
def _dot(typingctx, lanes, count, signal, base, filters, starts, offsets, out, step):
    """out[a] = Σ_i signal[base + offsets[i] :][:lanes] · filters[starts[a] + i·lanes :][:lanes], for so many filters.

    Unless it is empty, a step is added to the signal.
    """
    signature = types.void(lanes, count, signal, base, filters, starts, offsets, out, step)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[2], sig.args[0])
        n, width = sig.args[1].count, whole_number(vector.count)
        signal_at, filter_at, start_at, out_at, step_at = (
            pointer(context, builder, sig.args[i], args[i]) for i in (2, 4, 5, 7, 8)
        )
        step_array = context.make_array(sig.args[8])(context, builder, args[8])
        recorded = builder.icmp_signed(">", builder.extract_value(step_array.shape, 0), whole_number(0))
        begins = [builder.load(builder.gep(start_at, [whole_number(a)])) for a in range(n)]
        sums = sums_of(builder, vector, n)
        with each_offset(context, builder, sig.args[6], args[6]) as (i, offset):
            (held,) = sums_of(builder, vector, 1)
            before, _ = vector_at(builder, signal_at, builder.add(args[3], offset), vector)
            builder.store(before, held)
            with builder.if_then(recorded):
                change, _ = vector_at(builder, step_at, builder.add(args[3], offset), vector)
                builder.store(builder.fadd(before, change), held)
            sample, more = builder.load(held), builder.mul(i, width)
            for begin, slot in zip(begins, sums, strict=True):
                run, _ = vector_at(builder, filter_at, builder.add(begin, more), vector)
                add_product(builder, sample, run, slot)
        for a, slot in enumerate(sums):
            builder.store(sum_lanes(builder, builder.load(slot)), builder.gep(out_at, [whole_number(a)]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _add(typingctx, lanes, count, signal, base, filters, starts, offsets, changes):
    """Add so many filters, times their changes, to a signal from `base` on; the runs lie as those of `_dot`."""
    signature = types.void(lanes, count, signal, base, filters, starts, offsets, changes)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[2], sig.args[0])
        n, width = sig.args[1].count, whole_number(vector.count)
        signal_at, filter_at, start_at, change_at = (
            pointer(context, builder, sig.args[i], args[i]) for i in (2, 4, 5, 7)
        )
        numbers = [whole_number(a) for a in range(n)]
        begins = [builder.load(builder.gep(start_at, [a])) for a in numbers]
        factors = [broadcast(builder, builder.load(builder.gep(change_at, [a])), vector) for a in numbers]
        with each_offset(context, builder, sig.args[6], args[6]) as (i, offset):
            place, more = builder.add(args[3], offset), builder.mul(i, width)
            total, _ = vector_at(builder, signal_at, place, vector)
            for begin, factor in zip(begins, factors, strict=True):
                run, _ = vector_at(builder, filter_at, builder.add(begin, more), vector)
                total = multiply_add(builder, run, factor, total)
            store(builder, signal_at, place, total)
        return context.get_dummy_value()

    return signature, codegen
