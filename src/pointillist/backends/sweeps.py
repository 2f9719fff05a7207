"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

While codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual
is linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.
"""

from typing import NamedTuple

import numpy as np

from pointillist.backends.bundles import count_bundled, update_bundle, with_own_room
from pointillist.backends.combining import (
    MEMORY,
    SLOPES,
    STALE,
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
from pointillist.backends.compiling import kernel, spliced
from pointillist.backends.lanes import width_of
from pointillist.backends.routines import routine, short_routine
from pointillist.backends.updates import Boxes, add_code, update_code

_AT_ONCE = 64
"""Codes that are looked at together, by vector instructions, for such as are to be treated one by one."""
_COARSE = 0.001
"""A residual before a sweep is compared with that after it if moves of this share of its largest sample are looked for: what
it rounds is much beside small moves, and extrapolation makes more of it."""
_PASSES = 4
"""Passes over a region that take as long as comparing it before a sweep with it after that."""
_RUNS_IN_TURNS = 64
"""Runs of a filter at most for two places to be gone through in turns: both must fit into the fastest cache."""


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
    target,
    extra,
    max_sweeps,
    region,
    plain,
    bundles=None,
):
    """Sweep over all codes until no move exceeds `target`, with up to `extra` sweeps over the non-zeros between.

    `residual` is w (x − Dz), flat and padded, kept up to date as the `values` are. `clean` codes meet weights of one only,
    and `plain` weights are one or zero everywhere; `ridge` adds ½ ridge z² to the objective. The extra sweeps are
    extrapolated, and end when the largest move falls below half of `target`. A move is √curvature · |change|, a distance in
    signal space; returns the largest of the first sweep. With `bundles`, neighbours in a row are updated together.
    """
    # Kernels that allocate nothing are compiled in half the time.
    span, width = region.span if extra > 0 else 0, width_of(layout.run_lanes)
    memory = make_memory(span, region.counted_length, len(values), width, residual.dtype)
    bundles = None if bundles is None else with_own_room(bundles)
    boxes = Boxes(layout.run_lanes, layout.runs, layout.run_offsets, places.bases, places.starts)
    return _descend(
        boxes, places.circle, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, target, extra,
        max_sweeps, region, memory, np.empty(len(values), np.int64), plain, bundles,
    )  # fmt: skip


@kernel
def _descend(
    boxes,
    circle,
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
    plain,
    bundles,
):
    count, first_move, n_codes = 0, 0.0, len(values)
    compared = plain and target > _COARSE * _largest(residual, region.rows, region.length)
    for turn in range(max_sweeps):
        for n in range(n_codes):
            alive[n] = n
        moved = _sweep(
            boxes, circle, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, alive,
            residual[:0], region.first, bundles,
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
            for n in range(n_codes):
                move[n] = -values[n]
            again = _recorded_sweep(
                boxes, circle, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual,
                alive[:n_alive], step, region, compared, bundles,
            )  # fmt: skip
            if again < 0.5 * target:
                break
            count += 1
            _extrapolate(
                boxes, circle, penalties, ridge, weights, values, residual, region, memory, newest, min(count, MEMORY)
            )
    return first_move


@spliced
def _largest(residual, rows, length):
    """The size of the largest sample of some rows."""
    largest = residual.dtype.type(0)
    for row in rows:
        for t in range(row, row + length):
            largest = max(largest, abs(residual[t]))
    return largest


@spliced
def _recorded_sweep(
    boxes,
    circle,
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
    region,
    compared,
    bundles,
):
    """Make a sweep, and record how it changes x − Dz: by what the codes add to a step, or by what became of the residual.

    The latter where codes are many and residuals can be `compared`: weights must be one or zero (what x − Dz does where
    they are zero is of no interest), and moves must be large beside the rounding of a residual.
    """
    first, length = region.first, region.length
    by_codes = len(chosen) * len(boxes.offsets) << len(boxes.lanes)
    differs = compared and by_codes > _PASSES * len(region.rows) * length
    for row in region.rows:
        at, start = np.uintp(row), np.uintp(row - first)
        if differs:
            for t in range(np.uintp(length)):
                step[start + t] = -residual[at + t]
        else:
            for t in range(np.uintp(length)):
                step[start + t] = 0
    moved = _sweep(
        boxes, circle, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, chosen,
        step[:0] if differs else step, first, bundles,
    )  # fmt: skip
    for row in region.rows:
        at, start = np.uintp(row), np.uintp(row - first)
        if differs:
            for t in range(np.uintp(length)):
                step[start + t] += residual[at + t]
        else:
            for t in range(np.uintp(length)):
                residual[at + t] += weights[at + t] * step[start + t]
    return moved


@routine
def _sweep(
    boxes,
    circle,
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
    bundles,
):
    """One pass of coordinate descent over the codes `chosen` (indices into the other arrays).

    Both halves of them are gone through in turns, code by code, where filters are small: the processor begins with a code
    while the last one is still being written, which is far away. Unless it is empty, `step` takes up how x − Dz changes instead of the
    residual, and begins at its sample `first`.
    """
    largest, n = 0.0, 0
    if bundles is None:  # all else is not even compiled then
        half, in_turns = (len(chosen) + 1) // 2, len(boxes.offsets) <= _RUNS_IN_TURNS
        for t in range(len(chosen)):
            i = chosen[t // 2 + (t % 2) * half] if in_turns else chosen[t]
            moved = update_code(
                boxes,
                circle,
                curvatures,
                penalties,
                ridge,
                clean,
                weights,
                nonnegative,
                values,
                residual,
                i,
                step,
                first,
            )
            if moved > largest:
                largest = moved
        return np.sqrt(largest)
    while n < len(chosen):
        count = count_bundled(boxes.bases, clean, bundles, chosen, n)
        if count == 1:
            moved = update_code(
                boxes, circle, curvatures, penalties, ridge, clean, weights, nonnegative, values, residual, chosen[n],
                step, first,
            )  # fmt: skip
        else:
            moved = update_bundle(
                boxes, circle, curvatures, penalties, ridge, nonnegative, values, residual, chosen[n : n + count], step,
                first, bundles,
            )  # fmt: skip
        if moved > largest:
            largest = moved
        n += count
    return np.sqrt(largest)


@spliced
def _extrapolate(boxes, circle, penalties, ridge, weights, values, residual, region, memory, newest, held):
    """Make the best step in the span of the `held` moves, if it lowers the objective; it joins the `newest` move."""
    steps, moves, rises, table, lanes = memory.steps, memory.moves, memory.rises, memory.table, boxes.lanes
    counted, first, length = region.counted, region.first, region.counted_length
    finish(moves[newest], rises, values, penalties, ridge)
    table[STALE, newest] = 1
    for m in range(held):
        if _leave_zeros(boxes, circle, values, steps[m], moves[m], first):
            table[STALE, m] = 1
        slope = dot(lanes, residual, steps[m], counted, first, length)
        table[SLOPES, m] = slope + inner(lanes, rises, moves[m])
    for m in range(held):
        for n in range(m + 1):
            if table[STALE, m] + table[STALE, n] > 0:
                product = weighted_dot(lanes, weights, steps[m], steps[n], counted, first, memory.row)
                if ridge > 0:
                    product += ridge * inner(lanes, moves[m], moves[n])
                table[m, n] = product
                table[n, m] = product
    for m in range(held):
        table[STALE, m] = 0
    find_factors(table, held)
    combine(steps, moves, table, region.rows, first, region.length)
    step, move = steps[MEMORY], moves[MEMORY]
    if _clip(boxes, circle, values, step, move, first):
        change = inner(lanes, rises, move) + 0.5 * ridge * inner(lanes, move, move)
        change += dot(lanes, residual, step, counted, first, length)
        change += 0.5 * weighted_dot(lanes, weights, step, step, counted, first, memory.row)
        if not change < 0:
            return
        table[STALE, newest] = 1
    else:
        join(table, newest, held)
    take(residual, weights, values, steps, moves, newest, region.rows, first, region.length)


@short_routine
def _clip(boxes, circle, values, step, move, first):
    """Let codes that would change their sign stop at zero; returns whether there were any."""
    clipped = False
    for begin in range(0, len(values), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(values))
        if any_turns(values, move, begin, end):
            clipped = True
            for n in range(begin, end):
                if values[n] != 0 and (values[n] + move[n]) * values[n] <= 0:
                    add_code(boxes, circle, n, step, first, values[n] + move[n])
                    move[n] = -values[n]
    return clipped


@short_routine
def _leave_zeros(boxes, circle, values, step, move, first):
    """Take codes that are zero out of a move: they stay there until a sweep says otherwise. Returns whether any were."""
    any_left = False
    for begin in range(0, len(values), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(values))
        if any_zeros(values, move, begin, end):
            any_left = True
            for n in range(begin, end):
                if values[n] == 0 and move[n] != 0:
                    add_code(boxes, circle, n, step, first, move[n])
                    move[n] = 0
    return any_left
