"""The conditional mean of a Gaussian field at some pixels, given others: one small dense system for each block of pixels.

The covariance of two pixels depends on their difference only and comes as a table of lags. The mean is a plane that the
known pixels determine themselves (universal kriging).
"""

import numpy as np

from pointillist.backends.compiling import allocating_kernel, helper

_TREND = 3  # 1, row, column
_TINY = 1e-30
_FEW = 100  # sources up to which all are used, and judge; what follows is for blocks in holes, which ask for more
_RIM = 2  # rows and columns beside a hole in which known pixels count as its rim
_NEARER = 0.05  # by which the squared distance of a rim pixel is multiplied: the far side of a hole counts, too
_JUDGED, _KEPT = 0.8, 0.4  # of the sources asked for, nearest first: these judge the tables, and these are always used
_LIVELIER = 10.0  # times as large as inside are whitened squares outside of what looks like one field
_FEWEST = 8  # sources in the part that is left out
_CERTAINTY = 5.0  # independent observations that the sources are worth when they judge the tables
_NEGLIGIBLE = 0.01  # of the largest weight: such tables are left out


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
    for b in range(len(blocks)):
        top, bottom, left, right, reach, most, which = blocks[b]
        targets = _listed(wanted, top, bottom, left, right)
        ends = (max(top - reach, 0), min(bottom + reach, height), max(left - reach, 0), min(right + reach, width))
        sources = _nearest(_listed(known, ends[0], ends[1], ends[2], ends[3]), targets, most, known)
        if len(targets) == 0 or len(sources) == 0:
            continue
        shift, part = np.zeros(2, np.int64), texture
        if texture > 0:
            best = _most_alike(planes, known, sources, targets, shifts)
            shift, part = (shifts[best], texture) if best >= 0 else (shift, 0.0)
        frame = (np.mean(sources[:, 0]), np.mean(sources[:, 1]), float(reach + bottom - top))
        mixed = np.zeros((len(targets), len(planes)), tables.dtype)
        total, likeliest = 0.0, -np.inf
        for k in range(-1, len(others)):
            table = tables[which] if k < 0 else others[k]
            lower, trend, values = _whitened(table, planes, sources, nugget, frame, shift, part)
            count = len(sources) if most <= _FEW else _of_one_field(trend, values, int(_KEPT * most))
            judges = len(sources) if most <= _FEW else min(len(sources), int(_JUDGED * most))
            size, likelihood = _likelihood(lower, trend[:judges], values[:judges])
            told = likelihood > likeliest
            if told:
                faded = np.exp(_CERTAINTY * (likeliest - likelihood))
                mixed, total, likeliest = faded * mixed, faded * total, likelihood
            weight = np.exp(_CERTAINTY * (likelihood - likeliest))
            if weight < _NEGLIGIBLE:
                continue
            made = _prediction(table, sources[:count], targets, frame, lower, trend[:count], values[:count])
            mixed, total = mixed + weight * made, total + weight
            if told and deviation.size:
                _deviate(table, units[which] if k < 0 else size, sources[:count], targets, lower, deviation)
        for t in range(len(targets)):
            i, j = targets[t]
            for c in range(len(planes)):
                out[c, i, j] = mixed[t, c] / total
                if part > 0:
                    out[c, i, j] += part * planes[c, i + shift[0], j + shift[1]]


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
def _nearest(sources, targets, most, known):
    """At most so many sources, nearest to a target first; ties go to the first in raster order.

    Sources at the rim of a hole count as nearer than they are: those across it hold the answer where nearer ones behind
    the rim only repeat what the rim says.
    """
    distances = np.empty(len(sources), np.int64)
    for i in range(len(sources)):
        least = 1 << 40
        for k in range(len(targets)):
            down, right = sources[i, 0] - targets[k, 0], sources[i, 1] - targets[k, 1]
            least = min(least, down * down + right * right)
        if most > _FEW and _at_rim(known, sources[i, 0], sources[i, 1]):
            least = int(_NEARER * least)
        distances[i] = least * len(sources) + i
    return sources[np.argsort(distances)[:most]]


@helper()
def _at_rim(known, row, column):
    """Whether a pixel nearby is not known."""
    for i in range(max(row - _RIM, 0), min(row + _RIM + 1, known.shape[0])):
        for j in range(max(column - _RIM, 0), min(column + _RIM + 1, known.shape[1])):
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
def _whitened(table, planes, sources, nugget, frame, shift, texture):
    """The factor of the sources' covariances, and with it whitened: the functions of a plane and the values of all channels.

    The values are p − texture · q, q being p at the shift. The frame is the row and the column in the middle of the
    sources, about which slopes are taken, and the unit of length.
    """
    down, right = shift
    row, column, scale = frame
    n, channels, lag = len(sources), len(planes), len(table) // 2
    kernel = np.empty((n, n), table.dtype)
    for i in range(n):
        for j in range(i + 1):
            kernel[i, j] = table[lag + sources[i, 0] - sources[j, 0], lag + sources[i, 1] - sources[j, 1]]
            kernel[j, i] = kernel[i, j]
        kernel[i, i] += nugget * table[lag, lag]
    lower = np.linalg.cholesky(kernel)
    sides = np.empty((n, _TREND + channels), table.dtype)
    for i in range(n):
        sides[i, 0] = 1
        sides[i, 1] = (sources[i, 0] - row) / scale
        sides[i, 2] = (sources[i, 1] - column) / scale
        for c in range(channels):
            other = planes[c, sources[i, 0] + down, sources[i, 1] + right]
            sides[i, _TREND + c] = planes[c, sources[i, 0], sources[i, 1]] - texture * other
    _forward(lower, sides)
    return lower, np.ascontiguousarray(sides[:, :_TREND]), np.ascontiguousarray(sides[:, _TREND:])


@helper()
def _likelihood(lower, trend, values):
    """The mean square of what a plane leaves of whitened values, and the mean logarithm of their likelihood.

    The likelihood does not depend on the unit of the table.
    """
    n, channels = values.shape
    left = values - trend @ _plane(trend, values)
    size = np.sum(left * left) / (n * channels) + _TINY
    logarithms = 0.0
    for i in range(n):
        logarithms += np.log(lower[i, i])
    return size, -0.5 * np.log(size) - logarithms / n


@helper()
def _of_one_field(trend, values, kept):
    """How many of the sources, nearest first, look like one field: `kept` at least, and all unless farther ones do not.

    Whitened values of one field have one variance. Where they are much larger from some source on, an edge or something
    lively lies out there, which says nothing about a calm hole; the likeliest such place is where the sources end.
    """
    n, channels = values.shape
    if kept + _FEWEST >= n:
        return n
    left = values - trend @ _plane(trend[:kept], values[:kept])
    squares = np.empty(n)
    for i in range(n):
        squares[i] = _TINY
        for c in range(channels):
            squares[i] += left[i, c] * left[i, c]
    total = np.sum(squares)
    best, least = n, n * np.log(total / n)
    within = np.sum(squares[:kept])
    for count in range(kept, n - _FEWEST):
        beyond = total - within
        inner, outer = within / count, beyond / (n - count)
        if outer > _LIVELIER * inner:
            cost = count * np.log(inner) + (n - count) * np.log(outer)
            if cost < least:
                best, least = count, cost
        within += squares[count]
    return best


@helper()
def _plane(trend, values):
    """Coefficients (3, channels) of the plane that fits whitened values best."""
    gram = trend.T @ trend
    # Pixels on one line do not determine the slope across it; it is zero then, since slopes are taken about their middle.
    for i in range(1, _TREND):
        gram[i, i] += 1e-9 * (gram[i, i] + gram[0, 0])
    return np.linalg.solve(gram, trend.T @ values)


@helper()
def _prediction(table, sources, targets, frame, lower, trend, values):
    """The conditional mean (n, channels) of whitened values at the targets (n, 2)."""
    row, column, scale = frame
    plane = _plane(trend, values)
    weights = values - trend @ plane
    _backward(lower, weights)
    made = _across(table, targets, sources) @ weights
    for k in range(len(targets)):
        down, right = (targets[k, 0] - row) / scale, (targets[k, 1] - column) / scale
        for c in range(values.shape[1]):
            made[k, c] += plane[0, c] + down * plane[1, c] + right * plane[2, c]
    return made


@helper()
def _deviate(table, unit, sources, targets, lower, deviation):
    """Write the root of the conditional variance of the targets."""
    lag = len(table) // 2
    across = _across(table, sources, targets)
    _forward(lower, across)
    for k in range(len(targets)):
        unexplained = table[lag, lag]
        for s in range(len(sources)):
            unexplained -= across[s, k] ** 2
        deviation[targets[k, 0], targets[k, 1]] = np.sqrt(max(unexplained, 0.0) * unit)


@helper()
def _across(table, some, others):
    """Covariances (n, m) of some pixels (n, 2) with others (m, 2)."""
    lag = len(table) // 2
    covariances = np.empty((len(some), len(others)), table.dtype)
    for i in range(len(some)):
        for j in range(len(others)):
            covariances[i, j] = table[lag + some[i, 0] - others[j, 0], lag + some[i, 1] - others[j, 1]]
    return covariances


@helper()
def _forward(lower, sides):
    """Solve lower · x = sides in place; sides: (n, m), the first n rows of lower are used."""
    n, m = sides.shape
    for i in range(n):
        for j in range(i):
            factor = lower[i, j]
            for c in range(m):
                sides[i, c] -= factor * sides[j, c]
        for c in range(m):
            sides[i, c] /= lower[i, i]


@helper()
def _backward(lower, sides):
    """Solve lowerᵀ · x = sides in place; sides: (n, m), the first n rows of lower are used."""
    n, m = sides.shape
    for i in range(n - 1, -1, -1):
        for c in range(m):
            sides[i, c] /= lower[i, i]
        for j in range(i):
            factor = lower[i, j]
            for c in range(m):
                sides[j, c] -= factor * sides[i, c]
