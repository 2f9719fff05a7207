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

from pointillist.backends.blocks import FILTERS_A_BLOCK

_CONTRACT = ("contract",)

POSITIONS_AT_ONCE = 8


def lanes_of(width):
    """The tuple that tells kernels a width, which is a power of two: its length is the power.

    It is as short as that because kernels take it apart, and each part is compiled.
    """
    return (None,) * (width.bit_length() - 1)


def width_of(lanes):
    """The width that a tuple of `lanes_of` tells."""
    return 2 ** len(lanes)


def _pointer(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, array).data


def _vector_at(builder, pointer, index, vector):
    """Load `vector` lanes from `pointer[index:]`, aligned to one element only."""
    element = builder.gep(pointer, [index])
    address = builder.bitcast(element, vector.as_pointer())
    loaded = builder.load(address, align=_bytes(vector.element))
    return loaded, address


def _bytes(element):
    return 8 if isinstance(element, ir.DoubleType) else 4


def _broadcast(builder, scalar, vector):
    index = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, index)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


def _sum_lanes(builder, vector_value):
    vector = vector_value.type
    suffix = f"v{vector.count}{'f64' if _bytes(vector.element) == 8 else 'f32'}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector.element, [vector.element, vector]), f"llvm.vector.reduce.fadd.{suffix}"
    )
    return builder.call(function, [ir.Constant(vector.element, 0.0), vector_value], fastmath=("reassoc",))


def _vector_type(context, array_type, lanes_type):
    return ir.VectorType(context.get_value_type(array_type.dtype), 2**lanes_type.count)


def _whole(number):
    return ir.Constant(ir.IntType(64), number)


def _sums(builder, vector, count):
    """Places for so many vectors to be summed in, zero at first; they end up in registers."""
    slots = [cgutils.alloca_once(builder, vector) for _ in range(count)]
    for slot in slots:
        builder.store(ir.Constant(vector, [0.0] * vector.count), slot)
    return slots


def _add_product(builder, a, b, slot):
    builder.store(_multiply_add(builder, a, b, builder.load(slot)), slot)


@contextmanager
def _each_offset(context, builder, array_type, array):
    """A loop over an array of offsets, with the number of each and the offset itself."""
    offsets = context.make_array(array_type)(context, builder, array)
    with cgutils.for_range(builder, builder.extract_value(offsets.shape, 0)) as loop:
        yield loop.index, builder.load(builder.gep(offsets.data, [loop.index]))


@intrinsic
def dot_runs(typingctx, lanes, signal, base, filters, start, offsets):
    """Σ_i signal[base + offsets[i] :][:lanes] · filters[start + i·lanes :][:lanes], a scalar."""
    signature = signal.dtype(lanes, signal, base, filters, start, offsets)

    def codegen(context, builder, sig, args):
        vector = _vector_type(context, sig.args[1], sig.args[0])
        signal_at = _pointer(context, builder, sig.args[1], args[1])
        filter_at = _pointer(context, builder, sig.args[3], args[3])
        offset_array = context.make_array(sig.args[5])(context, builder, args[5])
        count = builder.extract_value(offset_array.shape, 0)
        sums = _sums(builder, vector, 2)

        def accumulate(i, into):
            offset = builder.load(builder.gep(offset_array.data, [i]))
            left, _ = _vector_at(builder, signal_at, builder.add(args[2], offset), vector)
            where = builder.add(args[4], builder.mul(i, _whole(vector.count)))
            right, _ = _vector_at(builder, filter_at, where, vector)
            _add_product(builder, left, right, into)

        one = _whole(1)
        with cgutils.for_range(builder, builder.lshr(count, one)) as loop:
            first = builder.shl(loop.index, one)
            accumulate(first, sums[0])
            accumulate(builder.add(first, one), sums[1])
        with builder.if_then(builder.trunc(builder.and_(count, one), ir.IntType(1))):
            accumulate(builder.sub(count, one), sums[0])
        return _sum_lanes(builder, builder.fadd(builder.load(sums[0]), builder.load(sums[1])))

    return signature, codegen


@intrinsic
def dot_runs_at(typingctx, lanes, signal, bases, filters, start, offsets, out):
    """Compute `dot_runs` of one filter at `POSITIONS_AT_ONCE` positions: each run of the filter is loaded once for all."""
    signature = types.void(lanes, signal, bases, filters, start, offsets, out)

    def codegen(context, builder, sig, args):
        vector = _vector_type(context, sig.args[1], sig.args[0])
        width = _whole(vector.count)
        signal_at = _pointer(context, builder, sig.args[1], args[1])
        base_at = _pointer(context, builder, sig.args[2], args[2])
        filter_at = _pointer(context, builder, sig.args[3], args[3])
        out_at = _pointer(context, builder, sig.args[6], args[6])
        sums = _sums(builder, vector, POSITIONS_AT_ONCE)
        bases = [builder.load(builder.gep(base_at, [_whole(n)])) for n in range(POSITIONS_AT_ONCE)]
        with _each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
            run, _ = _vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, width)), vector)
            for slot, base in zip(sums, bases, strict=True):
                sample, _ = _vector_at(builder, signal_at, builder.add(base, offset), vector)
                _add_product(builder, sample, run, slot)
        for n, slot in enumerate(sums):
            builder.store(_sum_lanes(builder, builder.load(slot)), builder.gep(out_at, [_whole(n)]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_runs(typingctx, lanes, signal, base, filters, start, offsets, scale):
    """signal[base + offsets[i] :][:lanes] += scale · filters[start + i·lanes :][:lanes], in place."""
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
    vector = _vector_type(context, sig.args[1], sig.args[0])
    width = _whole(vector.count)
    signal_at = _pointer(context, builder, sig.args[1], args[1])
    filter_at = _pointer(context, builder, sig.args[3], args[3])
    factor = _broadcast(builder, context.cast(builder, args[6], sig.args[6], sig.args[1].dtype), vector)
    with _each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
        place = builder.add(args[2], offset)
        old, address = _vector_at(builder, signal_at, place, vector)
        run, _ = _vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, width)), vector)
        if weights is not None:
            weight, _ = _vector_at(builder, _pointer(context, builder, *weights), place, vector)
            run = builder.fmul(run, weight, flags=_CONTRACT)
        builder.store(_multiply_add(builder, run, factor, old), address, align=_bytes(vector.element))


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
        out_at = _pointer(context, builder, sig.args[6], args[6])
        for k, total in enumerate(sums):
            place = builder.add(args[7], builder.mul(args[8], _whole(k)))
            address = builder.bitcast(builder.gep(out_at, [place]), total.type.as_pointer())
            builder.store(total, address, align=_bytes(total.type.element))
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
            return _broadcast(builder, builder.load(builder.gep(factor_at, [number])), vector)

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
            return _vector_at(builder, factor_at, where, vector)[0]

        return _keep_best(context, builder, sig, args, factor)

    return signature, codegen


def _keep_best(context, builder, sig, args, factor_of):
    sums = _block_sums(context, builder, sig, args)
    vector = sums[0].type
    whole = ir.VectorType(ir.IntType(32), vector.count)
    factor_at = _pointer(context, builder, sig.args[6], args[6])
    best_at = _pointer(context, builder, sig.args[9], args[9])
    winner_at = builder.bitcast(_pointer(context, builder, sig.args[10], args[10]), ir.IntType(32).as_pointer())
    best, best_address = _vector_at(builder, best_at, args[11], vector)
    winner_address = builder.bitcast(builder.gep(winner_at, [args[11]]), whole.as_pointer())
    winner = builder.load(winner_address, align=4)
    for k, total in enumerate(sums):
        number = builder.add(args[7], _whole(k))
        ratio = _ratio(builder, total, factor_of(factor_at, number, vector), args[8])
        better = builder.fcmp_ordered(">", ratio, best)
        best = builder.select(better, ratio, best)
        numbers = _broadcast(builder, builder.trunc(number, ir.IntType(32)), whole)
        winner = builder.select(better, numbers, winner)
    builder.store(best, best_address, align=_bytes(vector.element))
    builder.store(winner, winner_address, align=4)
    return context.get_dummy_value()


def _block_sums(context, builder, sig, args):
    """The correlations of a block of filters, a vector of neighbouring positions each."""
    vector = _vector_type(context, sig.args[1], sig.args[0])
    signal_at = _pointer(context, builder, sig.args[1], args[1])
    filter_at = _pointer(context, builder, sig.args[3], args[3])
    sums = _sums(builder, vector, FILTERS_A_BLOCK)
    with _each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
        sample, _ = _vector_at(builder, signal_at, builder.add(args[2], offset), vector)
        row = builder.add(args[4], builder.mul(i, _whole(FILTERS_A_BLOCK)))
        for k, slot in enumerate(sums):
            tap = builder.load(builder.gep(filter_at, [builder.add(row, _whole(k))]))
            _add_product(builder, sample, _broadcast(builder, tap, vector), slot)
    return [builder.load(slot) for slot in sums]


@intrinsic
def best_at_positions(
    typingctx, lanes, signal, bases, filters, start, offsets, factors, at, stride, first, signed, best, winner, places
):
    """Do what `best_of_block` does at `POSITIONS_AT_ONCE` scattered positions, which begin in the signal at `bases`.

    The lanes, as many as `FILTERS_A_BLOCK`, run over the filters of the block here. Their factors at position n begin at
    `factors[at + n · stride]`; the ratio and the filter's number are kept at `places[n]`.
    """
    signature = types.void(
        lanes, signal, bases, filters, start, offsets, factors, at, stride, first, signed, best, winner, places
    )

    def codegen(context, builder, sig, args):
        vector = _vector_type(context, sig.args[1], sig.args[0])
        block = _whole(FILTERS_A_BLOCK)
        signal_at, base_at, filter_at = (_pointer(context, builder, sig.args[i], args[i]) for i in (1, 2, 3))
        sums = _sums(builder, vector, POSITIONS_AT_ONCE)
        bases = [builder.load(builder.gep(base_at, [_whole(n)])) for n in range(POSITIONS_AT_ONCE)]
        with _each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
            taps, _ = _vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, block)), vector)
            for slot, base in zip(sums, bases, strict=True):
                sample = builder.load(builder.gep(signal_at, [builder.add(base, offset)]))
                _add_product(builder, _broadcast(builder, sample, vector), taps, slot)
        factor_at, best_at, winner_at, place_at = (
            _pointer(context, builder, sig.args[i], args[i]) for i in (6, 11, 12, 13)
        )
        for n, slot in enumerate(sums):
            where = builder.add(args[7], builder.mul(args[8], _whole(n)))
            factor, _ = _vector_at(builder, factor_at, where, vector)
            ratio = _ratio(builder, builder.load(slot), factor, args[10])
            top, lane = _largest_lane(builder, ratio)
            place = builder.load(builder.gep(place_at, [_whole(n)]))
            address = builder.gep(best_at, [place])
            with builder.if_then(builder.fcmp_ordered(">", top, builder.load(address))):
                builder.store(top, address)
                number = builder.trunc(builder.add(args[9], lane), ir.IntType(32))
                builder.store(number, builder.gep(winner_at, [place]))
        return context.get_dummy_value()

    return signature, codegen


def _ratio(builder, total, factor, signed):
    """Sums times factors, or their sizes where signs do not count."""
    ratio, zero = builder.fmul(total, factor), ir.Constant(total.type, [0.0] * total.type.count)
    size = builder.select(builder.fcmp_ordered("<", ratio, zero), builder.fsub(zero, ratio), ratio)
    return builder.select(signed, ratio, size)


def _largest_lane(builder, values):
    """The largest value of a vector, and the number of the first lane that has it."""
    count, folded = values.type.count, values
    while folded.type.count > 1:
        half = folded.type.count // 2
        low, high = (_lanes_of(builder, folded, first, half) for first in (0, half))
        folded = builder.select(builder.fcmp_ordered(">", high, low), high, low)
    top = builder.extract_element(folded, ir.Constant(ir.IntType(32), 0))
    bits = builder.bitcast(builder.fcmp_ordered("==", values, _broadcast(builder, top, values.type)), ir.IntType(count))
    return top, builder.zext(builder.cttz(bits, ir.Constant(ir.IntType(1), 0)), ir.IntType(64))


def _lanes_of(builder, values, first, count):
    """Some neighbouring lanes of a vector."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(first, first + count)))
    return builder.shuffle_vector(values, ir.Constant(values.type, ir.Undefined), mask)


ROWS_AT_ONCE = 6


@intrinsic
def correlate_rows(typingctx, lanes, signal, base, row_stride, filters, start, offsets, out, out_start):
    """Add the correlation of one filter with `ROWS_AT_ONCE` rows of `lanes` positions to rows of `out`.

    Row a of the positions begins at base + a·row_stride, its sums at out_start + a·lanes. The counterpart of
    `correlate_block` for a single filter: each sample is broadcast once for all rows.
    """
    signature = types.void(lanes, signal, base, row_stride, filters, start, offsets, out, out_start)

    def codegen(context, builder, sig, args):
        vector = _vector_type(context, sig.args[1], sig.args[0])
        signal_at = _pointer(context, builder, sig.args[1], args[1])
        filter_at = _pointer(context, builder, sig.args[4], args[4])
        out_at = _pointer(context, builder, sig.args[7], args[7])
        sums, addresses, bases = _sums(builder, vector, ROWS_AT_ONCE), [], []
        for a, slot in enumerate(sums):
            place = builder.add(args[8], _whole(a * vector.count))
            value, address = _vector_at(builder, out_at, place, vector)
            builder.store(value, slot)
            addresses.append(address)
            bases.append(builder.add(args[2], builder.mul(_whole(a), args[3])))
        with _each_offset(context, builder, sig.args[6], args[6]) as (i, offset):
            tap = builder.load(builder.gep(filter_at, [builder.add(args[5], i)]))
            value = _broadcast(builder, tap, vector)
            for slot, row_base in zip(sums, bases, strict=True):
                sample, _ = _vector_at(builder, signal_at, builder.add(row_base, offset), vector)
                _add_product(builder, sample, value, slot)
        for slot, address in zip(sums, addresses, strict=True):
            builder.store(builder.load(slot), address, align=_bytes(vector.element))
        return context.get_dummy_value()

    return signature, codegen
