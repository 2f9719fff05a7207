"""What a sweep does to the codes of a strip: they are visited one by one, and some are treated besides."""

import numpy as np

from pointillist.kernels.bundles import count_bundled, update_bundle
from pointillist.kernels.combining import any_zeros
from pointillist.kernels.compiling import routine, spliced
from pointillist.kernels.updates import add_code, update_code

PLAIN, FORGETTING, RECORDED, COMPARED = 0, 1, 2, 3
"""Ways to sweep: over all codes, as they are or from zero; over the non-zeros, where x − Dz is recorded or compared."""
_AT_ONCE = 64
"""Codes that are looked at together, by vector instructions, for such as are to be treated one by one."""
_RUNS_IN_TURNS = 64
"""Runs of a filter at most for two places to be gone through in turns: both must fit into the fastest cache."""


@spliced
def strips_an_item(offsets):
    """How many strips a thread takes up at once, to sweep over them in turns where filters are small."""
    return 2 if len(offsets) <= _RUNS_IN_TURNS else 1


@routine
def visit_codes(
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
    alive,
    a,
    a_end,
    b,
    b_end,
    step,
    bundles,
):
    """Move the codes alive[a:a_end] and alive[b:b_end] to their minima; returns the largest curvature · change².

    Where filters are small they are gone through in turns: the processor begins with a code while the last one is still
    being written, which is far away. Unless it is empty, `step` takes up how x − Dz changes, and not the residual.
    """
    largest, in_turns = 0.0, strips_an_item(boxes.offsets) > 1
    while a < a_end or b < b_end:
        if a == a_end or (in_turns and b < b_end):
            a, a_end, b, b_end = b, b_end, a, a_end
        count = 1
        if bundles is not None:  # all else is not even compiled otherwise
            count = count_bundled(boxes.bases, clean, bundles, alive[:a_end], a)
            if count > 1:
                moved = update_bundle(
                    boxes, circle, curvatures, penalties, ridge, nonnegative, values, residual, alive[a : a + count],
                    step, bundles,
                )  # fmt: skip
                largest = max(largest, moved)
        if count == 1:
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
                alive[a],
                step,
            )
            largest = max(largest, moved)
        a += count
    return largest


@routine
def prepare_strip(
    way, colour, s, n_colours, values, codes, rows, bounds, lengths, reached, residual, move, step, alive, n_alive
):  # fmt: skip
    """List all codes of a strip, or begin with a move and, in the first colour, with the step that it makes."""
    begin, end = codes[s], codes[s + 1]
    if way <= FORGETTING:
        for n in range(np.uintp(begin), np.uintp(end)):
            alive[n] = n
            if way == FORGETTING:
                values[n] = 0
        n_alive[s] = end - begin
        return
    for n in range(np.uintp(begin), np.uintp(end)):
        move[n] = -values[n]
    if colour > 0:
        return
    for z in range(s, min(s + n_colours, len(reached))):  # what codes of the other colours reach is prepared by now
        if reached[z]:
            for i in range(bounds[z], bounds[z + 1]):
                for t in range(np.uintp(rows[i]), np.uintp(rows[i] + lengths[i])):
                    step[t] = -residual[t] if way == COMPARED else residual[t] * 0


@routine
def list_alive(values, alive, begin, end):
    """List the codes that are not zero; returns how many there are."""
    n = begin
    for i in range(begin, end):
        alive[n] = i
        n += values[i] != 0
    return n - begin


@routine
def leave_zeros(boxes, circle, clean, weights, values, residual, step, move, begin, end):
    """Take codes that are zero out of a move: they stay there until a sweep says otherwise.

    What they did is added to the residual, unless that is empty.
    """
    for first in range(begin, end, _AT_ONCE):
        last = min(first + _AT_ONCE, end)
        if any_zeros(values, move, first, last):
            for n in range(first, last):
                if values[n] == 0 and move[n] != 0:
                    add_code(boxes, circle, False, weights, n, step, move[n])
                    if len(residual) > 0:
                        add_code(boxes, circle, not clean[n], weights, n, residual, -move[n])
                    move[n] = 0


@routine
def clip(boxes, circle, weights, values, step, move, begin, end):
    """Let codes that would change their sign stop at zero."""
    for n in range(begin, end):
        if values[n] != 0 and (values[n] + move[n]) * values[n] <= 0:
            add_code(boxes, circle, False, weights, n, step, values[n] + move[n])
            move[n] = -values[n]
