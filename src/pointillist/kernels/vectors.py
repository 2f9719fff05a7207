"""Vector instructions for short runs of samples and for blocks of filters, built directly in LLVM.

A filter is a list of *runs*: `width` contiguous samples each, zero-padded at the end of a row, found in a signal at
`base + offsets[i]`. Plain loops over such runs defeat the vectoriser (170-390 ns for an 11×11 dot product); one vector load,
multiply and add a run takes 20-30 ns on any CPU, with no compiler on the user's machine. A *block* is `FILTERS_A_BLOCK`
filters, sample by sample side by side: one load of the signal serves all of them, or one load of the filters all positions,
and sums stay in registers. Nothing here knows about geometry.

The width is told by the length of a tuple (`lanes_of`), hence part of its numba type: kernels are specialised and cached on
disk by width and precision alone, whatever the filter size. A padded lane reads past the end of its row and adds zero there,
so signals need `width` spare samples at the end and concurrent writers need footprints that are disjoint including the
padding.
"""

from contextlib import contextmanager
from inspect import signature

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

FILTERS_A_BLOCK = 8
"""Filters that kernels take at once."""
ROWS_AT_ONCE = 6
"""Rows of positions that `correlate_rows` and `correlate_planes` take at once."""
CONTRACT = ("contract",)
"""Products may be added to without being rounded before."""

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def lanes_of(width):
    """The tuple that tells kernels a width, which is a power of two: its length is the power.

    It is as short as that because kernels take it apart, and each part is compiled.
    """
    return (None,) * (width.bit_length() - 1)


def width_of(lanes):
    """The width that a tuple of `lanes_of` tells."""
    return 2 ** len(lanes)


def writes(returns=None):
    """Make an intrinsic of a function that writes code: a decorator.

    The function gets the builder and the arguments of the intrinsic: a tuple of `lanes_of` as its width, arrays as
    `Samples`, integers as `Index`, other tuples as lists, None as itself, and other numbers as values of LLVM. What it
    returns is a number of the precision of the array that `returns` names; without, the intrinsic returns nothing.
    """

    def decorate(write):
        shape = signature(write)
        names = list(shape.parameters)[1:]

        def typed(typingctx, *given):
            result = types.void if returns is None else given[names.index(returns)].dtype

            def codegen(context, builder, sig, args):
                found = write(builder, *(_argument(context, builder, *one) for one in zip(sig.args, args, strict=True)))
                return context.get_dummy_value() if returns is None else found

            return result(*given), codegen

        typed.__name__, typed.__doc__, typed.__signature__ = write.__name__, write.__doc__, shape
        return intrinsic(typed)

    return decorate


def _argument(context, builder, kind, value):
    if isinstance(kind, types.NoneType):
        return None
    if isinstance(kind, types.BaseTuple) and isinstance(kind[0], types.NoneType):
        return 2**kind.count
    if isinstance(kind, types.BaseTuple):
        return [_argument(context, builder, one, builder.extract_value(value, i)) for i, one in enumerate(kind)]
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        return Samples(builder, array.data, Index(builder, builder.extract_value(array.shape, 0)))
    if isinstance(kind, types.Integer):
        return Index(builder, context.cast(builder, value, kind, types.int64))
    return value


class Index:
    """A whole number in code that is written: what is done with it is written, too."""

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    def __add__(self, other):
        return Index(self.builder, self.builder.add(self.value, number(other)))

    def __sub__(self, other):
        return Index(self.builder, self.builder.sub(self.value, number(other)))

    def __mul__(self, other):
        return Index(self.builder, self.builder.mul(self.value, number(other)))

    def __floordiv__(self, other):
        return Index(self.builder, self.builder.sdiv(self.value, number(other)))

    @contextmanager
    def times(self, first=0, step=1):
        """A loop over the numbers from `first` to this one, in steps."""
        with cgutils.for_range_slice(self.builder, number(first), self.value, whole_number(step), _INT64) as (i, _):
            yield Index(self.builder, i)


class Samples:
    """An array in code that is written: numbers and vectors are loaded and stored at an index, aligned to a number only."""

    def __init__(self, builder, data, length):
        self.builder, self.data, self.length = builder, data, length
        self.element = data.type.pointee

    def __getitem__(self, at):
        loaded = self.builder.load(self.builder.gep(self.data, [number(at)]))
        return Index(self.builder, loaded) if self.element == _INT64 else loaded

    def vector(self, at, width):
        """A vector of neighbouring numbers."""
        return self.builder.load(self._address(at, ir.VectorType(self.element, width)), align=size_of(self.element))

    def _address(self, at, vector):
        return self.builder.bitcast(self.builder.gep(self.data, [number(at)]), vector.as_pointer())

    def spread(self, at, width):
        """A vector of one number in all lanes."""
        return broadcast(self.builder, self[at], ir.VectorType(self.element, width))

    def put(self, at, value):
        if isinstance(value.type, ir.VectorType):
            self.builder.store(value, self._address(at, value.type), align=size_of(self.element))
        else:
            self.builder.store(value, self.builder.gep(self.data, [number(at)]))

    def sums(self, width, count):
        """So many vectors to be summed in, of this array's precision."""
        return [Sum(self.builder, ir.VectorType(self.element, width)) for _ in range(count)]


class Sum:
    """A vector to be summed in, zero at first; it ends up in a register."""

    def __init__(self, builder, vector):
        self.builder, self.slot = builder, cgutils.alloca_once(builder, vector)
        self.value = ir.Constant(vector, [0.0] * vector.count)

    @property
    def value(self):
        return self.builder.load(self.slot)

    @value.setter
    def value(self, vector):
        self.builder.store(vector, self.slot)

    def add(self, a, b):
        """Add a product."""
        self.value = multiply_add(self.builder, a, b, self.value)

    def total(self):
        return sum_lanes(self.builder, self.value)


def number(given):
    """A whole number as a value of LLVM."""
    return given.value if isinstance(given, Index) else whole_number(given)


def whole_number(given):
    return ir.Constant(_INT64, given)


def size_of(element):
    return {"double": 8, "float": 4}.get(str(element)) or element.width // 8


def broadcast(builder, scalar, vector):
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_INT32, 0))
    return chosen_lanes(builder, one, [0] * vector.count)


def multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=CONTRACT), c, flags=CONTRACT)


def sum_lanes(builder, vector_value):
    vector = vector_value.type
    suffix = f"v{vector.count}f{8 * size_of(vector.element)}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector.element, [vector.element, vector]), f"llvm.vector.reduce.fadd.{suffix}"
    )
    return builder.call(function, [ir.Constant(vector.element, 0.0), vector_value], fastmath=("reassoc",))


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
    top = builder.extract_element(folded, ir.Constant(_INT32, 0))
    bits = builder.bitcast(builder.fcmp_ordered("==", values, broadcast(builder, top, values.type)), ir.IntType(count))
    return top, builder.zext(builder.cttz(bits, ir.Constant(ir.IntType(1), 0)), _INT64)


def chosen_lanes(builder, values, lanes):
    """Some lanes of a vector, in any order and as often as they are named."""
    mask = ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes))
    return builder.shuffle_vector(values, ir.Constant(values.type, ir.Undefined), mask)


@writes(returns="signal")
def dot_runs(builder, width, signal, base, filters, start, offsets):
    """Σ_i signal[base + offsets[i] :][:width] · filters[start + i·width :][:width], a scalar.

    In place of offsets there can be a number of runs, which follow each other.
    """
    return _dot_runs(builder, width, signal, None, base, filters, start, offsets, None)


@writes(returns="signal")
def dot_changed_runs(builder, width, signal, step, base, filters, start, offsets, weights):
    """Compute `dot_runs` for weights · (signal + step); None are weights of one, and no step."""
    return _dot_runs(builder, width, signal, step, base, filters, start, offsets, weights)


def _dot_runs(builder, width, signal, step, base, filters, start, offsets, weights):
    even, odd = signal.sums(width, 2)
    in_line = isinstance(offsets, Index)
    count = offsets if in_line else offsets.length

    def meet(i, total):
        place = base + (i * width if in_line else offsets[i])
        sample = signal.vector(place, width)
        if step is not None:
            sample = builder.fadd(sample, step.vector(place, width))
        if weights is not None:
            sample = builder.fmul(sample, weights.vector(place, width))
        total.add(sample, filters.vector(start + i * width, width))

    pairs = Index(builder, builder.lshr(count.value, whole_number(1)))
    with pairs.times() as n:
        meet(n * 2, even)
        meet(n * 2 + 1, odd)
    with builder.if_then(builder.trunc(count.value, ir.IntType(1))):
        meet(count - 1, even)
    return sum_lanes(builder, builder.fadd(even.value, odd.value))


@writes()
def add_runs(builder, width, signal, base, filters, start, offsets, scale):
    """signal[base + offsets[i] :][:width] += scale · filters[start + i·width :][:width], in place.

    Filters may be of less precision than the signal, in which all is computed.
    """
    if scale.type != signal.element:
        cast = builder.fpext if size_of(scale.type) < size_of(signal.element) else builder.fptrunc
        scale = cast(scale, signal.element)
    factor = broadcast(builder, scale, ir.VectorType(signal.element, width))
    with offsets.length.times() as i:
        place, run = base + offsets[i], filters.vector(start + i * width, width)
        run = run if run.type == factor.type else builder.fpext(run, factor.type)
        signal.put(place, multiply_add(builder, run, factor, signal.vector(place, width)))


@writes()
def add_products(builder, width, residual, weights, first, second, third, begin, length, out):
    """Add sums over `length` samples from `begin` on: weighted products of each of three steps with all, and the residual.

    `out` is a flat matrix (3, 4), whose last column is for the residual. All is read once.
    """
    sums = [residual.sums(width, m + 2) for m in range(3)]  # the matrix is symmetric
    nothing, lanes = ir.Constant(ir.VectorType(residual.element, width), [0.0] * width), ir.VectorType(_INT64, width)

    def meet(place, inside):
        left, weight = residual.vector(place, width), weights.vector(place, width)
        steps = [step.vector(place, width) for step in (first, second, third)]
        if inside is not None:
            steps = [builder.select(inside, step, nothing) for step in steps]
        for m, step in enumerate(steps):
            weighted = builder.fmul(weight, step)
            for total, other in zip(sums[m], [*steps[: m + 1], left], strict=True):
                total.add(weighted, other)

    whole = length // width
    with whole.times() as i:
        meet(begin + i * width, None)
    left = length - whole * width
    with builder.if_then(builder.icmp_signed(">", left.value, whole_number(0))):
        numbers = ir.Constant(lanes, list(range(width)))
        meet(begin + whole * width, builder.icmp_signed("<", numbers, broadcast(builder, left.value, lanes)))
    for m, row in enumerate(sums):
        for n, total in enumerate(row):
            found = total.total()
            found = found if found.type == out.element else builder.fpext(found, out.element)
            for place in {4 * m + 3} if n > m else {4 * m + n, 4 * n + m}:
                out.put(place, builder.fadd(out[place], found))


@writes()
def correlate_rows(builder, width, signal, base, row_stride, filters, start, offsets, out, out_start):
    """Add the correlation of one filter with `ROWS_AT_ONCE` rows of `width` positions to rows of `out`.

    Row a of the positions begins at base + a·row_stride, its sums at out_start + a·width. The counterpart of
    `correlate_block` for a single filter: each sample is broadcast once for all rows.
    """
    bases = [base + row_stride * a for a in range(ROWS_AT_ONCE)]
    with _rows_of(out, out_start, width) as sums, offsets.length.times() as i:
        tap, offset = filters.spread(start + i, width), offsets[i]
        for total, row in zip(sums, bases, strict=True):
            total.add(signal.vector(row + offset, width), tap)


@writes()
def correlate_planes(builder, width, signal, base, row_stride, taps, start, rows, columns, out, out_start):
    """Add the correlation of one plane of a filter with `ROWS_AT_ONCE` rows of `width` positions, as `correlate_rows` does.

    The plane begins at taps[start] and is stored column by column; it has at least `ROWS_AT_ONCE` rows. These meet
    neighbouring rows of the signal: what is loaded of the signal serves all rows of positions, so that loads which straddle
    two lines of the cache are few.
    """
    last = ROWS_AT_ONCE - 1
    with _rows_of(out, out_start, width) as sums, columns.times() as column:

        def meet(row, members):
            """Multiply a row of the signal with the samples that it meets for some rows of positions."""
            sample, first = signal.vector(base + column + row_stride * row, width), start + column * rows + row
            for a in members:
                sums[a].add(sample, taps.spread(first - a, width))

        for row in range(last):  # not all rows of positions reach the first and the last ones
            meet(row, range(row + 1))
        with rows.times(last) as row:
            meet(row, range(ROWS_AT_ONCE))
        for row in range(last):
            meet(rows + row, range(row + 1, ROWS_AT_ONCE))


@contextmanager
def _rows_of(out, start, width):
    """Sums that begin with rows of an array, and end there."""
    sums = out.sums(width, ROWS_AT_ONCE)
    for a, total in enumerate(sums):
        total.value = out.vector(start + a * width, width)
    yield sums
    for a, total in enumerate(sums):
        out.put(start + a * width, total.value)


@writes()
def correlate_block(builder, width, signal, base, filters, start, offsets, out, out_start, out_stride):
    """Correlations of `FILTERS_A_BLOCK` filters with the signal at `width` neighbouring positions.

    `filters[start + i·block + k]` is sample i of the block's filter k, `offsets[i]` where that sample meets
    the signal; the results go to `out[out_start + k·out_stride :][:width]`. One load of the signal serves
    all filters of the block and the sums stay in registers: a matrix product without the matrix.
    """
    for k, total in enumerate(_block_sums(width, signal, base, filters, start, offsets)):
        out.put(out_start + out_stride * k, total)


@writes()
def best_of_block(
    builder, width, signal, base, filters, start, offsets, factors, stride, first, signed, best, winner, place, floor, near,
    count, n_positions, skipped,
):  # fmt: skip
    """Keep, for `width` neighbouring positions, the largest correlation · factor of a block of filters so far.

    Filter k of the block has the number first + k and the factor `factors[first + k]` or, if there is a `stride`, factors of
    its own at the positions, `factors[(first + k) · stride + place :][:width]`; `signed` false compares sizes.
    `best[place:][:width]` and `winner[place:][:width]` (int32) hold the ratios and the filters' numbers.

    With a `floor`, the codes number · n_positions + position whose ratios exceed it are appended to `near`, as far as there
    is room; the first `skipped` positions are left out. `count` (1,) is how many there were.
    """
    largest, numbers = best.vector(place, width), winner.vector(place, width)
    for k, total in enumerate(_block_sums(width, signal, base, filters, start, offsets)):
        filter_ = first + k
        factor = factors.spread(filter_, width) if stride is None else factors.vector(filter_ * stride + place, width)
        ratio = ratio_of(builder, total, factor, signed)
        if floor is not None:
            above = builder.bitcast(
                builder.fcmp_ordered(">", ratio, broadcast(builder, floor, ratio.type)), ir.IntType(width)
            )
            kept = builder.shl(ir.Constant(above.type, -1), builder.trunc(skipped.value, above.type))
            _append_lanes(builder, builder.and_(above, kept), filter_ * n_positions + place, near, count)
        better = builder.fcmp_ordered(">", ratio, largest)
        largest = builder.select(better, ratio, largest)
        own = broadcast(builder, builder.trunc(filter_.value, _INT32), numbers.type)
        numbers = builder.select(better, own, numbers)
    best.put(place, largest)
    winner.put(place, numbers)


def _block_sums(width, signal, base, filters, start, offsets):
    """The correlations of a block of filters, a vector of neighbouring positions each."""
    sums = signal.sums(width, FILTERS_A_BLOCK)
    with offsets.length.times() as i:
        sample, row = signal.vector(base + offsets[i], width), start + i * FILTERS_A_BLOCK
        for k, total in enumerate(sums):
            total.add(sample, filters.spread(row + k, width))
    return [total.value for total in sums]


def _append_lanes(builder, bits, begin, near, count):
    """Append begin + lane to an array for each lane whose bit is set, as far as there is room, and count them."""
    none = ir.Constant(bits.type, 0)
    with builder.if_then(builder.icmp_unsigned("!=", bits, none), likely=False):
        left = cgutils.alloca_once_value(builder, bits)
        loop, done = builder.append_basic_block("append"), builder.append_basic_block("appended")
        builder.branch(loop)
        builder.position_at_end(loop)
        some, listed = builder.load(left), count[0]
        lane = builder.zext(builder.cttz(some, ir.Constant(ir.IntType(1), 0)), _INT64)
        with builder.if_then(builder.icmp_signed("<", listed.value, near.length.value)):
            near.put(listed, builder.add(begin.value, lane))
        count.put(0, (listed + 1).value)
        rest = builder.and_(some, builder.sub(some, ir.Constant(bits.type, 1)))
        builder.store(rest, left)
        builder.cbranch(builder.icmp_unsigned("!=", rest, none), loop, done)
        builder.position_at_end(done)


@writes()
def best_at_positions(
    builder, width, signal, bases, pairs, start, offsets, factors, at, stride, first, signed, best, winner, places
):
    """Do what `best_of_block` does at half as many scattered positions as a vector has lanes; they begin at `bases`.

    A vector holds two neighbouring samples of all filters of a block (`layout.Pairs`), which meet two of the signal at once.
    The factors at position n begin at `factors[at + n · stride]`; the ratio and the filter's number are kept at `places[n]`.
    """
    both = 2 * FILTERS_A_BLOCK
    sums, corners = signal.sums(both, width // 2), [bases[n] for n in range(width // 2)]
    with offsets.length.times() as i:
        taps, offset = pairs.vector(start + i * both, both), offsets[i]
        for total, base in zip(sums, corners, strict=True):
            two = signal.vector(base + offset, 2)
            total.add(chosen_lanes(builder, two, [0, 1] * FILTERS_A_BLOCK), taps)
    for n, total in enumerate(sums):
        even, odd = (chosen_lanes(builder, total.value, range(one, both, 2)) for one in (0, 1))
        factor = factors.vector(at + stride * n, FILTERS_A_BLOCK)
        top, lane = largest_lane(builder, ratio_of(builder, builder.fadd(even, odd), factor, signed))
        place = places[n]
        before, own = best[place], builder.trunc(builder.add(first.value, lane), _INT32)
        better = builder.fcmp_ordered(">", top, before)  # which nobody foresees: a branch would take longer
        best.put(place, builder.select(better, top, before))
        winner.put(place, builder.select(better, own, winner[place]))
