"""Vector instructions for short runs of samples, built directly in LLVM.

A filter is a list of *runs*: `lanes` contiguous samples each, zero-padded at the end of a row, found in a
signal at `base + offsets[i]`. Plain loops over such runs defeat the vectoriser (170-390 ns for an 11×11
dot product); one vector load, multiply and add a run takes 20-30 ns on any CPU, with no compiler on the
user's machine. The width is told by the length of a tuple (`lanes_of`), hence part of its numba type: kernels are
specialised and cached on disk by width and precision alone, whatever the filter size. Nothing here knows
about geometry.

A padded lane reads past the end of its row and adds zero there, so signals need `lanes` spare samples at
the end and concurrent writers need footprints that are disjoint including the padding.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pointillist.kernels.lanes import (
    CONTRACT,
    add_product,
    broadcast,
    each_offset,
    multiply_add,
    pointer,
    size_of,
    sum_lanes,
    sums_of,
    vector_at,
    vector_type,
    whole_number,
)

POSITIONS_AT_ONCE = 8


@intrinsic
def dot_runs(typingctx, lanes, signal, base, filters, start, offsets):
    """Σ_i signal[base + offsets[i] :][:lanes] · filters[start + i·lanes :][:lanes], a scalar.

    In place of offsets there can be a number of runs, which follow each other.
    """
    signature = signal.dtype(lanes, signal, base, filters, start, offsets)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        signal_at = pointer(context, builder, sig.args[1], args[1])
        filter_at = pointer(context, builder, sig.args[3], args[3])
        sums = sums_of(builder, vector, 2)
        if isinstance(sig.args[5], types.Integer):
            count, offsets = context.cast(builder, args[5], sig.args[5], types.intp), None
        else:
            offset_array = context.make_array(sig.args[5])(context, builder, args[5])
            count, offsets = builder.extract_value(offset_array.shape, 0), offset_array.data

        def accumulate(i, into):
            further = builder.mul(i, whole_number(vector.count))
            offset = further if offsets is None else builder.load(builder.gep(offsets, [i]))
            left, _ = vector_at(builder, signal_at, builder.add(args[2], offset), vector)
            right, _ = vector_at(builder, filter_at, builder.add(args[4], further), vector)
            add_product(builder, left, right, into)

        one = whole_number(1)
        with cgutils.for_range(builder, builder.lshr(count, one)) as loop:
            first = builder.shl(loop.index, one)
            accumulate(first, sums[0])
            accumulate(builder.add(first, one), sums[1])
        with builder.if_then(builder.trunc(builder.and_(count, one), ir.IntType(1))):
            accumulate(builder.sub(count, one), sums[0])
        return sum_lanes(builder, builder.fadd(builder.load(sums[0]), builder.load(sums[1])))

    return signature, codegen


@intrinsic
def dot_changed_runs(typingctx, lanes, signal, step, base, filters, start, offsets, weights):
    """Compute `dot_runs` for a signal to which weights · step is added; None are weights of one."""
    signature = signal.dtype(lanes, signal, step, base, filters, start, offsets, weights)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        width = whole_number(vector.count)
        signal_at, step_at, filter_at = (pointer(context, builder, sig.args[i], args[i]) for i in (1, 2, 4))
        weights_at = None if sig.args[7] is types.none else pointer(context, builder, sig.args[7], args[7])
        (total,) = sums_of(builder, vector, 1)
        with each_offset(context, builder, sig.args[6], args[6]) as (i, offset):
            place = builder.add(args[3], offset)
            before, _ = vector_at(builder, signal_at, place, vector)
            change, _ = vector_at(builder, step_at, place, vector)
            if weights_at is None:
                sample = builder.fadd(before, change)
            else:
                weight, _ = vector_at(builder, weights_at, place, vector)
                sample = multiply_add(builder, weight, change, before)
            run, _ = vector_at(builder, filter_at, builder.add(args[5], builder.mul(i, width)), vector)
            add_product(builder, sample, run, total)
        return sum_lanes(builder, builder.load(total))

    return signature, codegen


@intrinsic
def dot_runs_at(typingctx, lanes, signal, bases, filters, start, offsets, out):
    """Compute `dot_runs` of one filter at `POSITIONS_AT_ONCE` positions: each run of the filter is loaded once for all."""
    signature = types.void(lanes, signal, bases, filters, start, offsets, out)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        width = whole_number(vector.count)
        signal_at = pointer(context, builder, sig.args[1], args[1])
        base_at = pointer(context, builder, sig.args[2], args[2])
        filter_at = pointer(context, builder, sig.args[3], args[3])
        out_at = pointer(context, builder, sig.args[6], args[6])
        sums = sums_of(builder, vector, POSITIONS_AT_ONCE)
        bases = [builder.load(builder.gep(base_at, [whole_number(n)])) for n in range(POSITIONS_AT_ONCE)]
        with each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
            run, _ = vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, width)), vector)
            for slot, base in zip(sums, bases, strict=True):
                sample, _ = vector_at(builder, signal_at, builder.add(base, offset), vector)
                add_product(builder, sample, run, slot)
        for n, slot in enumerate(sums):
            builder.store(sum_lanes(builder, builder.load(slot)), builder.gep(out_at, [whole_number(n)]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_runs(typingctx, lanes, signal, base, filters, start, offsets, scale):
    """signal[base + offsets[i] :][:lanes] += scale · filters[start + i·lanes :][:lanes], in place.

    Filters may be of less precision than the signal, in which all is computed.
    """
    signature = types.void(lanes, signal, base, filters, start, offsets, scale)

    def codegen(context, builder, sig, args):
        _each_run(context, builder, sig, args, weights=None)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_runs_weighted(typingctx, lanes, signal, base, filters, start, offsets, scale, weights):
    """Add runs as `add_runs` does, each sample multiplied by `weights` at the same place as in the signal."""
    signature = types.void(lanes, signal, base, filters, start, offsets, scale, weights)

    def codegen(context, builder, sig, args):
        _each_run(context, builder, sig, args, weights=(sig.args[7], args[7]))
        return context.get_dummy_value()

    return signature, codegen


def _each_run(context, builder, sig, args, weights):
    vector, stored = (vector_type(context, sig.args[i], sig.args[0]) for i in (1, 3))
    width = whole_number(vector.count)
    signal_at = pointer(context, builder, sig.args[1], args[1])
    filter_at = pointer(context, builder, sig.args[3], args[3])
    factor = broadcast(builder, context.cast(builder, args[6], sig.args[6], sig.args[1].dtype), vector)
    with each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
        place = builder.add(args[2], offset)
        old, address = vector_at(builder, signal_at, place, vector)
        run, _ = vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, width)), stored)
        if stored != vector:
            run = builder.fpext(run, vector)
        if weights is not None:
            weight, _ = vector_at(builder, pointer(context, builder, *weights), place, vector)
            run = builder.fmul(run, weight, flags=CONTRACT)
        builder.store(multiply_add(builder, run, factor, old), address, align=size_of(vector.element))


@intrinsic
def close_seam(typingctx, lanes, signal, begin, offsets, runs_a_row, length, doubled, seam):
    """Make the first `doubled` samples of rows and those behind their ends alike, `length` samples further on.

    The rows begin at `begin` + every `runs_a_row`th of the offsets. Of their first samples, those before `seam` are taken
    from behind the end, and the others from the front; so many of them as there are lanes are moved at most.
    """
    signature = types.void(lanes, signal, begin, offsets, runs_a_row, length, doubled, seam)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        signal_at = pointer(context, builder, sig.args[1], args[1])
        offsets = context.make_array(sig.args[3])(context, builder, args[3])
        whole = ir.VectorType(ir.IntType(64), vector.count)
        numbers = ir.Constant(whole, list(range(vector.count)))
        held, late = (
            builder.icmp_signed("<", numbers, broadcast(builder, limit, whole)) for limit in (args[6], args[7])
        )
        rows = builder.sdiv(builder.extract_value(offsets.shape, 0), args[4])
        with cgutils.for_range(builder, rows) as loop:
            offset = builder.load(builder.gep(offsets.data, [builder.mul(loop.index, args[4])]))
            place = builder.add(args[2], offset)
            front, front_address = vector_at(builder, signal_at, place, vector)
            back, back_address = vector_at(builder, signal_at, builder.add(place, args[5]), vector)
            both = builder.select(late, back, front)
            size = size_of(vector.element)
            builder.store(builder.select(held, both, front), front_address, align=size)
            builder.store(builder.select(held, both, back), back_address, align=size)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_products(typingctx, lanes, residual, weights, first, second, third, begin, length, out):
    """Add sums over `length` samples from `begin` on: of each of three steps with the residual, and of them with each other.

    The latter are weighted, and in the order 0 0, 1 0, 1 1, 2 0, 2 1, 2 2. All is read once.
    """
    signature = types.void(lanes, residual, weights, first, second, third, begin, length, out)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        places = [pointer(context, builder, sig.args[n], args[n]) for n in range(1, 6)]
        sums = sums_of(builder, vector, 9)
        nothing = ir.Constant(vector, [0.0] * vector.count)

        def meet(place, inside):
            residual, weights, *steps = (vector_at(builder, array, place, vector)[0] for array in places)
            if inside is not None:
                steps = [builder.select(inside, step, nothing) for step in steps]
            for m, step in enumerate(steps):
                add_product(builder, residual, step, sums[m])
                weighted = builder.fmul(weights, step)
                for n in range(m + 1):
                    add_product(builder, weighted, steps[n], sums[3 + m * (m + 1) // 2 + n])

        whole = builder.sdiv(args[7], whole_number(vector.count))
        with cgutils.for_range(builder, whole) as loop:
            meet(builder.add(args[6], builder.mul(loop.index, whole_number(vector.count))), None)
        done = builder.mul(whole, whole_number(vector.count))
        left = builder.sub(args[7], done)
        with builder.if_then(builder.icmp_signed(">", left, whole_number(0))):
            numbers = ir.VectorType(ir.IntType(64), vector.count)
            inside = builder.icmp_signed(
                "<", ir.Constant(numbers, list(range(vector.count))), broadcast(builder, left, numbers)
            )
            meet(builder.add(args[6], done), inside)
        out_at = pointer(context, builder, sig.args[8], args[8])
        for n, slot in enumerate(sums):
            at = builder.gep(out_at, [whole_number(n)])
            total = context.cast(builder, sum_lanes(builder, builder.load(slot)), sig.args[1].dtype, types.float64)
            builder.store(builder.fadd(builder.load(at), total), at)
        return context.get_dummy_value()

    return signature, codegen


ROWS_AT_ONCE = 6


@intrinsic
def correlate_rows(typingctx, lanes, signal, base, row_stride, filters, start, offsets, out, out_start):
    """Add the correlation of one filter with `ROWS_AT_ONCE` rows of `lanes` positions to rows of `out`.

    Row a of the positions begins at base + a·row_stride, its sums at out_start + a·lanes. The counterpart of
    `correlate_block` for a single filter: each sample is broadcast once for all rows.
    """
    signature = types.void(lanes, signal, base, row_stride, filters, start, offsets, out, out_start)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        signal_at = pointer(context, builder, sig.args[1], args[1])
        filter_at = pointer(context, builder, sig.args[4], args[4])
        out_at = pointer(context, builder, sig.args[7], args[7])
        sums, addresses, bases = sums_of(builder, vector, ROWS_AT_ONCE), [], []
        for a, slot in enumerate(sums):
            place = builder.add(args[8], whole_number(a * vector.count))
            value, address = vector_at(builder, out_at, place, vector)
            builder.store(value, slot)
            addresses.append(address)
            bases.append(builder.add(args[2], builder.mul(whole_number(a), args[3])))
        with each_offset(context, builder, sig.args[6], args[6]) as (i, offset):
            tap = builder.load(builder.gep(filter_at, [builder.add(args[5], i)]))
            value = broadcast(builder, tap, vector)
            for slot, row_base in zip(sums, bases, strict=True):
                sample, _ = vector_at(builder, signal_at, builder.add(row_base, offset), vector)
                add_product(builder, sample, value, slot)
        for slot, address in zip(sums, addresses, strict=True):
            builder.store(builder.load(slot), address, align=size_of(vector.element))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def correlate_planes(typingctx, lanes, signal, base, row_stride, taps, start, rows, columns, out, out_start):
    """Add the correlation of one plane of a filter with `ROWS_AT_ONCE` rows of `lanes` positions, as `correlate_rows` does.

    The plane begins at taps[start] and is stored column by column; it has at least `ROWS_AT_ONCE` rows. These meet
    neighbouring rows of the signal: what is loaded of the signal serves all rows of positions, so that loads which straddle
    two lines of the cache are few.
    """
    signature = types.void(lanes, signal, base, row_stride, taps, start, rows, columns, out, out_start)

    def codegen(context, builder, sig, args):
        _, _, base, row_stride, _, start, rows, columns, _, out_start = args
        vector = vector_type(context, sig.args[1], sig.args[0])
        signal_at, taps_at, out_at = (pointer(context, builder, sig.args[i], args[i]) for i in (1, 4, 8))
        sums, addresses = sums_of(builder, vector, ROWS_AT_ONCE), []
        for a, slot in enumerate(sums):
            value, address = vector_at(builder, out_at, builder.add(out_start, whole_number(a * vector.count)), vector)
            builder.store(value, slot)
            addresses.append(address)

        def meet(column, row, members):
            """Multiply a row of the signal with the samples that it meets for some rows of positions."""
            place = builder.add(builder.add(base, column), builder.mul(row, row_stride))
            sample, _ = vector_at(builder, signal_at, place, vector)
            first = builder.gep(taps_at, [builder.add(builder.add(start, builder.mul(column, rows)), row)])
            for a in members:
                tap = builder.load(builder.gep(first, [whole_number(-a)]))
                add_product(builder, sample, broadcast(builder, tap, vector), sums[a])

        last = whole_number(ROWS_AT_ONCE - 1)
        with cgutils.for_range(builder, columns) as loop:
            for row in range(ROWS_AT_ONCE - 1):  # not all rows of positions reach the first and the last ones
                meet(loop.index, whole_number(row), range(row + 1))
            with cgutils.for_range_slice(builder, last, rows, whole_number(1), last.type) as (row, _):
                meet(loop.index, row, range(ROWS_AT_ONCE))
            for row in range(ROWS_AT_ONCE - 1):
                meet(loop.index, builder.add(rows, whole_number(row)), range(row + 1, ROWS_AT_ONCE))
        for slot, address in zip(sums, addresses, strict=True):
            builder.store(builder.load(slot), address, align=size_of(vector.element))
        return context.get_dummy_value()

    return signature, codegen
