"""Inverse Fourier transforms of many lines side by side, and the largest of what they come to.

A complex number is two vectors: the lanes of the first are its real parts, those of the second its imaginary ones. Each lane
is a transform of its own, so that nothing is shuffled, and a butterfly is a few additions of vectors. Transforms along the
axes of a box are taken line by line in a small buffer (Stockham's algorithm, which needs no reordering). Nothing here is
divided by the number of samples.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pointillist.kernels.compiling import helper, kernel
from pointillist.kernels.vectors import (
    CONTRACT,
    broadcast,
    lanes_of,
    largest_lane,
    pointer,
    ratio_of,
    store,
    vector_at,
    vector_type,
    whole_number,
)

_LANES_OF_ALL = 8
LANES = lanes_of(_LANES_OF_ALL)
TOGETHER = 2 * _LANES_OF_ALL
"""Real transforms that are taken together, half of them as imaginary parts of the others."""
_RADICES = (4, 2, 3, 5, 7)


class Line(NamedTuple):
    """How a line of `length` complex numbers is transformed, pass by pass."""

    length: int
    radices: np.ndarray
    twiddles: np.ndarray  # real and imaginary parts, in the order in which they are used


def can_transform(length):
    """Whether there are transforms of so many numbers."""
    return _radices(length) is not None


def _radices(length):
    radices = []
    for radix in _RADICES:
        while length % radix == 0:
            radices.append(radix)
            length //= radix
    return radices if length == 1 else None


@lru_cache(maxsize=64)
def line_of(length, dtype):
    """The passes of a transform of so many numbers, for which `can_transform` holds; nobody writes into them."""
    radices, twiddles, rest = _radices(length), [np.empty(0)], length
    for radix in radices:
        p, j = np.ogrid[: rest // radix, 1:radix]
        angles = 2 * np.pi * (p * j) / rest
        twiddles.append(np.stack([np.cos(angles), np.sin(angles)], axis=-1).ravel())
        rest //= radix
    return Line(length, np.array(radices, np.int64), np.concatenate(twiddles).astype(dtype))


@intrinsic
def _butterfly(typingctx, lanes, radix, x, start, step, y, out, out_step, twiddles, place):
    """The transform of `radix` complex numbers from x to y, all but the first multiplied by twiddles."""
    signature = types.void(lanes, radix, x, start, step, y, out, out_step, twiddles, place)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[2], sig.args[0])
        count = sig.args[1].count
        x_at, y_at, twiddle_at = (pointer(context, builder, sig.args[i], args[i]) for i in (2, 5, 8))
        width = whole_number(vector.count)
        given = []
        for k in range(count):
            where = builder.add(args[3], builder.mul(args[4], whole_number(k)))
            real, _ = vector_at(builder, x_at, where, vector)
            imaginary, _ = vector_at(builder, x_at, builder.add(where, width), vector)
            given.append((real, imaginary))
        found = _small_transform(builder, given, vector)
        for j, (real, imaginary) in enumerate(found):
            if j > 0:
                at = builder.add(args[9], whole_number(2 * (j - 1)))
                c = broadcast(builder, builder.load(builder.gep(twiddle_at, [at])), vector)
                s = broadcast(
                    builder, builder.load(builder.gep(twiddle_at, [builder.add(at, whole_number(1))])), vector
                )
                real, imaginary = (
                    _minus(builder, _times(builder, real, c), _times(builder, imaginary, s)),
                    _plus(builder, _times(builder, real, s), _times(builder, imaginary, c)),
                )
            where = builder.add(args[6], builder.mul(args[7], whole_number(j)))
            store(builder, y_at, where, real)
            store(builder, y_at, builder.add(where, width), imaginary)
        return context.get_dummy_value()

    return signature, codegen


def _plus(builder, a, b):
    return builder.fadd(a, b, flags=CONTRACT)


def _minus(builder, a, b):
    return builder.fsub(a, b, flags=CONTRACT)


def _times(builder, a, b):
    return builder.fmul(a, b, flags=CONTRACT)


def _small_transform(builder, given, vector):
    """Σ_k given[k] exp(2πi jk / n) for all j, of complex vectors."""

    def plus(a, b):
        return tuple(_plus(builder, one, other) for one, other in zip(a, b, strict=True))

    def minus(a, b):
        return tuple(_minus(builder, one, other) for one, other in zip(a, b, strict=True))

    n = len(given)
    if n == 2:
        return [plus(*given), minus(*given)]
    if n == 4:
        even, odd = plus(given[0], given[2]), plus(given[1], given[3])
        left, right = minus(given[0], given[2]), minus(given[1], given[3])
        # left ± i right, without a negation
        up = _minus(builder, left[0], right[1]), _plus(builder, left[1], right[0])
        down = _plus(builder, left[0], right[1]), _minus(builder, left[1], right[0])
        return [plus(even, odd), up, minus(even, odd), down]
    half = n // 2
    sums = [plus(given[k], given[n - k]) for k in range(1, half + 1)]
    differences = [minus(given[k], given[n - k]) for k in range(1, half + 1)]
    total = given[0]
    for one in sums:
        total = plus(total, one)
    found = [total] + [None] * (n - 1)

    def times(a, factor):
        constant = ir.Constant(vector, [factor] * vector.count)
        return tuple(_times(builder, one, constant) for one in a)

    for j in range(1, half + 1):
        even, odd = given[0], None
        for k in range(1, half + 1):
            angle = 2 * math.pi * (j * k % n) / n
            even = plus(even, times(sums[k - 1], math.cos(angle)))
            part = times(differences[k - 1], math.sin(angle))
            odd = part if odd is None else plus(odd, part)
        found[j] = _minus(builder, even[0], odd[1]), _plus(builder, even[1], odd[0])
        found[n - j] = _plus(builder, even[0], odd[1]), _minus(builder, even[1], odd[0])
    return found


_TWO, _THREE, _FOUR, _FIVE, _SEVEN = ((None,) * n for n in (2, 3, 4, 5, 7))


@helper()
def _transform(lanes, line, x, y):
    """Transform the line in x, with y for a second buffer; returns whether the answer is in y."""
    n, s, place, swapped = line.length, 1, 0, False
    unit = 2 << len(lanes)
    for radix in line.radices:
        m = n // radix
        one, other = (y, x) if swapped else (x, y)
        step, out_step = s * m * unit, s * unit
        for p in range(m):
            at = place + p * 2 * (radix - 1)
            for q in range(s):
                start, out = (q + s * p) * unit, (q + s * radix * p) * unit
                if radix == 4:
                    _butterfly(lanes, _FOUR, one, start, step, other, out, out_step, line.twiddles, at)
                elif radix == 5:
                    _butterfly(lanes, _FIVE, one, start, step, other, out, out_step, line.twiddles, at)
                elif radix == 2:
                    _butterfly(lanes, _TWO, one, start, step, other, out, out_step, line.twiddles, at)
                elif radix == 3:
                    _butterfly(lanes, _THREE, one, start, step, other, out, out_step, line.twiddles, at)
                else:
                    _butterfly(lanes, _SEVEN, one, start, step, other, out, out_step, line.twiddles, at)
        swapped = not swapped
        place += m * 2 * (radix - 1)
        n, s = m, s * radix
    return swapped


@intrinsic
def _add_product(typingctx, lanes, spectra, at, real, imaginary, out, where):
    """out[where:] += the complex vector at spectra[at:] times a complex number, in the precision of `out`."""
    signature = types.void(lanes, spectra, at, real, imaginary, out, where)

    def codegen(context, builder, sig, args):
        vector, stored = (vector_type(context, sig.args[i], sig.args[0]) for i in (5, 1))
        given, taken = (pointer(context, builder, sig.args[i], args[i]) for i in (1, 5))

        def loaded(more):
            value, _ = vector_at(builder, given, builder.add(args[2], whole_number(more)), stored)
            return value if stored == vector else builder.fpext(value, vector)

        a, b = loaded(0), loaded(vector.count)
        c, s = broadcast(builder, args[3], vector), broadcast(builder, args[4], vector)
        real = _minus(builder, _times(builder, a, c), _times(builder, b, s))
        imaginary = _plus(builder, _times(builder, a, s), _times(builder, b, c))
        for more, product in ((0, real), (vector.count, imaginary)):
            place = builder.add(args[6], whole_number(more))
            before, _ = vector_at(builder, taken, place, vector)
            store(builder, taken, place, _plus(builder, before, product))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _copy(typingctx, lanes, source, at, out, where):
    """Copy a complex vector."""
    signature = types.void(lanes, source, at, out, where)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        given, taken = (pointer(context, builder, sig.args[i], args[i]) for i in (1, 3))
        for more in (0, vector.count):
            value, _ = vector_at(builder, given, builder.add(args[2], whole_number(more)), vector)
            store(builder, taken, builder.add(args[4], whole_number(more)), value)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _keep_largest(typingctx, lanes, line, at, factors, place, first, signed, best, winner, position):
    """Keep the largest of the numbers at line[at:], times their factors, if it exceeds the best so far.

    The numbers are those of the filters from `first` on: real parts, then imaginary parts. `signed` false compares sizes.
    """
    signature = types.void(lanes, line, at, factors, place, first, signed, best, winner, position)

    def codegen(context, builder, sig, args):
        vector = vector_type(context, sig.args[1], sig.args[0])
        count = 2 * vector.count
        line_at, factor_at, best_at, winner_at = (pointer(context, builder, sig.args[i], args[i]) for i in (1, 3, 7, 8))
        ratios = []
        for more in (0, vector.count):
            total, _ = vector_at(builder, line_at, builder.add(args[2], whole_number(more)), vector)
            factor, _ = vector_at(builder, factor_at, builder.add(args[4], whole_number(more)), vector)
            ratios.append(ratio_of(builder, total, factor, args[6]))
        both = builder.shuffle_vector(*ratios, ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(count))))
        top, lane = largest_lane(builder, both)
        address = builder.gep(best_at, [args[9]])
        with builder.if_then(builder.fcmp_ordered(">", top, builder.load(address))):
            builder.store(top, address)
            number = builder.trunc(builder.add(args[5], lane), ir.IntType(32))
            builder.store(number, builder.gep(winner_at, [args[9]]))
        return context.get_dummy_value()

    return signature, codegen


@kernel
def transform_lines(lanes, line, numbers, begins, stride, x, y):
    """Transform lines of an array in place. They begin at complex numbers `begins`, and go on in steps of `stride`.

    `numbers` is flat, `x` and `y` hold one line each.
    """
    unit = 2 << len(lanes)
    for begin in begins:
        for t in range(line.length):
            _copy(lanes, numbers, (begin + t * stride) * unit, x, t * unit)
        found = y if _transform(lanes, line, x, y) else x
        for t in range(line.length):
            _copy(lanes, found, t * unit, numbers, (begin + t * stride) * unit)


@kernel
def transform_products(lanes, line, spectra, residual, kept, x, y, out):
    """Transform the products of spectra and a residual's along the first axis, of which the first `kept` numbers are kept.

    `spectra` is flat, of complex vectors (channels, others, length); `residual` has its complex numbers in the same order,
    (channels, others, length, 2), and `out` is flat, of complex vectors (kept, others).
    """
    n_channels, others, length, _ = residual.shape
    unit = 2 << len(lanes)
    for other in range(others):
        for t in range(length * unit):
            x[t] = 0
        for channel in range(n_channels):
            start, own = (channel * others + other) * length * unit, residual[channel, other]
            for t in range(length):
                _add_product(lanes, spectra, start + t * unit, own[t, 0], own[t, 1], x, t * unit)
        found = y if _transform(lanes, line, x, y) else x
        for t in range(kept):
            _copy(lanes, found, t * unit, out, (t * others + other) * unit)


@kernel
def transform_rows(lanes, line, numbers, begins, kept, factors, stride, first, signed, x, y, best, winner):
    """Transform lines along the last axis, and keep the largest of what the filters from `first` on have at each position.

    Of each line the first `kept` numbers are positions, one line after the other. Their factors begin at every `stride`th
    of `factors`. `best` and `winner` hold the largest ratio of each position so far and the number of its filter.
    """
    unit = 2 << len(lanes)
    for row in range(len(begins)):
        for t in range(line.length):
            _copy(lanes, numbers, (begins[row] + t) * unit, x, t * unit)
        found = y if _transform(lanes, line, x, y) else x
        for position in range(row * kept, (row + 1) * kept):
            _keep_largest(
                lanes, found, (position - row * kept) * unit, factors, position * stride, first, signed, best, winner,
                position,
            )  # fmt: skip
