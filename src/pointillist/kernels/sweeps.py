"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

While codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual
is linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.

Threads share all of it strip by strip (`team`): codes of strips of one colour reach no sample in common.
"""

from typing import NamedTuple

import numpy as np

from pointillist.kernels.bundles import with_own_room
from pointillist.kernels.combining import (
    COMBINED,
    MEMORY,
    Memory,
    add_up,
    any_turns,
    combine_strip,
    find_factors,
    finish_move,
    measure_strip,
    take_strip,
    weigh_strip,
)
from pointillist.kernels.compiling import kernel, routine, spliced
from pointillist.kernels.team import (
    ORDERS,
    announce,
    begin,
    end,
    finish_item,
    take_item,
    wait_for_item,
    wait_for_items,
)
from pointillist.kernels.updates import Boxes
from pointillist.kernels.visits import (
    COMPARED,
    FORGETTING,
    PLAIN,
    RECORDED,
    clip,
    leave_zeros,
    list_alive,
    prepare_strip,
    strips_an_item,
    visit_codes,
)

_KIND, _COLOUR, _WAY, _NEWEST, _HELD = ORDERS, ORDERS + 1, ORDERS + 2, ORDERS + 3, ORDERS + 4
"""Where a leader's orders stand."""
_SWEEP, _CLIP, _MEASURE, _COMBINE, _WEIGH, _TAKE = 0, 1, 2, 3, 4, 5
"""Kinds of work. The first two write to samples of the next strips too, and go through strips of one colour at a time."""
_COARSE = 0.001
"""A residual before a sweep is compared with that after it if moves of this share of its largest sample are looked for: what
it rounds is much beside small moves, and extrapolation makes more of it."""
_PASSES = 4
"""Passes over a signal that take as long as comparing it before a sweep with it after that."""
_PATIENCE = 2**17
"""Looks for the end of the last item, some tenth of a millisecond, beside those that it takes by itself."""


class Strips(NamedTuple):
    """A signal in strips along its first axis, whose colours take turns: as many strips of each, or one strip alone.

    What codes of a strip reach is in it or in the next ones of other colours; behind the last strip comes the first.
    """

    n_colours: int
    codes: np.ndarray  # (n_strips + 1,) where the codes of each begin
    bounds: np.ndarray  # (n_strips + 1,) where the rows of each begin
    rows: np.ndarray  # (n_rows,) where each row begins in the signal
    lengths: np.ndarray  # (n_rows,) its samples
    counted: np.ndarray  # (n_rows,) those of them that count: some are held twice
    reached: np.ndarray  # (n_strips,) whether codes reach any


class Codes(NamedTuple):
    """The codes of a working set, strip by strip, and what the descent on each of them needs."""

    values: np.ndarray
    curvatures: np.ndarray
    penalties: np.ndarray
    clean: np.ndarray  # whether a code meets weights of one only


class Effort(NamedTuple):
    """How long to sweep.

    Up to `max_sweeps` sweeps are over all codes, until no move exceeds `target`, with up to `extra` extrapolated ones over
    the non-zeros after each, until the largest move falls below half of it. Then come `plain` sweeps, which each begin at
    zero if they are `forgetting`. A move is √curvature · |change|, a distance in signal space.
    """

    target: float
    extra: int
    max_sweeps: int
    plain: int = 0
    forgetting: bool = False


class _Scene(NamedTuple):
    """What all pieces of work are about; the residual and the weights are flat and padded.

    What may be None is an argument of its own everywhere: what is only for it is not compiled then.
    """

    boxes: Boxes
    codes: Codes
    ridge: float
    nonnegative: bool
    residual: np.ndarray
    weights: np.ndarray
    strips: Strips
    memory: Memory


def can_compare(layout, n_codes, residual, target):
    """Whether comparing residuals tells what a sweep changed, in less time than recording it, where weights are binary."""
    by_codes = n_codes * len(layout.run_offsets) << len(layout.run_lanes)
    largest = max(float(residual.max()), -float(residual.min()))
    return by_codes > _PASSES * len(residual) and target > _COARSE * largest


def useful_threads(layout, strips):
    """How many threads have something to do while the strips of one colour are swept over."""
    step = strips.n_colours * strips_an_item.py_func(layout.run_offsets)
    return -(-len(strips.reached) // step)


def descend(
    rank, n_threads, team, layout, places, codes, ridge, nonnegative, residual, weights, compared, strips, memory, effort,
    bundles=None,
):  # fmt: skip
    """Lead a descent on codes, as the thread of rank zero, or help with it.

    `residual` is w (x − Dz), flat and padded, kept up to date as the values are. Where it may be `compared` (`can_compare`)
    that is how steps are recorded. `ridge` adds ½ ridge z² to the objective. `memory` is that of `make_memory`, with room
    for steps if there are extra sweeps. With `bundles`, neighbours in a row are updated together.
    """
    boxes = Boxes(layout.run_lanes, layout.runs, layout.run_offsets, places.bases, places.starts)
    bundles = None if bundles is None else with_own_room(bundles)
    scene = _Scene(boxes, codes, ridge, nonnegative, residual, weights, strips, memory)
    _descend(rank, n_threads, team, scene, places.circle, bundles, compared, effort)


@kernel
def _descend(rank, n_threads, team, scene, circle, bundles, compared, effort):
    # Kernels that allocate nothing are compiled in half the time.
    if rank > 0:
        item = wait_for_item(team, rank, n_threads)
        while item >= 0:
            _work(item, team, scene, circle, bundles)
            finish_item(team)
            item = wait_for_item(team, rank, n_threads)
        return
    begin(team)
    count = 0
    for _ in range(effort.max_sweeps):
        team[_WAY] = PLAIN
        if _sweep_all(team, scene, circle, bundles) < effort.target:
            break
        for _ in range(effort.extra):
            team[_WAY] = COMPARED if compared else RECORDED
            team[_NEWEST], team[_HELD] = count % MEMORY, min(count + 1, MEMORY)
            moved = _sweep_all(team, scene, circle, bundles)
            team[_KIND] = _MEASURE  # the residual takes up the step, whatever comes next
            _run(team, scene, circle, bundles)
            if moved < 0.5 * effort.target:
                break
            count += 1
            _extrapolate(team, scene, circle, bundles)
    team[_WAY] = FORGETTING if effort.forgetting else PLAIN
    for _ in range(effort.plain):
        _sweep_all(team, scene, circle, bundles)
    end(team)


@routine
def _run(team, scene, circle, bundles):
    """Have the kind of work done that is ordered, on strips of a colour where they are coloured."""
    n_items, boxes = len(scene.strips.reached), scene.boxes
    if team[_KIND] <= _CLIP:
        step = scene.strips.n_colours * strips_an_item(boxes.offsets)
        n_items = (n_items - team[_COLOUR] + step - 1) // step
    announce(team, n_items)
    item = take_item(team, 0, 1)
    while item >= 0:
        _work(item, team, scene, circle, bundles)
        finish_item(team)
        item = take_item(team, 0, 1)
    wait_for_items(team, n_items, _PATIENCE + len(scene.codes.values) * (len(boxes.offsets) << len(boxes.lanes)))


@spliced
def _run_by_colours(team, scene, circle, bundles):
    """Have the kind of work done that is ordered on the strips of one colour after the other."""
    for colour in range(scene.strips.n_colours):
        team[_COLOUR] = colour
        _run(team, scene, circle, bundles)


@routine
def _sweep_all(team, scene, circle, bundles):
    """Sweep over all strips in the way that is ordered; returns the largest move."""
    largest, team[_KIND] = 0.0, _SWEEP
    _run_by_colours(team, scene, circle, bundles)
    for moved in scene.memory.moved:
        largest = max(largest, moved)
    return np.sqrt(largest)


@routine
def _extrapolate(team, scene, circle, bundles):
    """Make the best step in the span of the moves that are held, if it lowers the objective; it joins the newest move."""
    memory = scene.memory
    add_up(memory.sums, memory.totals)
    find_factors(memory.totals, team[_HELD], memory.most)
    team[_KIND] = _COMBINE
    _run(team, scene, circle, bundles)
    turns = False
    for turned in memory.turned:
        turns |= turned
    if turns:
        team[_KIND] = _CLIP
        _run_by_colours(team, scene, circle, bundles)
        team[_KIND] = _WEIGH
        _run(team, scene, circle, bundles)
        add_up(memory.sums, memory.totals)
        if not memory.totals[0] < 0:
            return
    team[_KIND] = _TAKE
    _run(team, scene, circle, bundles)


@routine
def _work(item, team, scene, circle, bundles):
    """Do what the leader ordered, for one strip or, where they are coloured, for one or two of its colour."""
    boxes, codes, strips, memory = scene.boxes, scene.codes, scene.strips, scene.memory
    kind, newest = team[_KIND], team[_NEWEST]
    if kind == _SWEEP:
        _sweep(item, team, scene, circle, bundles)
        return
    if kind == _CLIP:
        step = strips.n_colours * strips_an_item(boxes.offsets)
        first = team[_COLOUR] + step * item
        for s in range(first, min(first + step, len(strips.reached)), strips.n_colours):
            if memory.turned[s]:
                clip(
                    boxes, circle, scene.weights, codes.values, memory.steps[COMBINED], memory.moves[COMBINED],
                    strips.codes[s], strips.codes[s + 1],
                )  # fmt: skip
        return
    s = item
    begin, end = strips.codes[s], strips.codes[s + 1]
    first, last = strips.bounds[s], strips.bounds[s + 1] if strips.reached[s] else strips.bounds[s]
    rows, lengths, counted = strips.rows[first:last], strips.lengths[first:last], strips.counted[first:last]
    if kind == _MEASURE:
        _take_up(scene.residual, scene.weights, memory.steps[newest], rows, lengths, team[_WAY] == COMPARED)
        measure_strip(
            boxes.lanes, scene.residual, scene.weights, rows, counted, begin, end, scene.ridge, memory.steps,
            memory.moves, memory.rises, memory.sums[s],
        )  # fmt: skip
    elif kind == _COMBINE:
        combine_strip(memory.totals, memory.steps, memory.moves, rows, lengths, begin, end)
        memory.turned[s] = any_turns(codes.values, memory.moves[COMBINED], begin, end)
    elif kind == _WEIGH:
        weigh_strip(
            boxes.lanes, scene.residual, scene.weights, rows, counted, begin, end, scene.ridge,
            memory.steps[COMBINED], memory.moves[COMBINED], memory.rises, memory.sums[s],
        )  # fmt: skip
    else:
        take_strip(
            scene.residual, scene.weights, codes.values, memory.steps, memory.moves, newest, rows, lengths, begin, end
        )


@routine
def _take_up(residual, weights, step, rows, lengths, compared):
    """Let the residual take up a recorded step, or complete a step that began as minus the residual before it."""
    for i in range(len(rows)):
        if compared:
            for t in range(np.uintp(rows[i]), np.uintp(rows[i] + lengths[i])):
                step[t] += residual[t]
        else:
            for t in range(np.uintp(rows[i]), np.uintp(rows[i] + lengths[i])):
                residual[t] += weights[t] * step[t]


@routine
def _sweep(item, team, scene, circle, bundles):
    """Sweep over the codes of one or two strips of a colour, or of the only one in two halves."""
    boxes, codes, strips, memory = scene.boxes, scene.codes, scene.strips, scene.memory
    way, colour, newest, n_strips = team[_WAY], team[_COLOUR], team[_NEWEST], len(strips.reached)
    apart = strips.n_colours
    step = memory.steps[newest] if way == RECORDED else scene.residual[:0]
    together = strips_an_item(boxes.offsets)
    one = colour + apart * together * item
    other = one + apart if together > 1 and one + apart < n_strips else n_strips
    for s in range(one, min(one + apart * together, n_strips), apart):
        prepare_strip(
            way, colour, s, apart, codes.values, strips.codes, strips.rows, strips.bounds, strips.lengths, strips.reached,
            scene.residual, memory.moves[newest], memory.steps[newest], memory.alive, memory.n_alive,
        )  # fmt: skip
    a, a_end = strips.codes[one], strips.codes[one] + memory.n_alive[one]
    b, b_end = (a + a_end) // 2, a_end
    if other < n_strips:
        b, b_end = strips.codes[other], strips.codes[other] + memory.n_alive[other]
    else:
        a_end = b
    memory.moved[one] = visit_codes(
        boxes, circle, codes.curvatures, codes.penalties, scene.ridge, codes.clean, scene.weights, scene.nonnegative,
        codes.values, scene.residual, memory.alive, a, a_end, b, b_end, step, bundles,
    )  # fmt: skip
    for s in range(one, min(one + apart * together, n_strips), apart):
        begin, end = strips.codes[s], strips.codes[s + 1]
        if way <= FORGETTING:
            memory.n_alive[s] = list_alive(codes.values, memory.alive, begin, end)
            continue
        finish_move(memory.moves[newest], memory.rises, codes.values, codes.penalties, scene.ridge, begin, end)
        for m in range(team[_HELD]):
            # What is taken out of a step that the residual has yet to take up must reach it nevertheless.
            residual = scene.residual if m == newest and way == RECORDED else scene.residual[:0]
            leave_zeros(
                boxes, circle, codes.clean, scene.weights, codes.values, residual, memory.steps[m], memory.moves[m], begin,
                end,
            )  # fmt: skip
