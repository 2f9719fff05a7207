"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

While codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual
is linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.
"""

import numpy as np
from numba import njit

from pointillist.backends.layout import SPARE_SAMPLES
from pointillist.backends.vectors import add_runs, add_runs_weighted, dot_runs

MEMORY = 3
"""Moves that are combined: those of the last sweep and the steps before it."""

_REGULAR = 1e-6
_SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def descend(
    layout,
    bases,
    starts,
    curvatures,
    penalties,
    ridge,
    clean,
    weights,
    nonnegative,
    values,
    residual,
    chosen,
    target,
    extra,
    rows,
    length,
):
    """A sweep over the codes `chosen`, then up to `extra` more over those of them that are not zero.

    `residual` is w (x − Dz), flat and padded, kept up to date; `rows` (where they begin) of `length` samples hold all that
    the codes reach of it. `clean` codes meet weights of one only; `ridge` adds ½ ridge z² to the objective. The extra
    sweeps end when the largest move falls below half of `target`. A move is √curvature · |change|, a distance in signal
    space; returns the largest of the first sweep.
    """
    moved = _sweep(
        layout, bases, starts, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, chosen,
        residual, 0, False,
    )  # fmt: skip
    if moved < target or extra == 0:
        return moved
    alive = chosen[values[chosen] != 0]
    first = rows[0]
    steps = np.empty((MEMORY + 1, rows[-1] + length + SPARE_SAMPLES - first), residual.dtype)
    moves = np.empty((MEMORY, len(alive)), residual.dtype)
    for count in range(extra):
        newest = count % MEMORY
        step, move = steps[newest], moves[newest]
        _clear(step, rows, length, first)
        for n in range(len(alive)):
            move[n] = -values[alive[n]]
        again = _sweep(
            layout, bases, starts, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, alive,
            step, first, True,
        )  # fmt: skip
        if again < 0.5 * target:
            break
        for n in range(len(alive)):
            move[n] += values[alive[n]]
        _extrapolate(
            layout, bases, starts, penalties, ridge, weights, values, residual, alive,
            steps, moves, newest, min(count + 1, MEMORY), rows, length,
        )  # fmt: skip
    return moved


@njit(cache=True, nogil=True)
def _sweep(
    layout,
    bases,
    starts,
    curvatures,
    penalties,
    ridge,
    clean,
    weights,
    nonnegative,
    values,
    residual,
    chosen,
    step,
    first,
    recorded,
):
    """One pass of coordinate descent over the codes `chosen` (indices into the other arrays), in that order.

    Where it is `recorded`, `step` takes up how x − Dz changes; it begins at sample `first` of the residual.
    """
    largest = 0.0
    for n in range(len(chosen)):
        i = chosen[n]
        curvature = curvatures[i]
        slope = dot_runs(layout.run_lanes, residual, bases[i], layout.runs, starts[i], layout.run_offsets)
        old = values[i]
        target = old * curvature + slope
        penalty = penalties[i]
        if target > penalty:
            new = (target - penalty) / (curvature + ridge)
        elif target < -penalty and not nonnegative:
            new = (target + penalty) / (curvature + ridge)
        else:
            new = target * 0
        if new == old:
            continue
        change = old - new
        values[i] = new
        if clean[i]:
            add_runs(layout.run_lanes, residual, bases[i], layout.runs, starts[i], layout.run_offsets, change)
        else:
            add_runs_weighted(
                layout.run_lanes, residual, bases[i], layout.runs, starts[i], layout.run_offsets, change, weights
            )
        if recorded:
            add_runs(layout.run_lanes, step, bases[i] - first, layout.runs, starts[i], layout.run_offsets, change)
        moved = change * change * curvature
        if moved > largest:
            largest = moved
    return np.sqrt(largest)


@njit(cache=True, nogil=True)
def _extrapolate(
    layout, bases, starts, penalties, ridge, weights, values, residual, alive, steps, moves, newest, held, rows, length
):
    """Make the best step in the span of the `held` moves, if it lowers the objective; it joins the `newest` move."""
    first = rows[0]
    nothing = ridge * 0
    slopes = np.zeros(held)
    curvatures = np.zeros((held, held))
    for i in range(held):
        _leave_zeros(layout, bases, starts, values, alive, steps[i], moves[i], first)
        slopes[i] = _dot(nothing, residual, steps[i], rows, length, first)
        for n in range(len(alive)):
            value = values[alive[n]]
            slopes[i] += (np.sign(value) * penalties[alive[n]] + ridge * value) * moves[i, n]
        for j in range(i + 1):
            curvatures[i, j] = _weighted_dot(nothing, weights, steps[i], steps[j], rows, length, first)
            if ridge > 0:
                curvatures[i, j] += ridge * np.sum(moves[i] * moves[j])
            curvatures[j, i] = curvatures[i, j]
    factors = np.empty(held, steps.dtype)
    factors[:] = _best_factors(curvatures, slopes)
    total = steps[MEMORY]
    _combine(total, steps, factors, rows, length, first)
    move = np.zeros(len(alive), moves.dtype)
    change = 0.0
    for n in range(len(alive)):
        i = alive[n]
        old = values[i]
        if old == 0:
            continue
        wanted = move[n]
        for m in range(held):
            wanted += factors[m] * moves[m, n]
        new = old + wanted
        if new * old <= 0:  # it stops at zero
            add_runs(layout.run_lanes, total, bases[i] - first, layout.runs, starts[i], layout.run_offsets, new)
            new = old * 0
        move[n] = new - old
        change += penalties[i] * (abs(new) - abs(old)) + 0.5 * ridge * (new * new - old * old)
    change += _dot(nothing, residual, total, rows, length, first)
    change += 0.5 * _weighted_dot(nothing, weights, total, total, rows, length, first)
    if not change < 0:
        return
    for n in range(len(alive)):
        values[alive[n]] += move[n]
        moves[newest, n] += move[n]
    _take(residual, weights, steps[newest], total, rows, length, first)


@njit(cache=True, nogil=True)
def _leave_zeros(layout, bases, starts, values, alive, step, move, first):
    """Take codes that are zero out of a move: they stay there until a sweep says otherwise."""
    for n in range(len(alive)):
        i = alive[n]
        if values[i] == 0 and move[n] != 0:
            add_runs(layout.run_lanes, step, bases[i] - first, layout.runs, starts[i], layout.run_offsets, move[n])
            move[n] = 0


@njit(cache=True, nogil=True)
def _best_factors(curvatures, slopes):
    """Minimise ½ cᵀ H c + gᵀ c for a small H, a little regularised; moves of no length get nothing."""
    count = len(slopes)
    largest = 0.0
    for i in range(count):
        largest = max(largest, curvatures[i, i])
    scales = np.zeros(count)
    for i in range(count):
        if curvatures[i, i] > 1e-12 * largest:
            scales[i] = 1 / np.sqrt(curvatures[i, i])
    system = np.empty((count, count))
    factors = np.empty(count)
    for i in range(count):
        for j in range(count):
            system[i, j] = curvatures[i, j] * scales[i] * scales[j]
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
    return factors * scales


@njit(cache=True, nogil=True)
def _clear(step, rows, length, first):
    for r in range(len(rows)):
        start = rows[r] - first
        for t in range(length):
            step[start + t] = 0


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _dot(nothing, residual, step, rows, length, first):
    total = 0.0
    for r in range(len(rows)):
        a, b = residual[rows[r] : rows[r] + length], step[rows[r] - first : rows[r] - first + length]
        part = nothing
        for t in range(length):
            part += a[t] * b[t]
        total += part
    return total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _weighted_dot(nothing, weights, step, other, rows, length, first):
    total = 0.0
    for r in range(len(rows)):
        w, start = weights[rows[r] : rows[r] + length], rows[r] - first
        a, b = step[start : start + length], other[start : start + length]
        part = nothing
        for t in range(length):
            part += w[t] * a[t] * b[t]
        total += part
    return total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _combine(total, steps, factors, rows, length, first):
    for r in range(len(rows)):
        start = rows[r] - first
        out = total[start : start + length]
        for t in range(length):
            out[t] = 0
        for m in range(len(factors)):
            factor, step = factors[m], steps[m, start : start + length]
            for t in range(length):
                out[t] += factor * step[t]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _take(residual, weights, step, total, rows, length, first):
    """Add a step to the residual and to the newest step."""
    for r in range(len(rows)):
        start = rows[r] - first
        w, a, out = weights[rows[r] : rows[r] + length], total[start : start + length], step[start : start + length]
        left = residual[rows[r] : rows[r] + length]
        for t in range(length):
            left[t] += w[t] * a[t]
            out[t] += a[t]
