"""What kernels of vectors are built from in LLVM: lanes that are loaded, multiplied, added up and compared.

The number of lanes is told by the length of a tuple (`lanes_of`), hence part of its numba type. Nothing here is called by
Python itself; the intrinsics of `vectors` and `fourier` are made of it.
"""

from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils

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
