"""The conditional mean of a Gaussian field at some pixels, given others: one small dense system for each block of pixels.

The covariance of two pixels depends on their difference only and comes as a table of lags. The mean is a plane that the
known pixels determine themselves (universal kriging).
"""

import numpy as np

from pointillist.backends.compiling import allocating_kernel, helper

_TREND = 3  # 1, row, column
_PANEL = 4  # columns that are eliminated together
_TINY = 1e-30


@allocating_kernel
def fill_blocks(planes, known, wanted, blocks, tables, units, others, nugget, shifts, texture, out, deviation):
    """Write the conditional mean of the wanted pixels of some blocks to `out`, given the known pixels around them.

    A block has a table of its own, and takes one of the others instead where the known pixels are likelier under that: the
    surroundings may be livelier than the block.

    A mean is calmer than a picture. A share `texture` of what it lacks is what the same prediction misses where it is known,
    at one of the shifts: that where the picture looks most like the known pixels around the block.

    planes: (channels, height, width) float64; known, wanted: (height, width) bool; blocks: (n, 7) int rows of top, bottom,
    left, right, reach (how far around the block known pixels are looked for), most (how many of them are used at most, the
    nearest first) and the number of the block's table. tables, others: (m, 2 lag + 1, 2 lag + 1) float64 covariances by lag,
    where lag is at least the block's side plus twice the reach, less one; units: (m,) what tables are to be multiplied by
    to be variances of the planes. shifts: (s, 2) int. out: like planes. deviation: (height, width) float64, the root of the
    conditional variance if the plane were known; an empty array leaves it out.
    """
    height, width = known.shape
    channels, widest = len(planes), _widest(blocks)
    # Of two systems the better one is kept while the other is written over by the next.
    systems = np.empty((2, widest + _TREND + channels, widest), tables.dtype)
    panel = np.empty((_PANEL, widest), tables.dtype)
    plane, another = np.empty((channels, _TREND)), np.empty((channels, _TREND))
    for b in range(len(blocks)):
        top, bottom, left, right, reach, most, which = blocks[b]
        targets = _listed(wanted, top, bottom, left, right)
        ends = (max(top - reach, 0), min(bottom + reach, height), max(left - reach, 0), min(right + reach, width))
        sources = _nearest(_listed(known, ends[0], ends[1], ends[2], ends[3]), targets, most)
        if len(targets) == 0 or len(sources) == 0:
            continue
        shift, part = np.zeros(2, np.int64), texture
        if texture > 0:
            best = _most_alike(planes, known, sources, targets, shifts)
            shift, part = (shifts[best], texture) if best >= 0 else (shift, 0.0)
        scale = float(reach + bottom - top)
        table, unit, kept = tables[which], units[which], 0
        _, likelihood = _whiten(table, planes, sources, nugget, scale, shift, part, systems[0], panel, plane)
        for k in range(len(others)):
            spare = systems[1 - kept]
            size, other = _whiten(others[k], planes, sources, nugget, scale, shift, part, spare, panel, another)
            if other > likelihood:
                table, unit, kept, likelihood = others[k], size, 1 - kept, other
                plane[:] = another
        _predict(table, unit, planes, sources, targets, scale, shift, part, systems[kept], plane, out, deviation)


@helper()
def _widest(blocks):
    """The most sources that a block can have."""
    widest = 0
    for b in range(len(blocks)):
        top, bottom, left, right, reach, most, _ = blocks[b]
        widest = max(widest, min(most, (bottom - top + 2 * reach) * (right - left + 2 * reach)))
    return widest


@helper()
def _listed(mask, top, bottom, left, right):
    """Rows and columns (n, 2) of the true pixels of a box."""
    count = 0
    for i in range(top, bottom):
        for j in range(left, right):
            count += mask[i, j]
    found = np.empty((count, 2), np.int64)
    count = 0
    for i in range(top, bottom):
        for j in range(left, right):
            if mask[i, j]:
                found[count, 0], found[count, 1] = i, j
                count += 1
    return found


@helper()
def _nearest(sources, targets, most):
    """Choose at most so many sources, those nearest to a target; ties go to the first in raster order."""
    if len(sources) <= most or len(targets) == 0:
        return sources
    distances = np.empty(len(sources), np.int64)
    largest = 0
    for i in range(len(sources)):
        least = 1 << 40
        for k in range(len(targets)):
            down, right = sources[i, 0] - targets[k, 0], sources[i, 1] - targets[k, 1]
            least = min(least, down * down + right * right)
        distances[i] = least
        largest = max(largest, least)
    counts = np.zeros(largest + 1, np.int64)
    for i in range(len(sources)):
        counts[distances[i]] += 1
    last, left = 0, most
    while counts[last] < left:
        left -= counts[last]
        last += 1
    chosen = np.empty((most, 2), np.int64)
    count = 0
    for i in range(len(sources)):
        if distances[i] < last or (distances[i] == last and left > 0):
            left -= distances[i] == last
            chosen[count] = sources[i]
            count += 1
    return chosen


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
def _whiten(table, planes, sources, nugget, scale, shift, texture, system, panel, plane):
    """Write the factor of the sources' covariances and, whitened by it, the trend and the values as its further rows.

    The values are p − texture · q, q being p at the shift. system: (at least n + 3 + channels, at least n) array that gets
    n rows of the factor, three rows of the functions of a plane, and a row of values for each channel less their plane;
    panel: scratch; plane: (channels, 3) gets the coefficients. Returns the mean square of the whitened values that are
    left, and the mean logarithm of their likelihood, whatever the unit of the table.
    """
    down, right = shift
    n, channels = len(sources), len(planes)
    _covariances(table, sources, nugget, system)
    row, column = np.mean(sources[:, 0]), np.mean(sources[:, 1])
    for j in range(n):
        system[n, j] = 1
        system[n + 1, j] = (sources[j, 0] - row) / scale
        system[n + 2, j] = (sources[j, 1] - column) / scale
    for c in range(channels):
        for j in range(n):
            other = planes[c, sources[j, 0] + down, sources[j, 1] + right]
            system[n + _TREND + c, j] = planes[c, sources[j, 0], sources[j, 1]] - texture * other
    _factorise(system, n, n + _TREND + channels, panel)
    _fit_plane(system, n, plane)
    squares, logarithms = 0.0, 0.0
    for c in range(channels):
        squares += _product(system[n + _TREND + c], system[n + _TREND + c], n)
    for i in range(n):
        logarithms += np.log(system[i, i])
    size = squares / (n * channels) + _TINY
    return size, -0.5 * np.log(size) - logarithms / n


@helper()
def _covariances(table, sources, nugget, system):
    """Fill the lower triangle of a system with the covariances of the sources (n, 2)."""
    lag, side = len(table) // 2, table.shape[1]
    flat = table.ravel()  # a view: tables are contiguous
    middle = lag * side + lag
    for i in range(len(sources)):
        here = middle + sources[i, 0] * side + sources[i, 1]
        for j in range(i + 1):
            system[i, j] = flat[here - sources[j, 0] * side - sources[j, 1]]
        system[i, i] += nugget * table[lag, lag]


@helper(fastmath={"contract"})
def _factorise(system, n, rows, panel):
    """Cholesky's factor of the first n rows in place, lower triangle; the rows that follow are solved for with it.

    Columns are eliminated four at a time, so that each number behind them is read and written once for the four.
    """
    for k in range(0, n - n % _PANEL, _PANEL):
        end = k + _PANEL
        _eliminate(system, k, end, end)
        ba, ca, cb = system[k + 1, k], system[k + 2, k], system[k + 2, k + 1]
        da, db, dc = system[k + 3, k], system[k + 3, k + 1], system[k + 3, k + 2]
        ra, rb, rc, rd = 1 / system[k, k], 1 / system[k + 1, k + 1], 1 / system[k + 2, k + 2], 1 / system[k + 3, k + 3]
        for i in range(np.uintp(end), np.uintp(rows)):
            a = system[i, k] * ra
            b = (system[i, k + 1] - a * ba) * rb
            c = (system[i, k + 2] - a * ca - b * cb) * rc
            d = (system[i, k + 3] - a * da - b * db - c * dc) * rd
            system[i, k], system[i, k + 1], system[i, k + 2], system[i, k + 3] = a, b, c, d
            if i < n:
                panel[0, i], panel[1, i], panel[2, i], panel[3, i] = a, b, c, d
            # Indices without a sign are never counted from the end, so that the loop becomes vectors.
            for j in range(np.uintp(end), np.uintp(min(i + 1, n))):
                system[i, j] -= a * panel[0, j] + b * panel[1, j] + c * panel[2, j] + d * panel[3, j]
    _eliminate(system, n - n % _PANEL, n, rows)


@helper()
def _eliminate(system, first, last, rows):
    """Factorise some columns in place, of the rows from the first column's on."""
    for j in range(first, last):
        for m in range(first, j):
            for i in range(j, rows):
                system[i, j] -= system[i, m] * system[j, m]
        root = np.sqrt(max(system[j, j], _TINY))
        system[j, j] = root
        for i in range(j + 1, rows):
            system[i, j] /= root


@helper(fastmath={"contract", "reassoc"})
def _product(x, y, n):
    """Sum of the products of the first n numbers of two arrays."""
    total = 0.0
    for i in range(np.uintp(n)):
        total += x[i] * y[i]
    return total


@helper()
def _fit_plane(system, n, plane):
    """Fit a plane to the whitened values of each channel, and take it off them; plane: (channels, 3)."""
    gram = np.empty((_TREND + len(plane), _TREND))
    for i in range(len(gram)):
        for j in range(min(i + 1, _TREND)):
            gram[i, j] = _product(system[n + i], system[n + j], n)
    # Pixels on one line do not determine the slope across it; it is zero then, since slopes are taken about their middle.
    for i in range(1, _TREND):
        gram[i, i] += 1e-9 * (gram[i, i] + gram[0, 0])
    _factorise(gram, _TREND, len(gram), gram)
    for c in range(len(plane)):
        plane[c] = gram[_TREND + c]
        _backward(gram, plane[c], _TREND)
        values = system[n + _TREND + c]
        for t in range(_TREND):
            for i in range(np.uintp(n)):
                values[i] -= plane[c, t] * system[n + t, i]


@helper()
def _predict(table, unit, planes, sources, targets, scale, shift, texture, system, plane, out, deviation):
    """Fill in the targets (n, 2) of one block; `scale` is the unit of length of the plane.

    The prediction is linear: that of p − texture · q at the targets, plus texture · q there. The values in the system
    become the weights of the sources.
    """
    down, right = shift
    n, channels, lag = len(sources), len(planes), len(table) // 2
    row, column = np.mean(sources[:, 0]), np.mean(sources[:, 1])
    across = np.empty((len(targets), n), table.dtype)
    for k in range(len(targets)):
        for s in range(n):
            across[k, s] = table[targets[k, 0] + lag - sources[s, 0], targets[k, 1] + lag - sources[s, 1]]
    for c in range(channels):
        weights = system[n + _TREND + c]
        _backward(system, weights, n)
        for k in range(len(targets)):
            i, j = targets[k, 0], targets[k, 1]
            value = plane[c, 0] + (i - row) / scale * plane[c, 1] + (j - column) / scale * plane[c, 2]
            value += _product(across[k], weights, n)
            out[c, i, j] = value + (texture * planes[c, i + down, j + right] if texture > 0 else 0.0)
    if deviation.size:
        for k in range(len(targets)):
            _forward(system, across[k], n)
            unexplained = table[lag, lag] - _product(across[k], across[k], n)
            deviation[targets[k, 0], targets[k, 1]] = np.sqrt(max(unexplained, 0.0) * unit)


@helper(fastmath={"contract", "reassoc"})
def _forward(lower, side, n):
    """Solve lower · x = side in place; side: (at least n,)."""
    for i in range(np.uintp(n)):
        total = 0.0
        for j in range(i):
            total += lower[i, j] * side[j]
        side[i] = (side[i] - total) / lower[i, i]


@helper(fastmath={"contract"})
def _backward(lower, side, n):
    """Solve lowerᵀ · x = side in place; side: (at least n,)."""
    for i in range(n - 1, -1, -1):
        side[i] /= lower[i, i]
        factor = side[i]
        for j in range(np.uintp(i)):
            side[j] -= factor * lower[i, j]
