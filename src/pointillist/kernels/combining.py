"""Moves of codes and the steps that they make in a signal: their inner products and their best combination.

All of it is done strip by strip, by whichever thread; what is summed over a signal is added up in the order of its strips.
Kernels are handed the arrays that they need one by one, and samples are counted without a sign, hence never from the end of
an array: less is compiled for each of them.
"""

from typing import NamedTuple

import numpy as np

from pointillist.kernels.compiling import routine, spliced
from pointillist.kernels.vectors import add_products, dot_runs

MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it."""
COMBINED = MEMORY
"""The step and the move that are a combination of the others."""

_FACTORS = MEMORY + MEMORY * (MEMORY + 1) // 2
"""Where the factors of the best combination stand: behind the slopes, and the products of steps 0 0, 1 0, 1 1, 2 0, …"""
_APART = 8
"""Numbers between those of two strips: threads that write to one line of the cache wait for each other."""
_REGULAR = 1e-6
_LEAST_DIGITS = 1e-3
"""What may be wrong with a step that is multiplied by the largest factor, beside its length before."""


class Memory(NamedTuple):
    """The last moves and what is computed of them."""

    steps: np.ndarray  # (MEMORY + 1, samples) how x − Dz changed
    moves: np.ndarray  # (MEMORY + 1, n_codes) how the codes changed
    rises: np.ndarray  # (n_codes,) how the penalties rise with each code; zero for codes that are zero
    alive: np.ndarray  # (n_codes,) the codes that were not zero after the last sweep over all, strip by strip
    n_alive: np.ndarray  # (n_strips,) how many
    moved: np.ndarray  # (n_strips,) the square of the largest move of the last sweep
    turned: np.ndarray  # (n_strips,) whether the combined move would take codes beyond zero
    sums: np.ndarray  # (n_strips, at least _FACTORS) slopes of the objective along the moves, and products of steps
    totals: np.ndarray  # (_FACTORS + MEMORY,) their sums over all strips, and the factors of the best combination
    most: float  # the largest factor that leaves a step some digits


def make_memory(steps, n_codes, n_strips):
    """Make room for moves of `n_codes` codes, beside that for steps (MEMORY + 1, samples), which begin at zero."""
    return Memory(
        steps=steps,
        moves=np.zeros((MEMORY + 1, n_codes), steps.dtype),
        rises=np.zeros(n_codes, steps.dtype),
        alive=np.empty(n_codes, np.int64),
        n_alive=np.zeros(n_strips, np.int64),
        moved=np.zeros(n_strips),
        turned=np.zeros(n_strips, bool),
        sums=np.zeros((n_strips, _APART + _FACTORS)),
        totals=np.zeros(_FACTORS + MEMORY),
        most=_LEAST_DIGITS / float(np.finfo(steps.dtype).eps),
    )


@routine
def finish_move(move, rises, values, penalties, ridge, begin, end):
    """Complete a move of some codes, which began as minus the values, and find how the penalties rise with each."""
    nothing = ridge - ridge
    for n in range(np.uintp(begin), np.uintp(end)):
        value = values[n]
        move[n] += value
        rise = penalties[n] if value > 0 else -penalties[n]
        rises[n] = rise + ridge * value if value != 0 else nothing


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


@routine
def measure_strip(lanes, residual, weights, rows, counted, begin, end, ridge, steps, moves, rises, sums):
    """Sum up the slopes of the objective along the moves in a strip, and the products of their steps."""
    sums[:_FACTORS] = 0
    for i in range(len(rows)):
        add_products(lanes, residual, weights, steps[0], steps[1], steps[2], rows[i], counted[i], sums)
    for m in range(MEMORY):
        sums[m] += _dot(lanes, rises, moves[m], begin, end)
        for n in range(m + 1 if ridge > 0 else 0):
            sums[MEMORY + m * (m + 1) // 2 + n] += ridge * _dot(lanes, moves[m], moves[n], begin, end)


@routine
def weigh_strip(lanes, residual, weights, rows, counted, begin, end, ridge, step, move, rises, sums):
    """Sum up what the combined step changes of the objective in a strip."""
    sums[:_FACTORS] = 0
    for i in range(len(rows)):
        add_products(lanes, residual, weights, step, step, step, rows[i], counted[i], sums)
    sums[0] += 0.5 * (sums[MEMORY] + ridge * _dot(lanes, move, move, begin, end)) + _dot(lanes, rises, move, begin, end)


@routine
def _dot(lanes, some, others, begin, end):
    """Σ some · others over the numbers from `begin` to `end`, in their own precision and a fixed order."""
    n_runs = (end - begin) >> len(lanes)
    total = np.float64(dot_runs(lanes, some, begin, others, begin, n_runs))
    for t in range(begin + (n_runs << len(lanes)), end):
        total += some[t] * others[t]
    return total


@routine
def add_up(sums, totals):
    """Add up what was summed in each strip."""
    for k in range(_FACTORS):
        totals[k] = 0
        for s in range(len(sums)):
            totals[k] += sums[s, k]


@routine
def find_factors(totals, held, most):
    """Minimise ½ cᵀ H c + gᵀ c for the products H and slopes g of the moves that are held; those of no length get nothing.

    Each is scaled to a length of one, and the system is a little regularised: it is positive definite, no pivots are needed.
    Where a factor would exceed `most`, only rounding is left in the moves, and nothing is combined.
    """
    own = 1 + _REGULAR
    least = 1e-12 * max(totals[3], totals[5], totals[8])
    p, q, r = _scale(totals[3], least, held > 0), _scale(totals[5], least, held > 1), _scale(totals[8], least, held > 2)
    qp, rp, rq = totals[4] * q * p, totals[6] * r * p, totals[7] * r * q
    a, b, c = -totals[0] * p, -totals[1] * q, -totals[2] * r
    second, mixed = own - qp * qp / own, rq - qp * rp / own
    b -= qp / own * a
    c -= rp / own * a + mixed / second * b
    c /= own - rp * rp / own - mixed * mixed / second
    b = (b - mixed * c) / second
    a = (a - qp * b - rp * c) / own
    a, b, c = a * p, b * q, c * r
    if not abs(a) + abs(b) + abs(c) <= most:
        a, b, c = 0.0, 0.0, 0.0
    totals[_FACTORS], totals[_FACTORS + 1], totals[_FACTORS + 2] = a, b, c


@spliced
def _scale(product, least, is_held):
    """What a step is multiplied with for a length of one."""
    return 1 / np.sqrt(product) if is_held and product > least else 0.0


@routine
def combine_strip(totals, steps, moves, rows, lengths, begin, end):
    """Compute the combination of all moves of a strip's codes, and that of all steps in its rows."""
    kind = moves.dtype.type  # in double precision all would take longer
    a, b, c = kind(totals[_FACTORS]), kind(totals[_FACTORS + 1]), kind(totals[_FACTORS + 2])
    for n in range(np.uintp(begin), np.uintp(end)):
        moves[COMBINED, n] = a * moves[0, n] + b * moves[1, n] + c * moves[2, n]
    for i in range(len(rows)):
        for t in range(np.uintp(rows[i]), np.uintp(rows[i] + lengths[i])):
            steps[COMBINED, t] = a * steps[0, t] + b * steps[1, t] + c * steps[2, t]


@routine
def take_strip(residual, weights, values, steps, moves, newest, rows, lengths, begin, end):
    """Make the combined step in a strip: it changes the residual, the values, and the newest of the steps and moves."""
    for i in range(len(rows)):
        for t in range(np.uintp(rows[i]), np.uintp(rows[i] + lengths[i])):
            change = steps[COMBINED, t]
            residual[t] += weights[t] * change
            steps[newest, t] += change
    for n in range(np.uintp(begin), np.uintp(end)):
        change = moves[COMBINED, n]
        values[n] += change
        moves[newest, n] += change
