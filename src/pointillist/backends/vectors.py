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


def pointer_to(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, array).data


def vector_at(builder, pointer, index, vector):
    """Load `vector` lanes from `pointer[index:]`, aligned to one element only."""
    element = builder.gep(pointer, [index])
    address = builder.bitcast(element, vector.as_pointer())
    loaded = builder.load(address, align=byte_size(vector.element))
    return loaded, address


def byte_size(element):
    return 8 if isinstance(element, ir.DoubleType) else 4


def broadcast_to(builder, scalar, vector):
    index = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, index)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


def _sum_lanes(builder, vector_value):
    vector = vector_value.type
    suffix = f"v{vector.count}{'f64' if byte_size(vector.element) == 8 else 'f32'}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector.element, [vector.element, vector]), f"llvm.vector.reduce.fadd.{suffix}"
    )
    return builder.call(function, [ir.Constant(vector.element, 0.0), vector_value], fastmath=("reassoc",))


def vector_type(context, array_type, lanes_type):
    return ir.VectorType(context.get_value_type(array_type.dtype), 2**lanes_type.count)


def whole_number(number):
    return ir.Constant(ir.IntType(64), number)


def zero_sums(builder, vector, count):
    """Places for so many vectors to be summed in, zero at first; they end up in registers."""
    slots = [cgutils.alloca_once(builder, vector) for _ in range(count)]
    for slot in slots:
        builder.store(ir.Constant(vector, [0.0] * vector.count), slot)
    return slots


def add_product(builder, a, b, slot):
    builder.store(_multiply_add(builder, a, b, builder.load(slot)), slot)


@contextmanager
def each_offset(context, builder, array_type, array):
    """A loop over an array of offsets, with the number of each and the offset itself."""
    offsets = context.make_array(array_type)(context, builder, array)
    with cgutils.for_range(builder, builder.extract_value(offsets.shape, 0)) as loop:
        yield loop.index, builder.load(builder.gep(offsets.data, [loop.index]))


@intrinsic
def dot_runs(typingctx, lanes, signal, base, filters, start, offsets):
    """Σ_i signal[base + offsets[i] :][:lanes] · filters[start + i·lanes :][:lanes], a scalar."""
    signature = signal.dtype(lanes, signal, base, filters, start, offsets)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        signal_at = pointer_to(context, builder, sig.args[1], args[1])
        filter_at = pointer_to(context, builder, sig.args[3], args[3])
        offset_array = context.make_array(sig.args[5])(context, builder, args[5])
        count = builder.extract_value(offset_array.shape, 0)
        sums = zero_sums(builder, vector, 2)

        def accumulate(i, into):
            offset = builder.load(builder.gep(offset_array.data, [i]))
            left, _ = vector_at(builder, signal_at, builder.add(args[2], offset), vector)
            where = builder.add(args[4], builder.mul(i, whole_number(vector.count)))
            right, _ = vector_at(builder, filter_at, where, vector)
            add_product(builder, left, right, into)

        one = whole_number(1)
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
        vector = vector_type(context, sig.args[1], sig.args[0])
        width = whole_number(vector.count)
        signal_at = pointer_to(context, builder, sig.args[1], args[1])
        base_at = pointer_to(context, builder, sig.args[2], args[2])
        filter_at = pointer_to(context, builder, sig.args[3], args[3])
        out_at = pointer_to(context, builder, sig.args[6], args[6])
        sums = zero_sums(builder, vector, POSITIONS_AT_ONCE)
        bases = [builder.load(builder.gep(base_at, [whole_number(n)])) for n in range(POSITIONS_AT_ONCE)]
        with each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
            run, _ = vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, width)), vector)
            for slot, base in zip(sums, bases, strict=True):
                sample, _ = vector_at(builder, signal_at, builder.add(base, offset), vector)
                add_product(builder, sample, run, slot)
        for n, slot in enumerate(sums):
            builder.store(_sum_lanes(builder, builder.load(slot)), builder.gep(out_at, [whole_number(n)]))
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
    vector = vector_type(context, sig.args[1], sig.args[0])
    width = whole_number(vector.count)
    signal_at = pointer_to(context, builder, sig.args[1], args[1])
    filter_at = pointer_to(context, builder, sig.args[3], args[3])
    factor = broadcast_to(builder, context.cast(builder, args[6], sig.args[6], sig.args[1].dtype), vector)
    with each_offset(context, builder, sig.args[5], args[5]) as (i, offset):
        place = builder.add(args[2], offset)
        old, address = vector_at(builder, signal_at, place, vector)
        run, _ = vector_at(builder, filter_at, builder.add(args[4], builder.mul(i, width)), vector)
        if weights is not None:
            weight, _ = vector_at(builder, pointer_to(context, builder, *weights), place, vector)
            run = builder.fmul(run, weight, flags=_CONTRACT)
        builder.store(_multiply_add(builder, run, factor, old), address, align=byte_size(vector.element))


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
        signal_at = pointer_to(context, builder, sig.args[1], args[1])
        filter_at = pointer_to(context, builder, sig.args[4], args[4])
        out_at = pointer_to(context, builder, sig.args[7], args[7])
        sums, addresses, bases = zero_sums(builder, vector, ROWS_AT_ONCE), [], []
        for a, slot in enumerate(sums):
            place = builder.add(args[8], whole_number(a * vector.count))
            value, address = vector_at(builder, out_at, place, vector)
            builder.store(value, slot)
            addresses.append(address)
            bases.append(builder.add(args[2], builder.mul(whole_number(a), args[3])))
        with each_offset(context, builder, sig.args[6], args[6]) as (i, offset):
            tap = builder.load(builder.gep(filter_at, [builder.add(args[5], i)]))
            value = broadcast_to(builder, tap, vector)
            for slot, row_base in zip(sums, bases, strict=True):
                sample, _ = vector_at(builder, signal_at, builder.add(row_base, offset), vector)
                add_product(builder, sample, value, slot)
        for slot, address in zip(sums, addresses, strict=True):
            builder.store(builder.load(slot), address, align=byte_size(vector.element))
        return context.get_dummy_value()

    return signature, codegen
