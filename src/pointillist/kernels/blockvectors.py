"""Vector instructions for blocks of filters, built directly in LLVM: correlations at once, and the best of them.

A block is `FILTERS_A_BLOCK` filters, sample by sample side by side. One load of the signal serves all filters of the block,
or one load of the filters all positions, and sums stay in registers.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pointillist.kernels.blocks import FILTERS_A_BLOCK
from pointillist.kernels.lanes import (
    add_product,
    broadcast,
    chosen_lanes,
    each_offset,
    largest_lane,
    pointer,
    ratio_of,
    size_of,
    store,
    sums_of,
    vector_at,
    vector_type,
    whole_number,
)


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
def best_of_block(typingctx, lanes, signal, base, filters, start, offsets, factors, first, signed, best, winner, place):
    """Keep, for `lanes` neighbouring positions, the largest correlation · factor of a block of filters so far.

    Filter k of the block has the number first + k and the factor `factors[first + k]`; `signed` false compares sizes.
    `best[place:][:lanes]` and `winner[place:][:lanes]` (int32) hold the ratios and the filters' numbers.
    """
    signature = types.void(lanes, signal, base, filters, start, offsets, factors, first, signed, best, winner, place)

    def codegen(context, builder, sig, args):
        def factor(factor_at, number, vector):
            return broadcast(builder, builder.load(builder.gep(factor_at, [number])), vector)

        return _keep_best(context, builder, sig, args, factor)

    return signature, codegen


@intrinsic
def best_of_block_local(
    typingctx, lanes, signal, base, filters, start, offsets, factors, first, signed, best, winner, place, stride
):
    """Do what `best_of_block` does with a factor for each position: `factors[(first + k) · stride + place :][:lanes]`."""
    signature = types.void(
        lanes, signal, base, filters, start, offsets, factors, first, signed, best, winner, place, stride
    )

    def codegen(context, builder, sig, args):
        def factor(factor_at, number, vector):
            where = builder.add(builder.mul(number, args[12]), args[11])
            return vector_at(builder, factor_at, where, vector)[0]

        return _keep_best(context, builder, sig, args, factor)

    return signature, codegen


@intrinsic
def note_block(
    typingctx,
    lanes,
    signal,
    base,
    filters,
    start,
    offsets,
    factors,
    first,
    signed,
    best,
    winner,
    place,
    skipped,
    floor,
    stride,
    notes,
    count,
):
    """Do what `best_of_block` does, and append the codes whose ratio exceeds `floor` to `notes`, as far as there is room.

    The code of filter k at `place` is (first + k) · stride + place. The first `skipped` positions are not noted. `count`
    (1,) is how many there were, with those that found no room.
    """
    signature = types.void(
        lanes, signal, base, filters, start, offsets, factors, first, signed, best, winner, place, skipped, floor, stride,
        notes, count,
    )  # fmt: skip

    def codegen(context, builder, sig, args):
        def factor(factor_at, number, vector):
            return broadcast(builder, builder.load(builder.gep(factor_at, [number])), vector)

        notes = context.make_array(sig.args[15])(context, builder, args[15])
        count_at = pointer(context, builder, sig.args[16], args[16])

        def note(number, ratio):
            bits = builder.bitcast(
                builder.fcmp_ordered(">", ratio, broadcast(builder, args[13], ratio.type)),
                ir.IntType(ratio.type.count),
            )
            bits = builder.and_(bits, builder.shl(ir.Constant(bits.type, -1), builder.trunc(args[12], bits.type)))
            with builder.if_then(builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0)), likely=False):
                begin = builder.add(builder.mul(number, args[14]), args[11])
                _append_lanes(builder, bits, begin, notes, count_at)

        return _keep_best(context, builder, sig, args, factor, note)

    return signature, codegen


def _append_lanes(builder, bits, begin, notes, count_at):
    """Append begin + lane to an array for each lane whose bit is set, of which there is one at least, and count them."""
    room, none = builder.extract_value(notes.shape, 0), ir.Constant(bits.type, 0)
    left = cgutils.alloca_once_value(builder, bits)
    loop, done = builder.append_basic_block("note"), builder.append_basic_block("noted")
    builder.branch(loop)
    builder.position_at_end(loop)
    some, count = builder.load(left), builder.load(count_at)
    lane = builder.zext(builder.cttz(some, ir.Constant(ir.IntType(1), 0)), ir.IntType(64))
    with builder.if_then(builder.icmp_signed("<", count, room)):
        builder.store(builder.add(begin, lane), builder.gep(notes.data, [count]))
    builder.store(builder.add(count, whole_number(1)), count_at)
    rest = builder.and_(some, builder.sub(some, ir.Constant(bits.type, 1)))
    builder.store(rest, left)
    builder.cbranch(builder.icmp_unsigned("!=", rest, none), loop, done)
    builder.position_at_end(done)


def _keep_best(context, builder, sig, args, factor_of, note=None):
    sums = _block_sums(context, builder, sig, args)
    vector = sums[0].type
    whole = ir.VectorType(ir.IntType(32), vector.count)
    factor_at = pointer(context, builder, sig.args[6], args[6])
    best_at = pointer(context, builder, sig.args[9], args[9])
    winner_at = builder.bitcast(pointer(context, builder, sig.args[10], args[10]), ir.IntType(32).as_pointer())
    best, best_address = vector_at(builder, best_at, args[11], vector)
    winner_address = builder.bitcast(builder.gep(winner_at, [args[11]]), whole.as_pointer())
    winner = builder.load(winner_address, align=4)
    for k, total in enumerate(sums):
        number = builder.add(args[7], whole_number(k))
        ratio = ratio_of(builder, total, factor_of(factor_at, number, vector), args[8])
        if note is not None:
            note(number, ratio)
        better = builder.fcmp_ordered(">", ratio, best)
        best = builder.select(better, ratio, best)
        numbers = broadcast(builder, builder.trunc(number, ir.IntType(32)), whole)
        winner = builder.select(better, numbers, winner)
    builder.store(best, best_address, align=size_of(vector.element))
    builder.store(winner, winner_address, align=4)
    return context.get_dummy_value()


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
