"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

While codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual
is linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.
"""

from typing import NamedTuple

import numpy as np

from pointillist.backends.combining import best_factors, combine, dot, join, take, weighted_dot
from pointillist.backends.compiling import helper, kernel, spliced
from pointillist.backends.vectors import add_runs, add_runs_weighted, dot_runs

MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it."""


class Places(NamedTuple):
    """Where each code lies.

    A padded circle has some samples twice. A code that reaches such samples has images, which change the others of them:
    those of code i begin at bases[i] + images[m] for m from image_starts[i] to image_starts[i + 1].
    """

    bases: np.ndarray  # where a code's box begins in the padded signal
    starts: np.ndarray  # where its filter begins in the runs
    image_starts: np.ndarray
    images: np.ndarray


class Region(NamedTuple):
    """What some codes reach of a padded signal: rows of `length` samples, with what is before and behind them.

    Sums are taken over the rows `counted`, which hold every sample once.
    """

    first: int  # the first sample that is kept of a step, and how many are
    span: int
    rows: np.ndarray
    length: int
    counted: np.ndarray
    counted_length: int


@kernel
def descend(
    layout,
    places,
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
    max_sweeps,
    region,
):
    """Sweep over the codes `chosen` until no move exceeds `target`, with up to `extra` sweeps over the non-zeros between.

    `residual` is w (x − Dz), flat and padded, kept up to date. `clean` codes meet weights of one only; `ridge` adds
    ½ ridge z² to the objective. The extra sweeps are extrapolated, and end when the largest move falls below half of
    `target`. A move is √curvature · |change|, a distance in signal space; returns the largest of the first sweep.
    """
    steps, moves = np.empty((MEMORY + 1, 0), residual.dtype), np.empty((MEMORY + 1, 0), residual.dtype)
    products, stale = np.empty((MEMORY, MEMORY)), np.empty(MEMORY, np.bool_)
    count, first_move = 0, 0.0
    for turn in range(max_sweeps):
        moved = _sweep(
            layout, places, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, chosen,
            residual[:0], region.first,
        )  # fmt: skip
        if turn == 0:
            first_move = moved
        if moved < target:
            break
        if extra > 0 and steps.shape[1] == 0:
            steps = np.empty((MEMORY + 1, region.span), residual.dtype)
            moves = np.empty((MEMORY + 1, len(chosen)), residual.dtype)
        alive = _nonzero(values, chosen)
        for _ in range(extra):
            newest = count % MEMORY
            _begin(steps[newest], moves[newest], values, chosen, region)
            again = _sweep(
                layout, places, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, alive,
                steps[newest], region.first,
            )  # fmt: skip
            if again < 0.5 * target:
                break
            count += 1
            _extrapolate(
                layout, places, penalties, ridge, weights, values, residual, chosen, region,
                steps, moves, products, stale, newest, min(count, MEMORY),
            )  # fmt: skip
    return first_move


@helper()
def _begin(step, move, values, chosen, region):
    """Begin a step, which a sweep is to take up."""
    for row in region.rows:
        for t in range(row - region.first, row - region.first + region.length):
            step[t] = 0
    for n in range(len(chosen)):
        move[n] = -values[chosen[n]]


@helper()
def _sweep(
    layout,
    places,
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
):
    """One pass of coordinate descent over the codes `chosen` (indices into the other arrays), in that order.

    Unless it is empty, `step` takes up how x − Dz changes; it begins at sample `first` of the residual.
    """
    bases, starts = places.bases, places.starts
    recorded = len(step) > 0
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
            _add(layout, places, i, residual, 0, change)
        else:
            _add_weighted(layout, places, i, residual, weights, change)
        if recorded:
            _add(layout, places, i, step, first, change)
        moved = change * change * curvature
        if moved > largest:
            largest = moved
    return np.sqrt(largest)


@spliced
def _add(layout, places, i, signal, first, change):
    """Add a code's filter to a signal that begins at sample `first`."""
    base, start = places.bases[i] - first, places.starts[i]
    add_runs(layout.run_lanes, signal, base, layout.runs, start, layout.run_offsets, change)
    for m in range(places.image_starts[i], places.image_starts[i + 1]):
        add_runs(layout.run_lanes, signal, base + places.images[m], layout.runs, start, layout.run_offsets, change)


@spliced
def _add_weighted(layout, places, i, signal, weights, change):
    """Add a code's filter to a signal, multiplied by the weights."""
    base, start = places.bases[i], places.starts[i]
    add_runs_weighted(layout.run_lanes, signal, base, layout.runs, start, layout.run_offsets, change, weights)
    for m in range(places.image_starts[i], places.image_starts[i + 1]):
        image = base + places.images[m]
        add_runs_weighted(layout.run_lanes, signal, image, layout.runs, start, layout.run_offsets, change, weights)


@spliced
def _extrapolate(
    layout,
    places,
    penalties,
    ridge,
    weights,
    values,
    residual,
    chosen,
    region,
    steps,
    moves,
    products,
    stale,
    newest,
    held,
):
    """Make the best step in the span of the `held` moves, if it lowers the objective; it joins the `newest` move.

    `products` are those of the steps, up to date but for the `stale` ones; the last of the steps is for what is computed.
    """
    nothing, slopes = ridge - ridge, np.empty(held)
    for n in range(len(chosen)):
        moves[newest, n] += values[chosen[n]]
    stale[newest] = True
    for m in range(held):
        if _leave_zeros(layout, places, values, chosen, steps[m], moves[m], region.first):
            stale[m] = True
        slopes[m] = dot(nothing, residual, steps[m], region)
        for n in range(len(chosen)):
            value = values[chosen[n]]
            signed = penalties[chosen[n]] if value > 0 else -penalties[chosen[n]]  # zeros do not move
            slopes[m] += (signed + ridge * value) * moves[m, n]
    for m in range(held):
        for n in range(m + 1):
            if stale[m] or stale[n]:
                products[m, n] = weighted_dot(nothing, weights, steps[m], steps[n], region)
                if ridge > 0:
                    for i in range(len(chosen)):
                        products[m, n] += ridge * moves[m, i] * moves[n, i]
                products[n, m] = products[m, n]
    for m in range(held):
        stale[m] = False
    factors = np.empty(held, steps.dtype)
    best_factors(products, slopes, factors)
    move = moves[MEMORY]
    clipped = False
    for n in range(len(chosen)):
        old = values[chosen[n]]
        move[n] = 0
        if old != 0:
            for m in range(held):
                move[n] += factors[m] * moves[m, n]
            clipped |= (old + move[n]) * old <= 0
    total = steps[MEMORY]
    combine(total, steps, factors, region)
    if clipped:
        if not _clip(layout, places, penalties, ridge, weights, values, residual, chosen, region, total, move) < 0:
            return
        stale[newest] = True
    else:
        join(products, factors, newest)
    for n in range(len(chosen)):
        values[chosen[n]] += move[n]
        moves[newest, n] += move[n]
    take(residual, weights, steps[newest], total, region)


@helper()
def _clip(layout, places, penalties, ridge, weights, values, residual, chosen, region, total, move):
    """Let codes that would change their sign stop at zero; returns how the objective changes."""
    change = 0.0
    for n in range(len(chosen)):
        i = chosen[n]
        old = values[i]
        if old == 0:
            continue
        new = old + move[n]
        if new * old <= 0:
            _add(layout, places, i, total, region.first, new)
            new = old * 0
            move[n] = -old
        change += penalties[i] * (abs(new) - abs(old)) + 0.5 * ridge * (new * new - old * old)
    change += dot(ridge - ridge, residual, total, region)
    return change + 0.5 * weighted_dot(ridge - ridge, weights, total, total, region)


@helper()
def _leave_zeros(layout, places, values, chosen, step, move, first):
    """Take codes that are zero out of a move: they stay there until a sweep says otherwise. Returns whether any were."""
    any_left = False
    for n in range(len(chosen)):
        if values[chosen[n]] == 0 and move[n] != 0:
            _add(layout, places, chosen[n], step, first, move[n])
            move[n] = 0
            any_left = True
    return any_left


@helper()
def _nonzero(values, chosen):
    """Those of the codes `chosen` that are not zero."""
    alive, count = np.empty(len(chosen), np.int64), 0
    for n in range(len(chosen)):
        if values[chosen[n]] != 0:
            alive[count] = chosen[n]
            count += 1
    return alive[:count]
