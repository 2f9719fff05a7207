"""Second differences of pictures: the gradient of how much they bend."""

import numpy as np

from pointillist.kernels.compiling import allocating_kernel


@allocating_kernel
def bend(planes, factors, out):
    """Write multiples of the gradient of half the sum of all squared second differences over the last two axes.

    Those down, those across and twice the mixed ones count, and only such as lie inside the picture, so that a ramp stays
    a ramp up to the border. planes, out: (channels, height, width); factors: (channels,).
    """
    channels, height, width = planes.shape
    # Differences between zeros; over slices loops become vectors.
    down = np.zeros((height + 2, width), planes.dtype)
    across = np.zeros(width + 2, planes.dtype)
    mixed = np.zeros((height + 1, width + 1), planes.dtype)
    for c in range(channels):
        for i in range(height - 1):
            here, below, corner = planes[c, i], planes[c, i + 1], mixed[i + 1, 1:width]
            for j in range(len(corner)):
                corner[j] = 2 * (here[j] - below[j] - here[j + 1] + below[j + 1])
            if i > 0:
                above, middle = planes[c, i - 1], down[i + 1]
                for j in range(len(middle)):
                    middle[j] = above[j] - 2 * here[j] + below[j]
        for i in range(height):
            here, bent, factor, inner = planes[c, i], out[c, i], factors[c], across[2:width]
            for j in range(len(inner)):
                inner[j] = here[j] - 2 * here[j + 1] + here[j + 2]
            above, middle, below, top, bottom = down[i], down[i + 1], down[i + 2], mixed[i], mixed[i + 1]
            for j in range(len(bent)):
                total = above[j] - 2 * middle[j] + below[j] + across[j] - 2 * across[j + 1] + across[j + 2]
                bent[j] = factor * (total + top[j] - top[j + 1] - bottom[j] + bottom[j + 1])
