"""Kriging: the conditional mean of a Gaussian field at some pixels, given others, one small dense system a block of pixels.

The covariance of two pixels depends on their difference only and comes as a table of lags. The mean is a plane that the
known pixels determine themselves (universal kriging). Systems are factorised by vector instructions, right sides on the way.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from pointillist.kernels.compiling import allocating_kernel, helper
from pointillist.kernels.vectors import broadcast, lanes_of, multiply_add, writes


class Tuning(NamedTuple):
    """Choice of the sources of a block, and their say about tables; measured by benchmarks.fills."""

    few: int = 100
    """Sources up to which all are used, and judge; what follows is for blocks in holes, which ask for more."""
    judging: float = 0.8
    """Share of the sources asked for, nearest first, that judge the tables."""
    kept: float = 0.4
    """Share of the sources asked for, nearest first, that are always used."""
    livelier: float = 10.0
    """Times as large as inside that whitened squares are where another field begins."""
    fewest_beyond: int = 8
    """Sources that are left out, at least, where another field begins."""
    certainty: float = 5.0
    """Independent observations that the sources are worth when they judge the tables."""
    negligible: float = 0.01
    """Weight, relative to the largest, below which a table is left out."""
    rim: int = 2
    """Rows and columns beside a hole in which known pixels count as its rim."""
    nearer: float = 0.05
    """Factor of the squared distance of a rim pixel: the far side of a hole counts, too."""


TUNING = Tuning()

_TREND = 3  # 1, row, column
_TINY = 1e-30
_LANES, _PANEL = 8, 4  # numbers of a vector, of which rows have whole ones; rows that are eliminated together
_WIDTH = lanes_of(_LANES)


@allocating_kernel
def fill_blocks(planes, known, wanted, blocks, tables, units, others, nugget, shifts, texture, out, deviation):
    """Write the conditional mean of the wanted pixels of some blocks to `out`, given the known pixels around them.

    A block has a table of its own, and there are others, since its surroundings may be livelier than the block. Each gives
    a prediction, and the answer is their mean, with more weight where the known pixels are likelier.

    A mean is calmer than a picture. A share `texture` of what it lacks is what the same prediction misses where it is known,
    at one of the shifts: that where the picture looks most like the known pixels around the block.

    planes: (channels, height, width) float64; known, wanted: (height, width) bool; blocks: (n, 7) int rows of top, bottom,
    left, right, reach (how far around the block known pixels are looked for), most (how many of them are used at most, the
    nearest first) and the number of the block's table. tables, others: (m, 2 lag + 1, 2 lag + 1) float64 covariances by lag,
    where lag is at least the block's side plus twice the reach, less one; units: (m,) what tables are to be multiplied by
    to be variances of the planes. shifts: (s, 2) int. out: like planes. deviation: (height, width) float64, the root of the
    conditional variance under the likeliest table if the plane were known; an empty array leaves it out.
    """
    height, width = known.shape
    channels, widest = len(planes), np.max(blocks[:, 5])  # sources
    system, places = zeros_for(widest, widest + _TREND + channels, tables.dtype), np.empty(widest, np.int64)
    left, plane = np.empty((channels, widest), tables.dtype), np.empty((channels, _TREND))
    for b in range(len(blocks)):
        top, bottom, first, last, reach, most, which = blocks[b]
        targets = _listed(wanted, top, bottom, first, last)
        ends = (max(top - reach, 0), min(bottom + reach, height), max(first - reach, 0), min(last + reach, width))
        sources = _listed(known, ends[0], ends[1], ends[2], ends[3])
        if len(targets) == 0 or len(sources) == 0:
            continue
        sources = _nearest(sources, targets, most, known)
        shift, part = np.zeros(2, np.int64), texture
        if texture > 0:
            best = _most_alike(planes, known, sources, targets, shifts)
            shift, part = (shifts[best], texture) if best >= 0 else (shift, 0.0)
        frame = (np.mean(sources[:, 0]), np.mean(sources[:, 1]), float(reach + bottom - top))
        mixed, total, likeliest = np.zeros((channels, len(targets))), 0.0, -np.inf
        # Where few are used the likelier of two tables is taken, the block's and the first other.
        certainty, n_others = (TUNING.certainty, len(others)) if most > TUNING.few else (1e6, min(1, len(others)))
        for k in range(-1, n_others):
            table = tables[which] if k < 0 else others[k]
            _whiten(table, planes, sources, nugget, frame, shift, part, system, places)
            count, judges = len(sources), len(sources)
            if most > TUNING.few:
                count = _of_one_field(system, len(sources), int(TUNING.kept * most), left, plane)
                judges = min(len(sources), int(TUNING.judging * most))
            size, likelihood = _likelihood(system, len(sources), judges, left, plane)
            told = likelihood > likeliest
            if told:
                faded = np.exp(certainty * (likeliest - likelihood))
                mixed, total, likeliest = faded * mixed, faded * total, likelihood
            weight = np.exp(certainty * (likelihood - likeliest))
            if weight < TUNING.negligible:
                continue
            if count != judges:
                _take_plane(system, len(sources), count, left, plane)
            across = _across(table, targets, places[:count])
            _predict(across, targets, frame, system, left, plane, weight, mixed)
            total += weight
            if told and deviation.size:
                _deviate(table, units[which] if k < 0 else size, across, targets, system, deviation)
        for t in range(len(targets)):
            i, j = targets[t]
            for c in range(channels):
                out[c, i, j] = mixed[c, t] / total
                if part > 0:
                    out[c, i, j] += part * planes[c, i + shift[0], j + shift[1]]


@helper()
def _whiten(table, planes, sources, nugget, frame, shift, texture, system, places):
    """Write the factor of the sources' covariances and, whitened by it, the trend and the values as further columns.

    The values are p − texture · q, q being p at the shift. The frame is the row and the column in the middle of the
    sources, about which slopes are taken, and the unit of length. system: `room` for n rows, which get n columns of the
    factor, three columns of the functions of a plane, and a column of values for each channel; places: (at least n,) int
    array that gets where each source lies in a picture of the table's width.
    """
    down, right = shift
    row, column, scale = frame
    n, channels, side = len(sources), len(planes), table.shape[1]
    middle, flat = table.size // 2, table.ravel()  # views: tables are contiguous
    for j in range(n):
        places[j] = sources[j, 0] * side + sources[j, 1]
    for i in range(n):
        here, covariances = middle + places[i], system[i]
        # Indices without a sign are never counted from the end, so that the loop becomes vectors.
        for j in range(np.uintp(i - i % _LANES), np.uintp(n)):
            covariances[j] = flat[np.uintp(here - places[j])]
        covariances[i] += nugget * flat[middle]
        system[i, n] = 1
        system[i, n + 1] = (sources[i, 0] - row) / scale
        system[i, n + 2] = (sources[i, 1] - column) / scale
        for c in range(channels):
            other = planes[c, sources[i, 0] + down, sources[i, 1] + right]
            system[i, n + _TREND + c] = planes[c, sources[i, 0], sources[i, 1]] - texture * other
    factorise(system.ravel(), system.shape[1], n, n + _TREND + channels)


@helper(fastmath={"contract", "reassoc"})
def _product(x, y, n):
    """Sum of the products of the first n numbers of two arrays."""
    total = 0.0
    for i in range(np.uintp(n)):
        total += x[i] * y[i]
    return total


@helper()
def _take_plane(system, n, count, left, plane):
    """Fit a plane to the whitened values of the first `count` of n sources, and take it off the values of all.

    plane: (channels, 3) gets the coefficients, left: (channels, at least n) what the plane leaves.
    """
    gram = zeros_for(_TREND, _TREND + len(plane), plane.dtype)
    for i in range(count):
        for j in range(_TREND):
            for k in range(_TREND + len(plane)):
                gram[j, k] += system[i, n + j] * system[i, n + k]
    # Pixels on one line do not determine the slope across it; it is zero then, since slopes are taken about their middle.
    for i in range(1, _TREND):
        gram[i, i] += 1e-9 * (gram[i, i] + gram[0, 0])
    factorise(gram.ravel(), gram.shape[1], _TREND, _TREND + len(plane))
    for c in range(len(plane)):
        for i in range(_TREND):
            plane[c, i] = gram[i, _TREND + c]
        _backward(gram, plane[c], _TREND)
        constant, down, right = plane[c]
        for i in range(n):
            trend = constant * system[i, n] + down * system[i, n + 1] + right * system[i, n + 2]
            left[c, i] = system[i, n + _TREND + c] - trend


@helper()
def _likelihood(system, n, judges, left, plane):
    """The mean square of what a plane leaves of whitened values, and the mean logarithm of their likelihood.

    The first `judges` of n sources are asked. The likelihood does not depend on the unit of the table.
    """
    _take_plane(system, n, judges, left, plane)
    squares, logarithms = 0.0, 0.0
    for c in range(len(left)):
        squares += _product(left[c], left[c], judges)
    for i in range(judges):
        logarithms += np.log(system[i, i])
    size = squares / (judges * len(left)) + _TINY
    return size, -0.5 * np.log(size) - logarithms / judges


@helper()
def _of_one_field(system, n, kept, left, plane):
    """Number of the n sources, nearest first, that look like one field: `kept` at least, and all unless farther ones do not.

    Whitened values of one field have one variance. Where they are much larger from some source on, an edge or something
    lively lies out there, which says nothing about a calm hole; the likeliest such place is where the sources end.
    """
    if kept + TUNING.fewest_beyond >= n:
        return n
    _take_plane(system, n, kept, left, plane)
    squares = np.full(n, _TINY)
    for c in range(len(left)):
        for i in range(n):
            squares[i] += left[c, i] * left[c, i]
    total = np.sum(squares)
    best, least = n, n * np.log(total / n)
    within = np.sum(squares[:kept])
    for count in range(kept, n - TUNING.fewest_beyond):
        beyond = total - within
        inner, outer = within / count, beyond / (n - count)
        if outer > TUNING.livelier * inner:
            cost = count * np.log(inner) + (n - count) * np.log(outer)
            if cost < least:
                best, least = count, cost
        within += squares[count]
    return best


@helper()
def _across(table, targets, places):
    """Covariances (n, m) of targets (n, 2) with sources, given by their places (m,) in a picture of the table's width."""
    side, middle, flat = table.shape[1], table.size // 2, table.ravel()
    covariances = np.empty((len(targets), len(places)), table.dtype)
    for k in range(len(targets)):
        here, row = middle + targets[k, 0] * side + targets[k, 1], covariances[k]
        for s in range(np.uintp(len(places))):
            row[s] = flat[np.uintp(here - places[s])]
    return covariances


@helper()
def _predict(across, targets, frame, system, left, plane, weight, mixed):
    """Add a multiple of the conditional mean at the targets (n, 2) to `mixed` (channels, n).

    What a plane left of the whitened values becomes the weights of the sources.
    """
    row, column, scale = frame
    count = across.shape[1]
    for c in range(len(plane)):
        weights = left[c]
        _backward(system, weights, count)
        for k in range(len(targets)):
            value = (
                plane[c, 0]
                + (targets[k, 0] - row) / scale * plane[c, 1]
                + (targets[k, 1] - column) / scale * plane[c, 2]
            )
            mixed[c, k] += weight * (value + _product(across[k], weights, count))


@helper()
def _deviate(table, unit, across, targets, system, deviation):
    """Write the root of the conditional variance of the targets; `across` is whitened in place."""
    lag, count = len(table) // 2, across.shape[1]
    for k in range(len(targets)):
        _forward(system, across[k], count)
        unexplained = table[lag, lag] - _product(across[k], across[k], count)
        deviation[targets[k, 0], targets[k, 1]] = np.sqrt(max(unexplained, 0.0) * unit)


@helper(fastmath={"contract"})
def _forward(upper, side, n):
    """Solve upperᵀ · x = side in place; side: (at least n,)."""
    for i in range(n):
        side[i] /= upper[i, i]
        factor = side[i]
        for j in range(np.uintp(i + 1), np.uintp(n)):
            side[j] -= factor * upper[i, j]


@helper(fastmath={"contract", "reassoc"})
def _backward(upper, side, n):
    """Solve upper · x = side in place; side: (at least n,)."""
    for i in range(n - 1, -1, -1):
        total = upper[i, i] - upper[i, i]  # zero in the precision of the factor
        # Indices without a sign are never counted from the end, so that the loop becomes vectors.
        for j in range(np.uintp(i + 1), np.uintp(n)):
            total += upper[i, j] * side[j]
        side[i] = (side[i] - total) / upper[i, i]


@helper()
def _listed(mask, top, bottom, left, right):
    """Rows and columns (n, 2) of the true pixels of a box."""
    found, count = np.empty(((bottom - top) * (right - left) + 1, 2), np.int64), 0
    for i in range(top, bottom):
        for j in range(
            left, right
        ):  # without branches, which no processor foretells where pixels are missing at random
            found[count, 0], found[count, 1] = i, j
            count += mask[i, j]
    return found[:count]


@helper()
def _nearest(sources, targets, most, known):
    """At most so many sources, nearest to a target first; ties go to the first in raster order.

    Where many are asked for, sources at the rim of a hole count as nearer than they are: those across it hold the answer
    where nearer ones behind the rim only repeat what the rim says.
    """
    distances = np.empty(len(sources), np.int64)
    rows, columns = targets[:, 0].copy(), targets[:, 1].copy()
    for i in range(len(sources)):
        least = 1 << 40
        # Indices without a sign are never counted from the end, so that the loop becomes vectors.
        for k in range(np.uintp(len(rows))):
            down, right = sources[i, 0] - rows[k], sources[i, 1] - columns[k]
            least = min(least, down * down + right * right)
        if most > TUNING.few and _at_rim(known, sources[i, 0], sources[i, 1]):
            least = int(TUNING.nearer * least)
        distances[i] = least * len(sources) + i
    return sources[np.argsort(distances)[:most]]


@helper()
def _at_rim(known, row, column):
    """True where a pixel nearby is not known."""
    for i in range(max(row - TUNING.rim, 0), min(row + TUNING.rim + 1, known.shape[0])):
        for j in range(max(column - TUNING.rim, 0), min(column + TUNING.rim + 1, known.shape[1])):
            if not known[i, j]:
                return True
    return False


@helper()
def _most_alike(planes, known, sources, targets, shifts):
    """Number of the shift to where all is known and the sources look most alike, but for brightness; −1 for none."""
    best, least = -1, np.inf
    for b in range(len(shifts)):
        down, right = shifts[b]
        if not (_all_known(known, sources, down, right) and _all_known(known, targets, down, right)):
            continue
        apart = 0.0
        for c in range(len(planes)):
            total, squares = 0.0, 0.0
            for s in range(len(sources)):
                i, j = sources[s]
                difference = planes[c, i, j] - planes[c, i + down, j + right]
                total += difference
                squares += difference * difference
            apart += squares - total * total / len(sources)
        if apart < least:
            best, least = b, apart
    return best


@helper()
def _all_known(known, places, down, right):
    height, width = known.shape
    for s in range(len(places)):
        i, j = places[s, 0] + down, places[s, 1] + right
        if i < 0 or i >= height or j < 0 or j >= width or not known[i, j]:
            return False
    return True


@helper()
def zeros_for(n, columns, dtype):
    """Zeros with room for n rows of so many columns, right sides included: `factorise` works on whole vectors and panels."""
    return np.zeros((n + _PANEL, -(-columns // _LANES) * _LANES), dtype)


@helper()
def factorise(flat, stride, n, columns):
    """Replace a symmetric matrix A (n, n) by the upper U with A = Uᵀ U, and the right sides B behind A by U⁻ᵀ B.

    Rows lie `stride` numbers apart; those of the matrix are read from the diagonal on. A few numbers before the diagonal and
    behind the right sides are read and written; what stands there does not matter as long as it is finite.
    """
    one = flat.dtype.type(1)
    for k in range(0, n, _PANEL):
        end, panel = min(k + _PANEL, n), k * stride
        for m in range(k, end):
            # What stands in rows of the panel below this one counts as zero.
            a = flat[panel + m] if m > k else one - one
            b = flat[panel + stride + m] if m > k + 1 else one - one
            c = flat[panel + 2 * stride + m] if m > k + 2 else one - one
            pivot = flat[m * stride + m] - a * a - b * b - c * c
            scale = one / np.sqrt(max(pivot, flat.dtype.type(_TINY)))
            _reduce_rows(_WIDTH, flat, m * stride, k - k % _LANES, columns, panel, stride, ((a, b, c),), scale)
        for i in range(end, n, 2):
            two = _column(flat, panel + i, stride), _column(flat, panel + i + 1, stride)
            _reduce_rows(_WIDTH, flat, i * stride, i - i % _LANES, columns, panel, stride, two, one)


@helper()
def _column(flat, first, stride):
    """A column of a panel."""
    return flat[first], flat[first + stride], flat[first + 2 * stride], flat[first + 3 * stride]


@writes()
def _reduce_rows(builder, width, flat, row, first, last, panel, stride, factors, scale):
    """Take multiples of the rows of a panel from one or more rows, and scale these: for j from first to last

        flat[row + t · stride + j] = scale · (flat[row + t · stride + j] − Σ_m factors[t][m] · flat[panel + m · stride + j])

    `factors` has a tuple for each row t, and j goes on in whole vectors.
    """
    vector = ir.VectorType(flat.element, width)
    scales = broadcast(builder, scale, vector)
    multiples = [[broadcast(builder, builder.fneg(factor), vector) for factor in each] for each in factors]
    with last.times(first, width) as j:
        others = [flat.vector(panel + stride * m + j, width) for m in range(len(multiples[0]))]
        for t, own in enumerate(multiples):
            place = row + stride * t + j
            value = flat.vector(place, width)
            for multiple, other in zip(own, others, strict=True):
                value = multiply_add(builder, multiple, other, value)
            flat.put(place, builder.fmul(value, scales))
