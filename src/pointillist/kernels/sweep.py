"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

A code moves to its minimum while all others stay: one inner product with its filter and, if it moved, one addition. While
codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual is
linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.

Threads share all of it strip by strip (`threads`): codes of strips of one colour reach no sample in common, and what is
summed over a signal is added up in the order of its strips. Samples are counted without a sign, hence never from the end of
an array: loops become vectors then.
"""

from typing import NamedTuple

import numpy as np

from pointillist.kernels.compiling import kernel, routine, spliced
from pointillist.kernels.threads import (
    ORDERS,
    announce,
    begin,
    end,
    finish_item,
    take_item,
    wait_for_item,
    wait_for_items,
)
from pointillist.kernels.vectors import add_products, add_runs, add_runs_weighted, dot_changed_runs, dot_runs

PLAIN, FORGETTING, RECORDED, COMPARED = 0, 1, 2, 3
"""Ways to sweep: over all codes, as they are or from zero; over the non-zeros, where x − Dz is recorded or compared."""
MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it. Their combination stands behind them."""
_FACTORS = MEMORY + MEMORY * (MEMORY + 1) // 2  # behind the slopes, and the products of steps 0 0, 1 0, 1 1, 2 0, …
_APART = 8  # numbers between the sums of two strips: threads that write to one line of the cache wait for each other
_KIND, _COLOUR, _WAY, _NEWEST, _HELD = range(ORDERS, ORDERS + 5)  # where a leader's orders stand
# Kinds of work. The first two write to samples of the next strips too, and go through strips of one colour at a time.
_SWEEP, _CLIP, _MEASURE, _COMBINE, _WEIGH, _TAKE = range(6)


class Strips(NamedTuple):
    """A signal in strips along its first axis, whose colours take turns: as many strips of each, or one strip alone.

    What codes of a strip reach is in it or in the next ones of other colours; behind the last strip comes the first.
    """

    n_colours: int
    codes: np.ndarray  # (n_strips + 1,) where the codes of each begin
    bounds: np.ndarray  # (n_strips + 1,) where the rows of each begin
    rows: np.ndarray  # (n_rows,) where each row begins in the signal
    lengths: np.ndarray  # (n_rows,) its samples
    counted: np.ndarray  # (n_rows,) those of them that count: a circle holds some twice
    reached: np.ndarray  # (n_strips,) whether codes reach any


class Codes(NamedTuple):
    """The codes of a working set, strip by strip, and what a step of each needs."""

    values: np.ndarray
    curvatures: np.ndarray
    penalties: np.ndarray
    clean: np.ndarray  # whether a code meets weights of one only
    bases: np.ndarray  # where a code's box begins in the signal
    starts: np.ndarray  # where its filter begins in the runs
    ghosts: np.ndarray  # where else it begins: around a circle, once for each side that it comes out at again
    first_ghosts: np.ndarray  # (n_codes + 1,) where the ghosts of each begin


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
    )


class Scene(NamedTuple):
    """All that sweeps are about; residual and weights are flat, with the same zeros around them."""

    lanes: tuple[None, ...]  # the width of a run
    runs: np.ndarray  # the filters, run by run
    offsets: np.ndarray  # (n_runs,) from bases
    codes: Codes
    ridge: np.floating | float  # adds ½ ridge z² to the objective
    nonnegative: bool
    residual: np.ndarray  # w (x − Dz), kept up to date as the values are
    weights: np.ndarray
    strips: Strips
    memory: Memory
    abreast: int  # strips that a thread sweeps over in turns: with a small filter two, whose waits fill each other
    most: float  # the largest factor of a move, beyond which only rounding is left


class Effort(NamedTuple):
    """Limits of a descent by sweeps.

    Up to `max_sweeps` sweeps are over all codes, until no move exceeds `target`, with up to `extra` extrapolated ones over
    the non-zeros after each, until the largest move falls below half of it. Then come `plain` sweeps, which each begin at
    zero if they are `forgetting`. A move is √curvature · |change|, a distance in signal space.
    """

    target: float
    extra: int
    max_sweeps: int
    plain: int = 0
    forgetting: bool = False


@kernel
def descend(rank, n_threads, team, scene, compared, effort, patience):
    """Lead a descent on codes, as the thread of rank zero, or help with it.

    Extrapolated sweeps record how x − Dz changes or, where it is `compared` before and after, change the residual at once:
    weights must be binary for that, and moves much larger than what the residual rounds. `patience` is that of
    `wait_for_items`.
    """
    # Kernels that allocate nothing are compiled in half the time.
    if rank > 0:
        item = wait_for_item(team, rank, n_threads)
        while item >= 0:
            _work(item, team, scene)
            finish_item(team)
            item = wait_for_item(team, rank, n_threads)
        return
    begin(team)
    count = 0
    for _ in range(effort.max_sweeps):
        team[_WAY] = PLAIN
        if _sweep_all(team, scene, patience) < effort.target:
            break
        for _ in range(effort.extra):
            team[_WAY] = COMPARED if compared else RECORDED
            team[_NEWEST], team[_HELD] = count % MEMORY, min(count + 1, MEMORY)
            moved = _sweep_all(team, scene, patience)
            team[_KIND] = _MEASURE  # the residual takes up the step, whatever comes next
            _run(team, scene, patience)
            if moved < 0.5 * effort.target:
                break
            count += 1
            _extrapolate(team, scene, patience)
    team[_WAY] = FORGETTING if effort.forgetting else PLAIN
    for _ in range(effort.plain):
        _sweep_all(team, scene, patience)
    end(team)


@routine
def _run(team, scene, patience):
    """Have the kind of work done that is ordered, on strips of a colour where they are coloured."""
    n_items = len(scene.strips.reached)
    if team[_KIND] <= _CLIP:
        step = scene.strips.n_colours * scene.abreast
        n_items = (n_items - team[_COLOUR] + step - 1) // step
    announce(team, n_items)
    item = take_item(team, 0, 1)
    while item >= 0:
        _work(item, team, scene)
        finish_item(team)
        item = take_item(team, 0, 1)
    wait_for_items(team, n_items, patience)


@spliced
def _run_by_colours(team, scene, patience):
    """Have the kind of work done that is ordered on the strips of one colour after the other."""
    for colour in range(scene.strips.n_colours):
        team[_COLOUR] = colour
        _run(team, scene, patience)


@routine
def _sweep_all(team, scene, patience):
    """Sweep over all strips in the way that is ordered; returns the largest move."""
    largest, team[_KIND] = 0.0, _SWEEP
    _run_by_colours(team, scene, patience)
    for moved in scene.memory.moved:
        largest = max(largest, moved)
    return np.sqrt(largest)


@routine
def _extrapolate(team, scene, patience):
    """Make the best step in the span of the moves that are held, if it lowers the objective; it joins the newest move."""
    memory = scene.memory
    _add_up(memory)
    _find_factors(memory.totals, team[_HELD], scene.most)
    team[_KIND] = _COMBINE
    _run(team, scene, patience)
    turns = False
    for turned in memory.turned:
        turns |= turned
    if turns:
        team[_KIND] = _CLIP
        _run_by_colours(team, scene, patience)
        team[_KIND] = _WEIGH
        _run(team, scene, patience)
        _add_up(memory)
        if not memory.totals[0] < 0:
            return
    team[_KIND] = _TAKE
    _run(team, scene, patience)


@routine
def _work(item, team, scene):
    """Do what the leader ordered, for one strip or, where they are coloured, for one or two of its colour."""
    kind, strips = team[_KIND], scene.strips
    if kind == _SWEEP:
        _sweep(item, team, scene)
    elif kind == _CLIP:
        step = strips.n_colours * scene.abreast
        first = team[_COLOUR] + step * item
        for s in range(first, min(first + step, len(strips.reached)), strips.n_colours):
            if scene.memory.turned[s]:
                _clip(scene, strips.codes[s], strips.codes[s + 1])
    elif kind == _MEASURE:
        _take_up(scene, item, team[_NEWEST], team[_WAY] == COMPARED)
        _measure(scene, item)
    elif kind == _COMBINE:
        _combine(scene, item)
    elif kind == _WEIGH:
        _weigh(scene, item)
    else:
        _take(scene, item, team[_NEWEST])


@routine
def _sweep(item, team, scene):
    """Sweep over the codes of one or two strips of a colour, or of the only one in two halves."""
    strips, memory, n_strips = scene.strips, scene.memory, len(scene.strips.reached)
    way, colour, apart, newest = team[_WAY], team[_COLOUR], strips.n_colours, team[_NEWEST]
    one = colour + apart * scene.abreast * item
    other = one + apart if scene.abreast > 1 and one + apart < n_strips else n_strips
    for s in range(one, min(one + apart * scene.abreast, n_strips), apart):
        _prepare(scene, s, way, colour, newest)
    a, a_end = strips.codes[one], strips.codes[one] + memory.n_alive[one]
    b, b_end = (a + a_end) // 2, a_end
    if other < n_strips:
        b, b_end = strips.codes[other], strips.codes[other] + memory.n_alive[other]
    else:
        a_end = b
    step = memory.steps[newest] if way == RECORDED else scene.residual[:0]
    memory.moved[one] = _visit(scene, a, a_end, b, b_end, step)
    for s in range(one, min(one + apart * scene.abreast, n_strips), apart):
        begin, end = strips.codes[s], strips.codes[s + 1]
        if way <= FORGETTING:
            _list_alive(scene, s)
            continue
        _finish_move(scene, newest, begin, end)
        for m in range(team[_HELD]):
            # What is taken out of a step that the residual has yet to take up must reach it nevertheless.
            _leave_zeros(scene, m, m == newest and way == RECORDED, begin, end)


@routine
def _prepare(scene, s, way, colour, newest):
    """List all codes of a strip, or begin with a move and, in the first colour, with the step that it makes."""
    strips, memory, residual = scene.strips, scene.memory, scene.residual
    begin, end, values = strips.codes[s], strips.codes[s + 1], scene.codes.values
    if way <= FORGETTING:
        for n in range(np.uintp(begin), np.uintp(end)):
            memory.alive[n] = n
            if way == FORGETTING:
                values[n] = 0
        memory.n_alive[s] = end - begin
        return
    move, step = memory.moves[newest], memory.steps[newest]
    for n in range(np.uintp(begin), np.uintp(end)):
        move[n] = -values[n]
    if colour > 0:
        return
    # What codes of the other colours reach is prepared by now.
    for z in range(s, min(s + strips.n_colours, len(strips.reached))):
        if strips.reached[z]:
            for i in range(strips.bounds[z], strips.bounds[z + 1]):
                for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
                    step[t] = -residual[t] if way == COMPARED else residual[t] * 0


@routine
def _visit(scene, a, a_end, b, b_end, step):
    """Move the codes alive[a:a_end] and alive[b:b_end] to their minima; returns the largest curvature · change².

    Where filters are small they are gone through in turns: the processor begins with a code while the last one is still
    being written, which is far away. Unless it is empty, `step` takes up how x − Dz changes, and not the residual.
    """
    largest, alive = 0.0, scene.memory.alive
    while a < a_end or b < b_end:
        if a == a_end or (scene.abreast > 1 and b < b_end):
            a, a_end, b, b_end = b, b_end, a, a_end
        largest = max(largest, _update(scene, alive[a], step))
        a += 1
    return largest


@spliced
def _update(scene, i, step):
    """Move code i to its minimum; returns its curvature times the square of its change.

    What the code meets is the residual and, unless it is empty, the recorded step.
    """
    codes, lanes, runs, offsets, residual = scene.codes, scene.lanes, scene.runs, scene.offsets, scene.residual
    base, start, recorded = codes.bases[i], codes.starts[i], len(step) > 0
    if not recorded:
        slope = dot_runs(lanes, residual, base, runs, start, offsets)
    elif codes.clean[i]:
        slope = dot_changed_runs(lanes, residual, step, base, runs, start, offsets, None)
    else:
        slope = dot_changed_runs(lanes, residual, step, base, runs, start, offsets, scene.weights)
    old, curvature = codes.values[i], codes.curvatures[i]
    target = old * curvature + slope
    size = (target if scene.nonnegative else abs(target)) - codes.penalties[i]
    # No branches by signs, which no processor foretells.
    new = (size if target > 0 else -size) / (curvature + scene.ridge) if size > 0 else target * 0
    change = old - new
    if new != old:
        codes.values[i] = new
        if recorded:
            _add(scene, i, step, change)
        elif codes.clean[i]:
            _add(scene, i, residual, change)
        else:
            _add_weighted(scene, i, change)
    return change * change * curvature


@spliced
def _add(scene, i, signal, change):
    """Add a code's filter to a signal."""
    codes = scene.codes
    add_runs(scene.lanes, signal, codes.bases[i], scene.runs, codes.starts[i], scene.offsets, change)
    for ghost in range(codes.first_ghosts[i], codes.first_ghosts[i + 1]):
        add_runs(scene.lanes, signal, codes.ghosts[ghost], scene.runs, codes.starts[i], scene.offsets, change)


@spliced
def _add_weighted(scene, i, change):
    """Add a code's filter, weighted, to the residual."""
    codes, residual, weights = scene.codes, scene.residual, scene.weights
    start = codes.starts[i]
    add_runs_weighted(scene.lanes, residual, codes.bases[i], scene.runs, start, scene.offsets, change, weights)
    for ghost in range(codes.first_ghosts[i], codes.first_ghosts[i + 1]):
        add_runs_weighted(scene.lanes, residual, codes.ghosts[ghost], scene.runs, start, scene.offsets, change, weights)


@routine
def _list_alive(scene, s):
    """List the codes of a strip that are not zero."""
    begin, values, alive = scene.strips.codes[s], scene.codes.values, scene.memory.alive
    n = begin
    for i in range(begin, scene.strips.codes[s + 1]):
        alive[n] = i
        n += values[i] != 0
    scene.memory.n_alive[s] = n - begin


@routine
def _finish_move(scene, newest, begin, end):
    """Complete a move of some codes, which began as minus the values, and find how the penalties rise with each."""
    values, penalties, ridge = scene.codes.values, scene.codes.penalties, scene.ridge
    move, rises, nothing = scene.memory.moves[newest], scene.memory.rises, scene.ridge - scene.ridge
    for n in range(np.uintp(begin), np.uintp(end)):
        value = values[n]
        move[n] += value
        rise = penalties[n] if value > 0 else -penalties[n]
        rises[n] = rise + ridge * value if value != 0 else nothing


@routine
def _leave_zeros(scene, m, pending, begin, end):
    """Take codes that are zero out of move m: they stay there until a sweep says otherwise.

    The residual keeps what they did; a step that is `pending` has yet to reach it.
    """
    values, move, step = scene.codes.values, scene.memory.moves[m], scene.memory.steps[m]
    for n in range(begin, end):
        if values[n] == 0 and move[n] != 0:
            _add(scene, n, step, move[n])
            if pending and scene.codes.clean[n]:
                _add(scene, n, scene.residual, -move[n])
            elif pending:
                _add_weighted(scene, n, -move[n])
            move[n] = 0


@routine
def _clip(scene, begin, end):
    """Let codes that the combined move would take beyond zero stop there."""
    values, move, step = scene.codes.values, scene.memory.moves[MEMORY], scene.memory.steps[MEMORY]
    for n in range(begin, end):
        if values[n] != 0 and (values[n] + move[n]) * values[n] <= 0:
            _add(scene, n, step, values[n] + move[n])
            move[n] = -values[n]


@spliced
def _rows_of(strips, s):
    """The first row of a strip and the one after its last; none where no codes reach it."""
    return strips.bounds[s], strips.bounds[s + 1] if strips.reached[s] else strips.bounds[s]


@routine
def _take_up(scene, s, newest, compared):
    """Let the residual take up a recorded step, or complete a step that began as minus the residual before it."""
    strips, residual, weights, step = scene.strips, scene.residual, scene.weights, scene.memory.steps[newest]
    first, last = _rows_of(strips, s)
    for i in range(first, last):
        if compared:
            for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
                step[t] += residual[t]
        else:
            for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
                residual[t] += weights[t] * step[t]


@routine
def _measure(scene, s):
    """Sum up the slopes of the objective along the moves in a strip, and the products of their steps."""
    memory, strips, ridge = scene.memory, scene.strips, scene.ridge
    sums, steps, moves = memory.sums[s], memory.steps, memory.moves
    sums[:_FACTORS] = 0
    first, last = _rows_of(strips, s)
    for i in range(first, last):
        add_products(
            scene.lanes, scene.residual, scene.weights, steps[0], steps[1], steps[2], strips.rows[i], strips.counted[i],
            sums,
        )  # fmt: skip
    for n in range(strips.codes[s], strips.codes[s + 1]):
        for m in range(MEMORY):
            sums[m] += memory.rises[n] * moves[m, n]
            for k in range(m + 1 if ridge > 0 else 0):
                sums[MEMORY + m * (m + 1) // 2 + k] += ridge * moves[m, n] * moves[k, n]


@routine
def _weigh(scene, s):
    """Sum up what the combined step changes of the objective in a strip."""
    memory, strips = scene.memory, scene.strips
    sums, step, move = memory.sums[s], memory.steps[MEMORY], memory.moves[MEMORY]
    sums[:_FACTORS] = 0
    first, last = _rows_of(strips, s)
    for i in range(first, last):
        add_products(
            scene.lanes, scene.residual, scene.weights, step, step, step, strips.rows[i], strips.counted[i], sums
        )
    sums[0] += 0.5 * sums[MEMORY]
    for n in range(strips.codes[s], strips.codes[s + 1]):
        sums[0] += move[n] * (memory.rises[n] + 0.5 * scene.ridge * move[n])


@routine
def _add_up(memory):
    """Add up what was summed in each strip."""
    for k in range(_FACTORS):
        memory.totals[k] = 0
        for s in range(len(memory.sums)):
            memory.totals[k] += memory.sums[s, k]


@routine
def _find_factors(totals, held, most):
    """Minimise ½ cᵀ H c + gᵀ c for the products H and slopes g of the moves that are held; those of no length get nothing.

    Each is scaled to a length of one, and the system is a little regularised: it is positive definite, no pivots are needed.
    Where a factor would exceed `most`, only rounding is left in the moves, and nothing is combined.
    """
    own = 1 + 1e-6
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
    """Factor that gives a step a length of one."""
    return 1 / np.sqrt(product) if is_held and product > least else 0.0


@routine
def _combine(scene, s):
    """Compute the combination of all moves of a strip's codes, and that of all steps in its rows."""
    memory, strips, values = scene.memory, scene.strips, scene.codes.values
    totals, steps, moves = memory.totals, memory.steps, memory.moves
    kind = moves.dtype.type  # in double precision all would take longer
    a, b, c = kind(totals[_FACTORS]), kind(totals[_FACTORS + 1]), kind(totals[_FACTORS + 2])
    turned = 0
    for n in range(np.uintp(strips.codes[s]), np.uintp(strips.codes[s + 1])):
        move = a * moves[0, n] + b * moves[1, n] + c * moves[2, n]
        moves[MEMORY, n] = move
        turned += (values[n] != 0) & ((values[n] + move) * values[n] <= 0)
    memory.turned[s] = turned > 0
    first, last = _rows_of(strips, s)
    for i in range(first, last):
        for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
            steps[MEMORY, t] = a * steps[0, t] + b * steps[1, t] + c * steps[2, t]


@routine
def _take(scene, s, newest):
    """Make the combined step in a strip: it changes the residual, the values, and the newest of the steps and moves."""
    memory, strips, values = scene.memory, scene.strips, scene.codes.values
    residual, weights, steps, moves = scene.residual, scene.weights, memory.steps, memory.moves
    first, last = _rows_of(strips, s)
    for i in range(first, last):
        for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
            change = steps[MEMORY, t]
            residual[t] += weights[t] * change
            steps[newest, t] += change
    for n in range(np.uintp(strips.codes[s]), np.uintp(strips.codes[s + 1])):
        change = moves[MEMORY, n]
        values[n] += change
        moves[newest, n] += change
