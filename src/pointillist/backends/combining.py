"""Inner products and combinations of steps, which are kept for rows of a padded signal (see `sweeps.Region`)."""

import numpy as np

from pointillist.backends.compiling import helper

_REGULAR = 1e-6


@helper()
def join(products, factors, newest):
    """Bring the products up to date when the combined step joins the newest one."""
    held = len(factors)
    joint = np.empty(held)
    for j in range(held):
        joint[j] = 0
        for i in range(held):
            joint[j] += factors[i] * products[i, j]
    own = 0.0
    for j in range(held):
        own += factors[j] * joint[j]
    own += products[newest, newest] + 2 * joint[newest]
    for j in range(held):
        products[newest, j] += joint[j]
        products[j, newest] = products[newest, j]
    products[newest, newest] = own


@helper()
def best_factors(products, slopes, out):
    """Minimise ½ cᵀ H c + gᵀ c for a small H, a little regularised; steps of no length get nothing."""
    count = len(slopes)
    largest = 0.0
    for i in range(count):
        largest = max(largest, products[i, i])
    scales = np.empty(count)
    for i in range(count):
        scales[i] = 1 / np.sqrt(products[i, i]) if products[i, i] > 1e-12 * largest else 0.0
    system = np.empty((count, count))
    factors = np.empty(count)
    for i in range(count):
        for j in range(count):
            system[i, j] = products[i, j] * scales[i] * scales[j]
        system[i, i] = 1 + _REGULAR
        factors[i] = -slopes[i] * scales[i]
    for i in range(count):  # elimination: the system is positive definite, no pivots are needed
        for j in range(i + 1, count):
            ratio = system[j, i] / system[i, i]
            for k in range(i, count):
                system[j, k] -= ratio * system[i, k]
            factors[j] -= ratio * factors[i]
    for i in range(count - 1, -1, -1):
        for k in range(i + 1, count):
            factors[i] -= system[i, k] * factors[k]
        factors[i] /= system[i, i]
        out[i] = factors[i] * scales[i]


@helper()
def dot(nothing, residual, step, region):
    """Σ residual · step over the counted rows; `nothing` is a zero of their type.

    Four sums in a fixed order: a compiler that may reorder sums gives other bits on other days.
    """
    total, length = 0.0, region.counted_length
    for row in region.counted:
        a, b = residual[row : row + length], step[row - region.first : row - region.first + length]
        sums = nothing, nothing, nothing, nothing
        for t in range(0, length - 3, 4):
            sums = (
                sums[0] + a[t] * b[t],
                sums[1] + a[t + 1] * b[t + 1],
                sums[2] + a[t + 2] * b[t + 2],
                sums[3] + a[t + 3] * b[t + 3],
            )
        part = (sums[0] + sums[1]) + (sums[2] + sums[3])
        for t in range(length - length % 4, length):
            part += a[t] * b[t]
        total += part
    return total


@helper()
def weighted_dot(nothing, weights, step, other, region):
    """Σ weights · step · other over the counted rows, as `dot` does."""
    total, length = 0.0, region.counted_length
    for row in region.counted:
        w, start = weights[row : row + length], row - region.first
        a, b = step[start : start + length], other[start : start + length]
        sums = nothing, nothing, nothing, nothing
        for t in range(0, length - 3, 4):
            sums = (
                sums[0] + w[t] * a[t] * b[t],
                sums[1] + w[t + 1] * a[t + 1] * b[t + 1],
                sums[2] + w[t + 2] * a[t + 2] * b[t + 2],
                sums[3] + w[t + 3] * a[t + 3] * b[t + 3],
            )
        part = (sums[0] + sums[1]) + (sums[2] + sums[3])
        for t in range(length - length % 4, length):
            part += w[t] * a[t] * b[t]
        total += part
    return total


@helper()
def combine(total, steps, factors, region):
    """total = Σ factors · steps."""
    for row in region.rows:
        start = row - region.first
        out = total[start : start + region.length]
        for m in range(len(factors)):
            factor, step = factors[m], steps[m, start : start + region.length]
            for t in range(region.length):
                out[t] = factor * step[t] if m == 0 else out[t] + factor * step[t]


@helper()
def take(residual, weights, step, total, region):
    """Add the combined step to the residual, and to the newest step."""
    length = region.length
    for row in region.rows:
        start = row - region.first
        w, left = weights[row : row + length], residual[row : row + length]
        a, out = total[start : start + length], step[start : start + length]
        for t in range(length):
            left[t] += w[t] * a[t]
            out[t] += a[t]
