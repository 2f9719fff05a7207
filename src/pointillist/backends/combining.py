"""Inner products and combinations of steps, which are kept for rows of a padded signal (see `sweeps.Region`)."""

from typing import NamedTuple

import numpy as np

from pointillist.backends.compiling import helper

MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it."""

_REGULAR = 1e-6


class Memory(NamedTuple):
    """The last moves and what is computed of them; the last row of `steps` and `moves` is for their combination."""

    steps: np.ndarray  # (MEMORY + 1, span) how x − Dz changed
    moves: np.ndarray  # (MEMORY + 1, n_codes) how the codes changed
    factors: np.ndarray  # (MEMORY,) of the best combination
    stale: np.ndarray  # (MEMORY,) whether the products of a step are to be computed
    products: np.ndarray  # (MEMORY, MEMORY) of the steps
    slopes: np.ndarray  # (MEMORY,) of the objective along the moves
    system: np.ndarray  # (MEMORY, MEMORY) for the factors
    scales: np.ndarray  # (MEMORY,) of its rows


def make_memory(span, n_codes, dtype):
    """Make room for steps of `span` samples and moves of `n_codes` codes."""
    return Memory(
        steps=np.empty((MEMORY + 1, span), dtype),
        moves=np.empty((MEMORY + 1, n_codes), dtype),
        factors=np.empty(MEMORY, dtype),
        stale=np.empty(MEMORY, np.bool_),
        products=np.empty((MEMORY, MEMORY)),
        slopes=np.empty(MEMORY),
        system=np.empty((MEMORY, MEMORY)),
        scales=np.empty(MEMORY),
    )


@helper()
def join(memory, newest, held):
    """Bring the products up to date when the combined step joins the newest one."""
    products, factors, joint = memory.products, memory.factors, memory.scales
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
def find_factors(memory, held):
    """Minimise ½ cᵀ H c + gᵀ c for a small H, a little regularised; steps of no length get nothing.

    The slopes g are overwritten.
    """
    products, system, scales, right = memory.products, memory.system, memory.scales, memory.slopes
    largest = 0.0
    for i in range(held):
        largest = max(largest, products[i, i])
    for i in range(held):
        scales[i] = 1 / np.sqrt(products[i, i]) if products[i, i] > 1e-12 * largest else 0.0
    for i in range(held):
        for j in range(held):
            system[i, j] = products[i, j] * scales[i] * scales[j]
        system[i, i] = 1 + _REGULAR
        right[i] *= -scales[i]
    for i in range(held):  # elimination: the system is positive definite, no pivots are needed
        for j in range(i + 1, held):
            ratio = system[j, i] / system[i, i]
            for k in range(i, held):
                system[j, k] -= ratio * system[i, k]
            right[j] -= ratio * right[i]
    for i in range(held - 1, -1, -1):
        for k in range(i + 1, held):
            right[i] -= system[i, k] * right[k]
        right[i] /= system[i, i]
        memory.factors[i] = right[i] * scales[i]


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
def combine(memory, region, held):
    """Put the combination of all steps behind them."""
    for row in region.rows:
        start = row - region.first
        out = memory.steps[MEMORY, start : start + region.length]
        for m in range(held):
            factor, step = memory.factors[m], memory.steps[m, start : start + region.length]
            for t in range(region.length):
                out[t] = factor * step[t] if m == 0 else out[t] + factor * step[t]


@helper()
def take(residual, weights, memory, newest, region):
    """Add the combined step to the residual, and to the newest step."""
    length = region.length
    for row in region.rows:
        start = row - region.first
        w, left = weights[row : row + length], residual[row : row + length]
        a, out = memory.steps[MEMORY, start : start + length], memory.steps[newest, start : start + length]
        for t in range(length):
            left[t] += w[t] * a[t]
            out[t] += a[t]
