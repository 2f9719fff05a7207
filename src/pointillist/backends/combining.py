"""Inner products and combinations of steps, which are kept for rows of a padded signal (see `sweeps.Region`).

Kernels are handed the arrays that they need one by one, and samples are counted without a sign, hence never from the end of
an array: less is compiled for each of them.
"""

from typing import NamedTuple

import numpy as np

from pointillist.backends.compiling import spliced
from pointillist.backends.routines import routine, short_routine
from pointillist.backends.vectors import dot_runs

MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it."""

SLOPES, STALE = 2 * MEMORY, 2 * MEMORY + 1
_SYSTEM, _SCALES, _FACTORS = MEMORY, 2 * MEMORY + 2, 2 * MEMORY + 3
"""Rows of the `table` of a `Memory`."""
_TABLE_ROWS = 2 * MEMORY + 4

_REGULAR = 1e-6
_RUNS_A_PIECE = 8
"""Runs of codes that are summed in their own precision."""


class Memory(NamedTuple):
    """The last moves and what is computed of them; the last row of `steps` and `moves` is for their combination.

    The table holds numbers of each move, and begins with the products of all steps. At `SLOPES` are those of the objective
    along the moves, and at `STALE` is one for a step whose products are to be computed, otherwise zero. The other rows are
    for the factors of the best combination, which are rounded to the precision of the codes.
    """

    steps: np.ndarray  # (MEMORY + 1, span) how x − Dz changed
    moves: np.ndarray  # (MEMORY + 1, n_codes in whole pieces) how the codes changed
    rises: np.ndarray  # (n_codes in whole pieces,) how the penalties rise with each code; zero for codes that are zero
    row: np.ndarray  # (counted_length,) for a weighted row
    table: np.ndarray  # (_TABLE_ROWS, MEMORY)


def make_memory(span, row_length, n_codes, width, dtype):
    """Make room for steps of `span` samples and moves of `n_codes` codes, to be summed in runs of some width."""
    piece = _RUNS_A_PIECE * width
    n_padded = -(-n_codes // piece) * piece
    return Memory(
        steps=np.zeros((MEMORY + 1, span), dtype),
        moves=np.zeros((MEMORY + 1, n_padded), dtype),
        rises=np.zeros(n_padded, dtype),
        row=np.empty(row_length, dtype),
        table=np.zeros((_TABLE_ROWS, MEMORY)),
    )


@routine
def finish(move, rises, values, penalties, ridge):
    """Complete a move, which began as minus the values, and find how the penalties rise with each code."""
    nothing = ridge - ridge
    for n in range(len(values)):
        value = values[n]
        move[n] += value
        rise = penalties[n] if value > 0 else -penalties[n]
        rises[n] = rise + ridge * value if value != 0 else nothing


@routine
def inner(lanes, some, others):
    """Σ some · others over arrays of whole pieces, each of which is summed in their own precision."""
    total = 0.0
    for first in range(0, len(some), _RUNS_A_PIECE << len(lanes)):
        total += dot_runs(lanes, some, first, others, first, _RUNS_A_PIECE)
    return total


@routine
def any_zeros(values, move, begin, end):
    """Whether a move is about codes that are zero, among those from `begin` to `end`."""
    count = 0
    for n in range(np.uintp(begin), np.uintp(end)):
        count += (values[n] == 0) & (move[n] != 0)
    return count > 0


@routine
def any_turns(values, move, begin, end):
    """Whether a move would take codes to zero or beyond, among those from `begin` to `end`."""
    count = 0
    for n in range(np.uintp(begin), np.uintp(end)):
        count += (values[n] != 0) & ((values[n] + move[n]) * values[n] <= 0)
    return count > 0


@short_routine
def join(table, newest, held):
    """Bring the products up to date when the combined step joins the newest one."""
    for j in range(held):
        table[_SCALES, j] = 0
        for i in range(held):
            table[_SCALES, j] += table[_FACTORS, i] * table[i, j]
    own = 0.0
    for j in range(held):
        own += table[_FACTORS, j] * table[_SCALES, j]
    own += table[newest, newest] + 2 * table[_SCALES, newest]
    for j in range(held):
        table[newest, j] += table[_SCALES, j]
        table[j, newest] = table[newest, j]
    table[newest, newest] = own


@short_routine
def find_factors(table, held):
    """Minimise ½ cᵀ H c + gᵀ c for a small H, a little regularised; steps of no length get nothing.

    The slopes g are overwritten.
    """
    largest = 0.0
    for i in range(held):
        if table[i, i] > largest:
            largest = table[i, i]
    for i in range(held):
        table[_SCALES, i] = 1 / np.sqrt(table[i, i]) if table[i, i] > 1e-12 * largest else 0.0
    for i in range(held):
        for j in range(held):
            table[_SYSTEM + i, j] = table[i, j] * table[_SCALES, i] * table[_SCALES, j]
        table[_SYSTEM + i, i] = 1 + _REGULAR
        table[SLOPES, i] *= -table[_SCALES, i]
    for i in range(held):  # elimination: the system is positive definite, no pivots are needed
        for j in range(i + 1, held):
            ratio = table[_SYSTEM + j, i] / table[_SYSTEM + i, i]
            for k in range(i, held):
                table[_SYSTEM + j, k] -= ratio * table[_SYSTEM + i, k]
            table[SLOPES, j] -= ratio * table[SLOPES, i]
    for i in range(held - 1, -1, -1):
        for k in range(i + 1, held):
            table[SLOPES, i] -= table[_SYSTEM + i, k] * table[SLOPES, k]
        table[SLOPES, i] /= table[_SYSTEM + i, i]
        table[_FACTORS, i] = table[SLOPES, i] * table[_SCALES, i]


@routine
def dot(lanes, residual, step, rows, first, length):
    """Σ residual · step over rows of a length, each of which is summed in their own precision and a fixed order."""
    total = 0.0
    for row in rows:
        total += _dot_row(lanes, residual, row, step, row - first, length)
    return total


@routine
def weighted_dot(lanes, weights, step, other, rows, first, weighted):
    """Σ weights · step · other over rows as long as `weighted`, which is overwritten; they are summed as `dot` does."""
    total = 0.0
    for row in rows:
        at, start = np.uintp(row), np.uintp(row - first)
        for t in range(np.uintp(len(weighted))):
            weighted[t] = weights[at + t] * step[start + t]
        total += _dot_row(lanes, weighted, 0, other, row - first, len(weighted))
    return total


@spliced
def _dot_row(lanes, some, first, others, start, length):
    """Σ some · others over so many samples."""
    n_runs = length >> len(lanes)
    total = dot_runs(lanes, some, first, others, start, n_runs)
    for t in range(n_runs << len(lanes), length):
        total += some[first + t] * others[start + t]
    return total


@routine
def combine(steps, moves, table, rows, first, length):
    """Put the combination of all steps behind them, and that of all moves behind those; what is not held is zero."""
    for m in range(MEMORY):  # as they are when all is multiplied by them
        table[_FACTORS, m] = moves.dtype.type(table[_FACTORS, m])
    kind = moves.dtype.type
    a, b, c = kind(table[_FACTORS, 0]), kind(table[_FACTORS, 1]), kind(table[_FACTORS, 2])
    for n in range(np.uintp(moves.shape[1])):
        moves[MEMORY, n] = a * moves[0, n] + b * moves[1, n] + c * moves[2, n]
    for row in rows:
        for t in range(np.uintp(row - first), np.uintp(row - first + length)):
            steps[MEMORY, t] = a * steps[0, t] + b * steps[1, t] + c * steps[2, t]


@routine
def take(residual, weights, values, steps, moves, newest, rows, first, length):
    """Make the combined step: it changes the residual, the values, and the newest of the steps and moves."""
    for row in rows:
        at, start = np.uintp(row), np.uintp(row - first)
        for t in range(np.uintp(length)):
            change = steps[MEMORY, start + t]
            residual[at + t] += weights[at + t] * change
            steps[newest, start + t] += change
    for n in range(np.uintp(len(values))):
        change = moves[MEMORY, n]
        values[n] += change
        moves[newest, n] += change
