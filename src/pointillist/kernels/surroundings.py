"""Pixels around a block that say something about it: the nearest ones, and places that look alike."""

import numpy as np

from pointillist.kernels.compiling import helper

_RIM = 2  # rows and columns beside a hole in which known pixels count as its rim
_NEARER = 0.05  # by which the squared distance of a rim pixel is multiplied: the far side of a hole counts, too


@helper()
def listed(mask, top, bottom, left, right):
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
def _distances(sources, targets):
    """Squared distances (n,) of sources (n, 2) to the target nearest to each."""
    distances = np.empty(len(sources), np.int64)
    rows, columns = targets[:, 0].copy(), targets[:, 1].copy()
    for i in range(len(sources)):
        least = 1 << 40
        # Indices without a sign are never counted from the end, so that the loop becomes vectors.
        for k in range(np.uintp(len(rows))):
            down, right = sources[i, 0] - rows[k], sources[i, 1] - columns[k]
            least = min(least, down * down + right * right)
        distances[i] = least
    return distances


@helper()
def nearest(sources, targets, most):
    """Choose at most so many sources, those nearest to a target; ties go to the first in raster order."""
    if len(sources) <= most:
        return sources
    distances = _distances(sources, targets)
    counts = np.zeros(np.max(distances) + 1, np.int64)
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
def around(sources, targets, most, known):
    """At most so many sources, nearest to a target first; ties go to the first in raster order.

    Sources at the rim of a hole count as nearer than they are: those across it hold the answer where nearer ones behind
    the rim only repeat what the rim says.
    """
    distances = _distances(sources, targets)
    for i in range(len(sources)):
        if _at_rim(known, sources[i, 0], sources[i, 1]):
            distances[i] = int(_NEARER * distances[i])
        distances[i] = distances[i] * len(sources) + i
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
def most_alike(planes, known, sources, targets, shifts):
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
