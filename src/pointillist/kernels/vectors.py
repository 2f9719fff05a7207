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

from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

FILTERS_A_BLOCK = 8
"""Filters that kernels take at once."""
CONTRACT = ("contract",)
"""Products may be added to without being rounded before."""


def lanes_of(width):
    """The tuple that tells kernels a width, which is a power of two: its length is the power.

    It is as short as that because kernels take it apart, and each part is compiled.
    """
    return (None,) * (width.bit_length() - 1)


def width_of(lanes):
    """The width that a tuple of `lanes_of` tells."""
    return 2 ** len(lanes)


def pointer(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, array).data


def vector_at(builder, pointer, index, vector):
    """Load `vector` lanes from `pointer[index:]`, aligned to one element only."""
    element = builder.gep(pointer, [index])
    address = builder.bitcast(element, vector.as_pointer())
    loaded = builder.load(address, align=size_of(vector.element))
    return loaded, address


def size_of(element):
    return 8 if isinstance(element, ir.DoubleType) else 4


def broadcast(builder, scalar, vector):
    index = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, index)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


def multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=CONTRACT), c, flags=CONTRACT)


def sum_lanes(builder, vector_value):
    vector = vector_value.type
    suffix = f"v{vector.count}{'f64' if size_of(vector.element) == 8 else 'f32'}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector.element, [vector.element, vector]), f"llvm.vector.reduce.fadd.{suffix}"
    )
    return builder.call(function, [ir.Constant(vector.element, 0.0), vector_value], fastmath=("reassoc",))


def vector_type(context, array_type, lanes_type):
    return ir.VectorType(context.get_value_type(array_type.dtype), 2**lanes_type.count)


def whole_number(number):
    return ir.Constant(ir.IntType(64), number)


def sums_of(builder, vector, count):
    """Places for so many vectors to be summed in, zero at first; they end up in registers."""
    slots = [cgutils.alloca_once(builder, vector) for _ in range(count)]
    for slot in slots:
        builder.store(ir.Constant(vector, [0.0] * vector.count), slot)
    return slots


def add_product(builder, a, b, slot):
    builder.store(multiply_add(builder, a, b, builder.load(slot)), slot)


@contextmanager
def each_offset(context, builder, array_type, array):
    """A loop over an array of offsets, with the number of each and the offset itself."""
    offsets = context.make_array(array_type)(context, builder, array)
    with cgutils.for_range(builder, builder.extract_value(offsets.shape, 0)) as loop:
        yield loop.index, builder.load(builder.gep(offsets.data, [loop.index]))


def ratio_of(builder, total, factor, signed):
    """Sums times factors, or their sizes where signs do not count."""
    ratio, zero = builder.fmul(total, factor), ir.Constant(total.type, [0.0] * total.type.count)
    size = builder.select(builder.fcmp_ordered("<", ratio, zero), builder.fsub(zero, ratio), ratio)
    return builder.select(signed, ratio, size)


def largest_lane(builder, values):
    """The largest value of a vector, and the number of the first lane that has it."""
    count, folded = values.type.count, values
    while folded.type.count > 1:
        half = folded.type.count // 2
        low, high = (chosen_lanes(builder, folded, range(first, first + half)) for first in (0, half))
        folded = builder.select(builder.fcmp_ordered(">", high, low), high, low)
    top = builder.extract_element(folded, ir.Constant(ir.IntType(32), 0))
    bits = builder.bitcast(builder.fcmp_ordered("==", values, broadcast(builder, top, values.type)), ir.IntType(count))
    return top, builder.zext(builder.cttz(bits, ir.Constant(ir.IntType(1), 0)), ir.IntType(64))


def chosen_lanes(builder, values, lanes):
    """Some lanes of a vector, in any order and as often as they are named."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(values, ir.Constant(values.type, ir.Undefined), mask)


def store(builder, pointer, index, value):
    """Store a vector at `pointer[index:]`, aligned to one element only."""
    address = builder.bitcast(builder.gep(pointer, [index]), value.type.as_pointer())
    builder.store(value, address, align=size_of(value.type.element))


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


@intrinsic
def correlate_block(typingctx, lanes, signal, base, filters, start, offsets, out, out_start, out_stride):
    """Correlations of `FILTERS_A_BLOCK` filters with the signal at `lanes` neighbouring positions.

    `filters[start + i·block + k]` is sample i of the block's filter k, `offsets[i]` where that sample meets
    the signal; the results go to `out[out_start + k·out_stride :][:lanes]`. One load of the signal serves
    all filters of the block and the sums stay in registers: a matrix product without the matrix.
    """
    signature = types.void(lanes, signal, base, filters, start, offsets, out, out_start, out_stride)

    def codegen(context, builder, sig, args):
        sums = _block_sums(context, builder, sig, args)
        out_at = pointer(context, builder, sig.args[6], args[6])
        for k, total in enumerate(sums):
            place = builder.add(args[7], builder.mul(args[8], whole_number(k)))
            store(builder, out_at, place, total)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def best_of_block(
    typingctx, lanes, signal, base, filters, start, offsets, factors, stride, first, signed, best, winner, place, floor,
    near, count, n_positions, skipped,
):  # fmt: skip
    """Keep, for `lanes` neighbouring positions, the largest correlation · factor of a block of filters so far.

    Filter k of the block has the number first + k and the factor `factors[first + k]` or, if there is a `stride`, factors of
    its own at the positions, `factors[(first + k) · stride + place :][:lanes]`; `signed` false compares sizes.
    `best[place:][:lanes]` and `winner[place:][:lanes]` (int32) hold the ratios and the filters' numbers.

    With a `floor`, the codes number · n_positions + position whose ratios exceed it are appended to `near`, as far as there
    is room; the first `skipped` positions are left out. `count` (1,) is how many there were.
    """
    signature = types.void(
        lanes, signal, base, filters, start, offsets, factors, stride, first, signed, best, winner, place, floor, near,
        count, n_positions, skipped,
    )  # fmt: skip

    def codegen(context, builder, sig, args):
        stride, first, signed, best, winner, place, floor, near, count, n_positions, skipped = args[7:]
        factor_at, best_at, winner_at = (pointer(context, builder, sig.args[i], args[i]) for i in (6, 10, 11))
        sums = _block_sums(context, builder, sig, args)
        vector = sums[0].type
        whole = ir.VectorType(ir.IntType(32), vector.count)
        best, best_address = vector_at(builder, best_at, place, vector)
        winner_address = builder.bitcast(builder.gep(winner_at, [place]), whole.as_pointer())
        winner = builder.load(winner_address, align=4)
        for k, total in enumerate(sums):
            number = builder.add(first, whole_number(k))
            if sig.args[7] is types.none:
                factor = broadcast(builder, builder.load(builder.gep(factor_at, [number])), vector)
            else:
                factor, _ = vector_at(builder, factor_at, builder.add(builder.mul(number, stride), place), vector)
            ratio = ratio_of(builder, total, factor, signed)
            if sig.args[13] is not types.none:
                above = builder.fcmp_ordered(">", ratio, broadcast(builder, floor, vector))
                bits = builder.bitcast(above, ir.IntType(vector.count))
                bits = builder.and_(bits, builder.shl(ir.Constant(bits.type, -1), builder.trunc(skipped, bits.type)))
                with builder.if_then(builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0)), likely=False):
                    begin = builder.add(builder.mul(number, n_positions), place)
                    near_array = context.make_array(sig.args[14])(context, builder, near)
                    _append_lanes(builder, bits, begin, near_array, pointer(context, builder, sig.args[15], count))
            better = builder.fcmp_ordered(">", ratio, best)
            best = builder.select(better, ratio, best)
            numbers = broadcast(builder, builder.trunc(number, ir.IntType(32)), whole)
            winner = builder.select(better, numbers, winner)
        builder.store(best, best_address, align=size_of(vector.element))
        builder.store(winner, winner_address, align=4)
        return context.get_dummy_value()

    return signature, codegen


def _append_lanes(builder, bits, begin, near, count_at):
    """Append begin + lane to an array for each lane whose bit is set, of which there is one at least, and count them."""
    room, none = builder.extract_value(near.shape, 0), ir.Constant(bits.type, 0)
    left = cgutils.alloca_once_value(builder, bits)
    loop, done = builder.append_basic_block("append"), builder.append_basic_block("appended")
    builder.branch(loop)
    builder.position_at_end(loop)
    some, count = builder.load(left), builder.load(count_at)
    lane = builder.zext(builder.cttz(some, ir.Constant(ir.IntType(1), 0)), ir.IntType(64))
    with builder.if_then(builder.icmp_signed("<", count, room)):
        builder.store(builder.add(begin, lane), builder.gep(near.data, [count]))
    builder.store(builder.add(count, whole_number(1)), count_at)
    rest = builder.and_(some, builder.sub(some, ir.Constant(bits.type, 1)))
    builder.store(rest, left)
    builder.cbranch(builder.icmp_unsigned("!=", rest, none), loop, done)
    builder.position_at_end(done)


def _block_sums(context, builder, sig, args):
    """The correlations of a block of filters, a vector of neighbouring positions each."""
    vector = vector_type(context, sig.args[1], sig.args[0])
    signal_at = pointer(context, builder, sig.args[1], args[1])
    filter_at = pointer(context, builder, sig.args[3], args[3])
    sums = sums_of(builder, vector, FILTERS_A_BLOCK)
    with each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
        sample, _ = vector_at(builder, signal_at, builder.add(args[2], offset), vector)
        row = builder.add(args[4], builder.mul(i, whole_number(FILTERS_A_BLOCK)))
        for k, slot in enumerate(sums):
            tap = builder.load(builder.gep(filter_at, [builder.add(row, whole_number(k))]))
            add_product(builder, sample, broadcast(builder, tap, vector), slot)
    return [builder.load(slot) for slot in sums]


@intrinsic
def best_at_positions(
    typingctx, lanes, signal, bases, pairs, start, offsets, factors, at, stride, first, signed, best, winner, places
):
    """Do what `best_of_block` does at half as many scattered positions as there are `lanes`; they begin at `bases`.

    A vector holds two neighbouring samples of all filters of a block (`layout.Pairs`), which meet two of the signal at once.
    The factors at position n begin at `factors[at + n · stride]`; the ratio and the filter's number are kept at `places[n]`.
    """
    signature = types.void(
        lanes, signal, bases, pairs, start, offsets, factors, at, stride, first, signed, best, winner, places
    )

    def codegen(context, builder, sig, args):
        element = context.get_value_type(sig.args[1].dtype)
        vector, count = ir.VectorType(element, 2 * FILTERS_A_BLOCK), 2 ** sig.args[0].count // 2
        signal_at, base_at, pair_at = (pointer(context, builder, sig.args[i], args[i]) for i in (1, 2, 3))
        sums = sums_of(builder, vector, count)
        bases = [builder.load(builder.gep(base_at, [whole_number(n)])) for n in range(count)]
        with each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
            taps, _ = vector_at(
                builder, pair_at, builder.add(args[4], builder.mul(i, whole_number(vector.count))), vector
            )
            for slot, base in zip(sums, bases, strict=True):
                two, _ = vector_at(builder, signal_at, builder.add(base, offset), ir.VectorType(element, 2))
                add_product(builder, chosen_lanes(builder, two, [0, 1] * FILTERS_A_BLOCK), taps, slot)
        factor_at, best_at, winner_at, place_at = (
            pointer(context, builder, sig.args[i], args[i]) for i in (6, 11, 12, 13)
        )
        for n, slot in enumerate(sums):
            both = builder.load(slot)
            even, odd = (chosen_lanes(builder, both, range(one, vector.count, 2)) for one in (0, 1))
            where = builder.add(args[7], builder.mul(args[8], whole_number(n)))
            factor, _ = vector_at(builder, factor_at, where, even.type)
            ratio = ratio_of(builder, builder.fadd(even, odd), factor, args[10])
            top, lane = largest_lane(builder, ratio)
            place = builder.load(builder.gep(place_at, [whole_number(n)]))
            addresses = [builder.gep(array_at, [place]) for array_at in (best_at, winner_at)]
            before, number = builder.load(addresses[0]), builder.trunc(builder.add(args[9], lane), ir.IntType(32))
            better = builder.fcmp_ordered(">", top, before)  # which nobody foresees: a branch would take longer
            builder.store(builder.select(better, top, before), addresses[0])
            builder.store(builder.select(better, number, builder.load(addresses[1])), addresses[1])
        return context.get_dummy_value()

    return signature, codegen
