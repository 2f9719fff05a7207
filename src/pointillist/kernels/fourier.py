"""Inverse Fourier transforms of many lines side by side, and the largest of what they come to.

A complex number is two vectors: the lanes of the first are its real parts, those of the second its imaginary ones. Each lane
is a transform of its own, so that nothing is shuffled, and a butterfly is a few additions of vectors. Transforms along the
axes of a box are taken line by line in a small buffer (Stockham's algorithm, which needs no reordering). Nothing here is
divided by the number of samples.
"""

import math
from functools import lru_cache, reduce
from operator import add
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from pointillist.kernels.compiling import helper, kernel
from pointillist.kernels.vectors import CONTRACT, broadcast, lanes_of, largest_lane, ratio_of, writes

_LANES_OF_ALL = 8
LANES = lanes_of(_LANES_OF_ALL)
TOGETHER = 2 * _LANES_OF_ALL
"""Real transforms that are taken together, half of them as imaginary parts of the others."""
_RADICES = (4, 2, 3, 5, 7)


class Line(NamedTuple):
    """Plan of a transform of `length` complex numbers, pass by pass."""

    length: int
    radices: np.ndarray
    twiddles: np.ndarray  # real and imaginary parts, in the order in which they are used


def can_transform(length):
    """True if there are transforms of so many numbers."""
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


class _Complex:
    """A vector of complex numbers in code that is written."""

    def __init__(self, builder, real, imaginary):
        self.builder, self.real, self.imaginary = builder, real, imaginary

    def __add__(self, other):
        return self._joined(self.builder.fadd, self.builder.fadd, other.real, other.imaginary)

    def __sub__(self, other):
        return self._joined(self.builder.fsub, self.builder.fsub, other.real, other.imaginary)

    def plus_turned(self, other):
        """self + i · other, without a negation."""
        return self._joined(self.builder.fsub, self.builder.fadd, other.imaginary, other.real)

    def minus_turned(self, other):
        """self − i · other, without a negation."""
        return self._joined(self.builder.fadd, self.builder.fsub, other.imaginary, other.real)

    def _joined(self, first, second, real, imaginary):
        one, other = first(self.real, real, flags=CONTRACT), second(self.imaginary, imaginary, flags=CONTRACT)
        return _Complex(self.builder, one, other)

    def __mul__(self, factor):
        """Times a vector of real numbers."""
        return _Complex(
            self.builder, *(self.builder.fmul(x, factor, flags=CONTRACT) for x in (self.real, self.imaginary))
        )


def _complex_at(samples, at, width):
    return _Complex(samples.builder, samples.vector(at, width), samples.vector(at + width, width))


def _put(samples, at, value):
    samples.put(at, value.real)
    samples.put(at + value.real.type.count, value.imaginary)


@writes()
def _butterfly(builder, width, radix, x, start, step, y, out, out_step, twiddles, place):
    """The transform of so many complex numbers as `radix` is long from x to y, all but the first multiplied by twiddles."""
    given = [_complex_at(x, start + step * k, width) for k in range(radix.bit_length() - 1)]
    for j, found in enumerate(_small_transform(given, ir.VectorType(x.element, width))):
        if j > 0:
            cosine, sine = (twiddles.spread(place + 2 * (j - 1) + part, width) for part in (0, 1))
            found = (found * cosine).plus_turned(found * sine)
        _put(y, out + out_step * j, found)


def _small_transform(given, vector):
    """Σ_k given[k] exp(2πi jk / n) for all j, of complex vectors."""
    n = len(given)
    if n == 2:
        return [given[0] + given[1], given[0] - given[1]]
    if n == 4:
        even, odd, left, right = given[0] + given[2], given[1] + given[3], given[0] - given[2], given[1] - given[3]
        return [even + odd, left.plus_turned(right), even - odd, left.minus_turned(right)]
    half = n // 2
    sums = [given[k] + given[n - k] for k in range(1, half + 1)]
    differences = [given[k] - given[n - k] for k in range(1, half + 1)]
    found = [reduce(add, sums, given[0])] + [None] * (n - 1)
    for j in range(1, half + 1):
        even, odd = given[0], None
        for k in range(1, half + 1):
            angle = 2 * math.pi * (j * k % n) / n
            cosine, sine = (ir.Constant(vector, [part] * vector.count) for part in (math.cos(angle), math.sin(angle)))
            even, part = even + sums[k - 1] * cosine, differences[k - 1] * sine
            odd = part if odd is None else odd + part
        found[j], found[n - j] = even.plus_turned(odd), even.minus_turned(odd)
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


@writes()
def _add_product(builder, width, spectra, at, real, imaginary, out, where):
    """out[where:] += the complex vector at spectra[at:] times a complex number, in the precision of `out`."""
    vector, given = ir.VectorType(out.element, width), _complex_at(spectra, at, width)
    if spectra.element != out.element:
        given = _Complex(builder, builder.fpext(given.real, vector), builder.fpext(given.imaginary, vector))
    product = (given * broadcast(builder, real, vector)).plus_turned(given * broadcast(builder, imaginary, vector))
    _put(out, where, _complex_at(out, where, width) + product)


@writes()
def _copy(builder, width, source, at, out, where):
    """Copy a complex vector."""
    _put(out, where, _complex_at(source, at, width))


@writes()
def _keep_largest(builder, width, line, at, factors, place, first, signed, best, winner, position):
    """Keep the largest of the numbers at line[at:], times their factors, if it exceeds the best so far.

    The numbers are those of the filters from `first` on: real parts, then imaginary parts. `signed` false compares sizes.
    """
    sums = [(line.vector(at + more, width), factors.vector(place + more, width)) for more in (0, width)]
    ratios = [ratio_of(builder, total, factor, signed) for total, factor in sums]
    order = ir.Constant(ir.VectorType(ir.IntType(32), 2 * width), list(range(2 * width)))
    top, lane = largest_lane(builder, builder.shuffle_vector(*ratios, order))
    with builder.if_then(builder.fcmp_ordered(">", top, best[position])):
        best.put(position, top)
        winner.put(position, builder.trunc(builder.add(first.value, lane), ir.IntType(32)))


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
