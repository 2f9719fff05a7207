"""Cholesky's factor of small dense matrices, with right sides that are solved for on the way, by vector instructions.

A matrix with its right sides is an array of rows, flat, `stride` numbers each: n columns of the matrix, of which those from
the diagonal on are read, and behind them the right sides. Rows are worked on in whole vectors: a few numbers before the
diagonal and behind the right sides are read and written, so that a row has room for whole vectors and there are a few
rows behind the last one. What stands there does not matter as long as it is finite.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pointillist.kernels.compiling import helper
from pointillist.kernels.lanes import lanes_of

LANES = 8
"""Numbers of a vector, of which rows have whole ones."""
PANEL = 4
"""Rows that are eliminated together: so many rows may be read behind the last one."""

_WIDTH = lanes_of(LANES)
_CONTRACT = ("contract",)
_TINY = 1e-30


@helper()
def room(n, columns, dtype):
    """An array of zeros with room for n rows of so many columns, right sides included."""
    return np.zeros((n + PANEL, -(-columns // LANES) * LANES), dtype)


@intrinsic
def _reduce_rows(typingctx, lanes, flat, row, first, last, panel, stride, factors, scale):
    """Take multiples of the rows of a panel from one or more rows, and scale these: for j from first to last

        flat[row + t · stride + j] = scale · (flat[row + t · stride + j] − Σ_m factors[t][m] · flat[panel + m · stride + j])

    `factors` has a tuple for each row t, and j goes on in whole vectors.
    """
    signature = types.void(lanes, flat, row, first, last, panel, stride, factors, scale)

    def codegen(context, builder, sig, args):
        vector = ir.VectorType(context.get_value_type(sig.args[1].dtype), 2 ** sig.args[0].count)
        size = sig.args[1].dtype.bitwidth // 8
        data = context.make_array(sig.args[1])(context, builder, args[1]).data
        _, _, row, first, last, panel, stride, factors, scale = args

        def address(start, number, j):
            index = builder.add(builder.add(start, builder.mul(stride, ir.Constant(stride.type, number))), j)
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        scales = _spread(builder, scale, vector)
        multiples = [
            [_spread(builder, builder.fneg(builder.extract_value(factors, [t, m])), vector) for m in range(len(each))]
            for t, each in enumerate(sig.args[7].types)
        ]
        with cgutils.for_range_slice(builder, first, last, ir.Constant(first.type, vector.count)) as (j, _):
            others = [builder.load(address(panel, m, j), align=size) for m in range(len(multiples[0]))]
            for t, own in enumerate(multiples):
                place = address(row, t, j)
                value = builder.load(place, align=size)
                for multiple, other in zip(own, others, strict=True):
                    value = builder.fadd(builder.fmul(multiple, other, flags=_CONTRACT), value, flags=_CONTRACT)
                builder.store(builder.fmul(value, scales), place, align=size)
        return context.get_dummy_value()

    return signature, codegen


def _spread(builder, value, vector):
    """A vector of one value in all lanes."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


@helper()
def factorise(flat, stride, n, columns):
    """Replace a symmetric matrix A (n, n) by the upper U with A = Uᵀ U, and the right sides B behind A by U⁻ᵀ B."""
    one = flat.dtype.type(1)
    for k in range(0, n, PANEL):
        end, panel = min(k + PANEL, n), k * stride
        for m in range(k, end):
            # What stands in rows of the panel below this one counts as zero.
            a = flat[panel + m] if m > k else one - one
            b = flat[panel + stride + m] if m > k + 1 else one - one
            c = flat[panel + 2 * stride + m] if m > k + 2 else one - one
            pivot = flat[m * stride + m] - a * a - b * b - c * c
            scale = one / np.sqrt(max(pivot, flat.dtype.type(_TINY)))
            _reduce_rows(_WIDTH, flat, m * stride, k - k % LANES, columns, panel, stride, ((a, b, c),), scale)
        for i in range(end, n, 2):
            two = _column(flat, panel + i, stride), _column(flat, panel + i + 1, stride)
            _reduce_rows(_WIDTH, flat, i * stride, i - i % LANES, columns, panel, stride, two, one)


@helper()
def _column(flat, first, stride):
    """A column of a panel."""
    return flat[first], flat[first + stride], flat[first + 2 * stride], flat[first + 3 * stride]
