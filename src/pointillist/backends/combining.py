"""Inner products and combinations of steps, which are kept for rows of a padded signal (see `sweeps.Region`)."""

from typing import NamedTuple

import numpy as np

from pointillist.backends.compiling import helper, spliced
from pointillist.backends.vectors import dot_runs

MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it."""

_REGULAR = 1e-6
_RUNS_A_PIECE = 8


class Memory(NamedTuple):
    """The last moves and what is computed of them; the last row of `steps` and `moves` is for their combination."""

    steps: np.ndarray  # (MEMORY + 1, span) how x − Dz changed
    moves: np.ndarray  # (MEMORY + 1, n_codes in whole pieces) how the codes changed
    rises: np.ndarray  # (n_codes in whole pieces,) how the penalties rise with each code; zero for codes that are zero
    pieces: np.ndarray  # where the runs of a piece begin, which is summed in the precision of the codes
    runs: np.ndarray  # where the whole runs of a counted row begin
    row: np.ndarray  # (counted_length,) for a weighted row
    factors: np.ndarray  # (MEMORY,) of the best combination
    stale: np.ndarray  # (MEMORY,) whether the products of a step are to be computed
    products: np.ndarray  # (MEMORY, MEMORY) of the steps
    slopes: np.ndarray  # (MEMORY,) of the objective along the moves
    system: np.ndarray  # (MEMORY, MEMORY) for the factors
    scales: np.ndarray  # (MEMORY,) of its rows


def make_memory(span, row_length, n_codes, width, dtype):
    """Make room for steps of `span` samples and moves of `n_codes` codes, to be summed in runs of some width."""
    piece = _RUNS_A_PIECE * width
    n_padded = -(-n_codes // piece) * piece
    return Memory(
        steps=np.zeros((MEMORY + 1, span), dtype),
        moves=np.zeros((MEMORY + 1, n_padded), dtype),
        rises=np.zeros(n_padded, dtype),
        pieces=width * np.arange(_RUNS_A_PIECE),
        runs=width * np.arange(row_length // width),
        row=np.empty(row_length, dtype),
        factors=np.zeros(MEMORY, dtype),
        stale=np.empty(MEMORY, np.bool_),
        products=np.empty((MEMORY, MEMORY)),
        slopes=np.empty(MEMORY),
        system=np.empty((MEMORY, MEMORY)),
        scales=np.empty(MEMORY),
    )


@helper()
def finish(memory, newest, values, penalties, ridge):
    """Complete the newest move, which began as minus the values, and find how the penalties rise with each code."""
    move, rises, nothing = memory.moves[newest], memory.rises, ridge - ridge
    for n in range(len(values)):
        value = values[n]
        move[n] += value
        rise = penalties[n] if value > 0 else -penalties[n]
        rises[n] = rise + ridge * value if value != 0 else nothing


@helper()
def inner(lanes, memory, some, others):
    """Σ some · others over arrays of whole pieces, each of which is summed in their own precision."""
    total, piece = 0.0, len(memory.pieces) << len(lanes)
    for first in range(0, len(some), piece):
        total += dot_runs(lanes, some, first, others, first, memory.pieces)
    return total


@helper()
def any_zeros(values, move):
    """Whether a move is about codes that are zero."""
    count = 0
    for n in range(len(values)):
        count += (values[n] == 0) & (move[n] != 0)
    return count > 0


@helper()
def any_turns(values, move):
    """Whether a move would take codes to zero or beyond."""
    count = 0
    for n in range(len(values)):
        count += (values[n] != 0) & ((values[n] + move[n]) * values[n] <= 0)
    return count > 0


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
def dot(lanes, residual, step, region, memory):
    """Σ residual · step over the counted rows, each of which is summed in their own precision and a fixed order."""
    total = 0.0
    for row in region.counted:
        total += _dot_row(lanes, residual, row, step, row - region.first, memory)
    return total


@helper()
def weighted_dot(lanes, weights, step, other, region, memory):
    """Σ weights · step · other over the counted rows, as `dot` does."""
    total, length, weighted = 0.0, region.counted_length, memory.row
    for row in region.counted:
        start = row - region.first
        w, a = weights[row : row + length], step[start : start + length]
        for t in range(length):
            weighted[t] = w[t] * a[t]
        total += _dot_row(lanes, weighted, 0, other, start, memory)
    return total


@spliced
def _dot_row(lanes, some, first, others, start, memory):
    """Σ some · others over as many samples as a counted row has."""
    total = dot_runs(lanes, some, first, others, start, memory.runs)
    for t in range(len(memory.runs) << len(lanes), len(memory.row)):
        total += some[first + t] * others[start + t]
    return total


@helper()
def combine(memory, region):
    """Put the combination of all steps behind them, and that of all moves behind those; what is not held is zero."""
    moves, factors = memory.moves, memory.factors
    _combine(moves[MEMORY], factors, moves[0], moves[1], moves[2])
    for row in region.rows:
        steps = memory.steps[:, row - region.first : row - region.first + region.length]
        _combine(steps[MEMORY], factors, steps[0], steps[1], steps[2])


@spliced
def _combine(out, factors, first, second, third):
    a, b, c = factors[0], factors[1], factors[2]
    for t in range(len(out)):
        out[t] = a * first[t] + b * second[t] + c * third[t]


@helper()
def take(residual, weights, values, memory, newest, region):
    """Make the combined step: it changes the residual, the values, and the newest of the steps and moves."""
    length = region.length
    for row in region.rows:
        start = row - region.first
        w, left = weights[row : row + length], residual[row : row + length]
        a, out = memory.steps[MEMORY, start : start + length], memory.steps[newest, start : start + length]
        for t in range(length):
            left[t] += w[t] * a[t]
            out[t] += a[t]
    move, out = memory.moves[MEMORY], memory.moves[newest]
    for n in range(len(values)):
        values[n] += move[n]
        out[n] += move[n]
