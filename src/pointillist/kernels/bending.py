"""Second differences of pictures: the gradient of how much they bend."""

import numpy as np

from pointillist.kernels.compiling import kernel, spliced


@kernel
def bend(planes, factors, out):
    """Write multiples of the gradient of half the sum of all squared second differences over the last two axes.

    Those down, those across and twice the mixed ones count, and only such as lie inside the picture, so that a ramp stays
    a ramp up to the border. planes, out: (channels, height, width); factors: (channels,).
    """
    channels, height, width = planes.shape
    for c in range(channels):
        s, factor = planes[c], factors[c]
        for i in range(height):
            inner = i >= 2 and i < height - 2 and width > 4
            if inner:
                _bend_row(s, i, factor, out[c, i])
            for j in range(2 if inner else width):
                out[c, i, j] = factor * _at(s, i, j)
            for j in range(width - 2 if inner else width, width):
                out[c, i, j] = factor * _at(s, i, j)


@spliced
def _bend_row(s, i, factor, out):
    """Write a row, without the two pixels at either end, whose differences are all inside the picture."""
    above, here, below = s[i - 1], s[i], s[i + 1]
    top, bottom = s[i - 2], s[i + 2]
    eight, two, twenty = factor * 8, factor * 2, factor * 20
    # Indices without a sign are never counted from the end, so that the loop becomes vectors.
    for j in range(np.uintp(2), np.uintp(len(here) - 2)):
        west, east, west2, east2 = j - np.uintp(1), j + np.uintp(1), j - np.uintp(2), j + np.uintp(2)
        near = above[j] + below[j] + here[west] + here[east]
        across = above[west] + above[east] + below[west] + below[east]
        far = top[j] + bottom[j] + here[west2] + here[east2]
        out[j] = twenty * here[j] - eight * near + two * across + factor * far


@spliced
def _at(s, i, j):
    """The gradient at one pixel, from the differences that exist there."""
    height, width = s.shape
    total = s[i, j] - s[i, j]  # zero in the precision of the picture
    for m in range(max(i - 1, 1), min(i + 1, height - 2) + 1):
        difference = s[m - 1, j] - 2 * s[m, j] + s[m + 1, j]
        total += -2 * difference if m == i else difference
    for m in range(max(j - 1, 1), min(j + 1, width - 2) + 1):
        difference = s[i, m - 1] - 2 * s[i, m] + s[i, m + 1]
        total += -2 * difference if m == j else difference
    for a in range(max(i - 1, 0), min(i, height - 2) + 1):
        for b in range(max(j - 1, 0), min(j, width - 2) + 1):
            mixed = s[a, b] - s[a + 1, b] - s[a, b + 1] + s[a + 1, b + 1]
            total += 2 * mixed if (a == i) == (b == j) else -2 * mixed
    return total
