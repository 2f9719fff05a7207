"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

While codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual
is linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.
"""

from typing import NamedTuple

import numpy as np

from pointillist.backends.combining import (
    MEMORY,
    any_turns,
    any_zeros,
    combine,
    dot,
    find_factors,
    finish,
    inner,
    join,
    make_memory,
    take,
    weighted_dot,
)
from pointillist.backends.compiling import helper, kernel, spliced
from pointillist.backends.vectors import add_runs, add_runs_weighted, dot_runs, width_of

_AT_ONCE = 64
"""Codes that are looked at together, by vector instructions, for such as are to be treated one by one."""


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

    Sums are taken over the rows `counted`, which hold every sample once. What a circle holds twice is in `twins`, pairs of
    places in a step: adding them up along one axis after the other makes a step of codes without their images whole.
    """

    first: int  # the first sample that is kept of a step, and how many are
    span: int
    rows: np.ndarray
    length: int
    counted: np.ndarray
    counted_length: int
    twins: np.ndarray  # (n_pairs, 2)


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

    `residual` is w (x − Dz), flat and padded, kept up to date. `chosen` are ascending indices into the arrays of codes.
    `clean` codes meet weights of one only; `ridge` adds ½ ridge z² to the objective. The extra sweeps are extrapolated, and
    end when the largest move falls below half of `target`. A move is √curvature · |change|, a distance in signal space;
    returns the largest of the first sweep.
    """
    # Kernels that allocate nothing are compiled in half the time.
    span, width = region.span if extra > 0 else 0, width_of(layout.run_lanes)
    memory = make_memory(span, region.counted_length, len(chosen), width, residual.dtype)
    own, whole = values, len(chosen) == len(values)
    if not whole:  # what lies side by side is gone through in a fraction of the time
        places, own = _places_of(places, chosen), values[chosen]
        curvatures, penalties, clean = curvatures[chosen], penalties[chosen], clean[chosen]
    moved = _descend(
        layout, places, curvatures, penalties, ridge, clean, weights, nonnegative, own, residual, target, extra,
        max_sweeps, region, memory, np.empty_like(chosen),
    )  # fmt: skip
    if not whole:
        values[chosen] = own
    return moved


def _places_of(places, chosen):
    """The places of some of the codes."""
    firsts, counts = places.image_starts[chosen], np.diff(places.image_starts)[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)])
    images = places.images[np.repeat(firsts - starts[:-1], counts) + np.arange(starts[-1])]
    return Places(places.bases[chosen], places.starts[chosen], starts, images)


@kernel
def _descend(
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
    target,
    extra,
    max_sweeps,
    region,
    memory,
    alive,
):
    count, first_move, n_codes = 0, 0.0, len(values)
    for turn in range(max_sweeps):
        for n in range(n_codes):
            alive[n] = n
        moved = _sweep(
            layout, places, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, alive,
            residual[:0], region.first,
        )  # fmt: skip
        if turn == 0:
            first_move = moved
        if moved < target:
            break
        n_alive = 0
        for n in range(n_codes):
            alive[n_alive] = n
            n_alive += values[n] != 0
        for _ in range(extra):
            newest = count % MEMORY
            step, move = memory.steps[newest], memory.moves[newest]
            for row in region.rows:
                for t in range(row - region.first, row - region.first + region.length):
                    step[t] = 0
            for n in range(n_codes):
                move[n] = -values[n]
            again = _sweep(
                layout, places, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual,
                alive[:n_alive], step, region.first,
            )  # fmt: skip
            for p in range(len(region.twins)):
                one, other = region.twins[p, 0], region.twins[p, 1]
                step[one] += step[other]
                step[other] = step[one]
            if again < 0.5 * target:
                break
            count += 1
            _extrapolate(
                layout, places, penalties, ridge, weights, values, residual, region, memory, newest, min(count, MEMORY)
            )
    return first_move


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

    Unless it is empty, `step` takes up how x − Dz changes by the codes without their images; it begins at sample `first` of
    the residual.
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
        size = (target if nonnegative else abs(target)) - penalties[i]
        # No branches by signs, which no processor foretells.
        new = (size if target > 0 else -size) / (curvature + ridge) if size > 0 else target * 0
        if new == old:
            continue
        change = old - new
        values[i] = new
        if clean[i]:
            _add(layout, places, i, residual, 0, change)
        else:
            _add_weighted(layout, places, i, residual, weights, change)
        if recorded:
            add_runs(layout.run_lanes, step, bases[i] - first, layout.runs, starts[i], layout.run_offsets, change)
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
def _extrapolate(layout, places, penalties, ridge, weights, values, residual, region, memory, newest, held):
    """Make the best step in the span of the `held` moves, if it lowers the objective; it joins the `newest` move."""
    steps, moves, stale, products, lanes = memory.steps, memory.moves, memory.stale, memory.products, layout.run_lanes
    finish(memory, newest, values, penalties, ridge)
    stale[newest] = True
    for m in range(held):
        if _leave_zeros(layout, places, values, steps[m], moves[m], region.first):
            stale[m] = True
        memory.slopes[m] = dot(lanes, residual, steps[m], region, memory) + inner(lanes, memory, memory.rises, moves[m])
    for m in range(held):
        for n in range(m + 1):
            if stale[m] or stale[n]:
                product = weighted_dot(lanes, weights, steps[m], steps[n], region, memory)
                if ridge > 0:
                    product += ridge * inner(lanes, memory, moves[m], moves[n])
                products[m, n] = product
                products[n, m] = product
    for m in range(held):
        stale[m] = False
    find_factors(memory, held)
    combine(memory, region)
    step, move = steps[MEMORY], moves[MEMORY]
    if _clip(layout, places, values, step, move, region.first):
        change = inner(lanes, memory, memory.rises, move) + 0.5 * ridge * inner(lanes, memory, move, move)
        change += dot(lanes, residual, step, region, memory)
        change += 0.5 * weighted_dot(lanes, weights, step, step, region, memory)
        if not change < 0:
            return
        stale[newest] = True
    else:
        join(memory, newest, held)
    take(residual, weights, values, memory, newest, region)


@helper()
def _clip(layout, places, values, step, move, first):
    """Let codes that would change their sign stop at zero; returns whether there were any."""
    clipped = False
    for begin in range(0, len(values), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(values))
        if any_turns(values[begin:end], move[begin:end]):
            clipped = True
            for n in range(begin, end):
                if values[n] != 0 and (values[n] + move[n]) * values[n] <= 0:
                    _add(layout, places, n, step, first, values[n] + move[n])
                    move[n] = -values[n]
    return clipped


@helper()
def _leave_zeros(layout, places, values, step, move, first):
    """Take codes that are zero out of a move: they stay there until a sweep says otherwise. Returns whether any were."""
    any_left = False
    for begin in range(0, len(values), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(values))
        if any_zeros(values[begin:end], move[begin:end]):
            any_left = True
            for n in range(begin, end):
                if values[n] == 0 and move[n] != 0:
                    _add(layout, places, n, step, first, move[n])
                    move[n] = 0
    return any_left
