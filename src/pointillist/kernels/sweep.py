"""Coordinate descent on the residual, with the best step in the span of the last moves after every sweep.

A code moves to its minimum while all others stay: one inner product with its filter and, if it moved, one addition. While
codes keep their signs the objective is quadratic, and sweeps alone converge slowly where codes overlap. The residual is
linear in the codes, so that the best combination of the last few moves costs some inner products of signals and no
convolution. With one move besides the sweep's own this is the method of conjugate gradients, preconditioned by a sweep.
Codes that would change their sign stop at zero.

Threads share all of it strip by strip: codes of strips of one colour reach no sample in common, and what is
summed over a signal is added up in the order of its strips. Samples are counted without a sign, hence never from the end of
an array: loops become vectors then.

Strips take microseconds. One thread leads: it announces work of some kind in so many items, takes items itself, and waits
for those that others have taken. Helpers look for items until the leader says that all is over. They come when they can, and
none is waited for that has not taken an item: the leader does everything itself where no helper is there. Whoever takes an
item, it is the same, so that results do not depend on the number of threads. Each thread begins in a place of its own among
the items: what it has in its cache is then what it needs again. Helpers look for work without a break, which takes a
processor as long as the kernel runs. One that keeps the leader waiting, since other programs want its processor too, gets no
more items.
"""

from typing import NamedTuple

import numpy as np
from numba.core import types

from pointillist.kernels.compiling import kernel, routine, spliced
from pointillist.kernels.vectors import add_products, add_runs, dot_changed_runs, dot_runs, writes
from pointillist.system import SYSTEM

MOST_ITEMS = 64
"""Items of a piece of work at most."""
_FREE, _DONE, _STATE, _COUNT, ORDERS = 0, 8, 16, 24, 25
"""Places: a bit for each item that nobody has taken, how many are done, how far all is, how many items there are, and what
they are about. What threads wait for has a line of the cache to itself."""
_SIZE = 40
_WAITING, _BEGUN, _OVER, _LATE = 0, 1, 2, 3
_LOOKS = 1024
"""Looks for a change after which a thread gives way to others."""
_LEADERLESS = 2**17
"""Looks for a leader that has not begun, some tenth of a millisecond, after which a helper goes home."""

_give_way = types.ExternalFunction("SwitchToThread" if SYSTEM == "win32" else "sched_yield", types.int32())

PLAIN, FORGETTING, RECORDED, COMPARED = 0, 1, 2, 3
"""Ways to sweep: over all codes, as they are or from zero; over the non-zeros, where x − Dz is recorded or compared."""
MEMORY = 3
"""Moves that are combined: that of the last sweep and the steps before it."""
_APART = 8  # numbers between the sums of two strips: threads that write to one line of the cache wait for each other
_KIND, _COLOUR, _WAY, _NEWEST, _HELD, _LEADER = range(ORDERS, ORDERS + 6)  # where a leader's orders stand
_SWEEP, _CLIP, _MEASURE, _TAKE = range(4)  # kinds of work; the first two write to the next strips: a colour at a time
_ASTRAY = 8.0
"""Moves, beside that of the last sweep over all codes, after which no further combination is tried in a descent."""


class Strips(NamedTuple):
    """A signal in strips along its first axis, whose colours take turns: as many strips of each, or one strip alone.

    What codes of a strip reach is in it or in the next ones of other colours; behind the last strip comes the first.
    """

    n_colours: int
    codes: np.ndarray  # (n_strips + 1,) where the codes of each begin
    begins: np.ndarray  # (n_strips,) where the rows of each begin
    rows: np.ndarray  # (n_rows,) where each row begins in the signal
    lengths: np.ndarray  # (n_rows,) its samples
    counted: np.ndarray  # (n_rows,) those of them that count: a circle holds some twice
    ends: np.ndarray  # (n_strips,) where the rows of each end: where they begin, if no codes reach them


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
    """The last moves, newest first around a ring, and what is computed of them."""

    steps: np.ndarray  # (MEMORY, samples) how x − Dz changed
    moves: np.ndarray  # (MEMORY, n_codes) how the codes changed
    moved: np.ndarray  # (n_strips,) the square of the largest move of the last sweep
    sums: (
        np.ndarray
    )  # (n_strips, at least MEMORY · (MEMORY + 1)) products of each step with all, and the objective's slope
    system: (
        np.ndarray
    )  # (MEMORY, MEMORY + 1) their sums over all strips; then factors of the best step, the last column


def make_memory(steps, n_codes, n_strips):
    """Make room for moves of `n_codes` codes, beside that for steps (MEMORY, samples)."""
    return Memory(
        steps=steps,
        moves=np.zeros((MEMORY, n_codes), steps.dtype),
        moved=np.zeros(n_strips),
        sums=np.zeros((n_strips, MEMORY * (MEMORY + 1) + _APART)),
        system=np.zeros((MEMORY, MEMORY + 1)),
    )


class Scene(NamedTuple):
    """All that sweeps are about; residual and weights are flat, with the same zeros around them."""

    lanes: tuple[None, ...]  # the width of a run
    runs: np.ndarray  # the filters, run by run
    offsets: np.ndarray  # (n_runs,) from bases
    codes: Codes
    ridge: np.floating | float  # adds ½ ridge z² to the objective
    nonnegative: bool
    residual: np.ndarray  # x − Dz, kept up to date as the values are
    weights: np.ndarray
    strips: Strips
    memory: Memory
    in_turns: bool  # sweep over two places of a strip in turns: with small filters their waits fill each other
    most: float  # the largest factor of a move, beyond which only rounding is left


class Effort(NamedTuple):
    """Limits of a descent by sweeps.

    A sweep over all codes is followed by up to `extra` extrapolated ones over the non-zeros, until the largest move falls
    below half of `target`, and by another one over all; so up to `max_sweeps` times, until no move exceeds `target`. Then
    come `plain` sweeps, which each begin at zero if they are `forgetting`. A move is √curvature · |change|, a distance in
    signal space.
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
    moves must be much larger than what the residual rounds for that. `patience` is that of `wait_for_items`.
    """
    # Kernels that allocate nothing are compiled in half the time.
    if rank > 0:
        while wait_for_work(team):
            _work(rank, n_threads, team, scene)
        return
    begin(team)
    count, left, extra = 0, effort.max_sweeps, effort.extra
    team[_WAY] = PLAIN
    usual = _sweep_all(team, scene, patience)
    while usual >= effort.target and left > 0:
        left -= 1
        for _ in range(extra):
            team[_WAY] = COMPARED if compared else RECORDED
            team[_NEWEST], team[_HELD] = -count % MEMORY, count + 1
            moved = _sweep_all(team, scene, patience)
            team[_KIND] = _MEASURE  # the residual takes up the step, whatever comes next
            _run(team, scene, patience)
            if moved < 0.5 * effort.target:
                break
            if moved > _ASTRAY * usual:
                extra = 0
                break
            count += 1
            _find_factors(team[_HELD], scene)
            team[_KIND] = _TAKE
            _run(team, scene, patience)
            team[_KIND] = _CLIP
            _run_by_colours(team, scene, patience)
        team[_WAY] = PLAIN
        usual = _sweep_all(team, scene, patience)
    if effort.forgetting:
        team[_WAY] = FORGETTING
    for _ in range(effort.plain):
        _sweep_all(team, scene, patience)
    end(team)


@routine
def _sweep_all(team, scene, patience):
    """Sweep over all strips in the way that is ordered; returns the largest move."""
    largest, team[_KIND] = 0.0, _SWEEP
    _run_by_colours(team, scene, patience)
    for moved in scene.memory.moved:
        largest = moved if moved > largest else largest
    return np.sqrt(largest)


@routine
def _run_by_colours(team, scene, patience):
    """Have the kind of work done that is ordered, on the strips of one colour after the other."""
    for colour in range(scene.strips.n_colours):
        team[_COLOUR] = colour
        _run(team, scene, patience)


@routine
def _run(team, scene, patience):
    """Have the kind of work done that is ordered, on all strips or on those of the colour whose turn it is."""
    n_items = len(scene.strips.ends)
    if team[_KIND] <= _CLIP:
        n_items //= scene.strips.n_colours
    announce(team, n_items)
    _work(team[_LEADER], n_items, team, scene)  # a literal zero would be another type, and compiled once more
    wait_for_items(team, n_items, patience)


@routine
def _work(rank, n_threads, team, scene):
    """Do what the leader ordered, strip by strip, until nobody has anything left to take."""
    item = take_item(team, rank, n_threads)
    while item >= 0:
        kind, newest = team[_KIND], team[_NEWEST]
        if kind <= _CLIP:
            s = team[_COLOUR] + scene.strips.n_colours * item
            if kind == _SWEEP:
                _sweep(s, team, scene)
            else:
                _clip(s, newest, scene)
        elif kind == _MEASURE:
            _measure(item, newest, team[_WAY], scene)
        else:
            _take(item, newest, scene)
        finish_item(team)
        item = take_item(team, rank, n_threads)


@routine
def _sweep(s, team, scene):
    """Sweep over the codes of a strip."""
    strips, memory, residual, values = scene.strips, scene.memory, scene.residual, scene.codes.values
    way, newest, first, last = team[_WAY], team[_NEWEST], strips.codes[s], strips.codes[s + 1]
    move, step = memory.moves[newest], memory.steps[newest]
    for n in range(np.uintp(first), np.uintp(last)):
        if way == FORGETTING:
            values[n] = 0
        elif way > FORGETTING:
            move[n] = -values[n]
    if team[_COLOUR] == 0 and way > FORGETTING:  # what codes of other colours reach is prepared by now
        beyond = s + strips.n_colours if s + strips.n_colours < len(strips.ends) else len(strips.ends)
        factor = residual.dtype.type(-1 if way == COMPARED else 0)
        for i in range(strips.begins[s], strips.ends[beyond - 1]):
            for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
                step[t] = factor * residual[t]
    memory.moved[s] = _visit(first, last, way, step if way == RECORDED else residual[:0], scene)
    if way <= FORGETTING:
        return
    for n in range(np.uintp(first), np.uintp(last)):
        move[n] += values[n]
    # Codes that are zero stay there until a sweep says otherwise: the residual keeps what they did.
    for n in range(first, last):
        for m in range(MEMORY if values[n] == 0 else 0):
            change = memory.moves[m, n]
            if change != 0:
                memory.moves[m, n] = 0
                _add(memory.steps[m], n, change, scene)
                if m == newest and way == RECORDED:
                    _add(residual, n, -change, scene)


@routine
def _visit(first, last, way, step, scene):
    """Move codes to their minima, all or those that are not zero; returns the largest curvature · change².

    What a code meets is the residual and, unless it is empty, the recorded step, which takes up how x − Dz changes then.
    """
    codes, lanes, runs, offsets, residual = scene.codes, scene.lanes, scene.runs, scene.offsets, scene.residual
    recorded, half, largest = len(step) > 0, (last - first + 1) // 2, 0.0
    changed = step if recorded else residual
    for n in range(last - first):
        i = first + ((n >> 1) + (n & 1) * half if scene.in_turns else n)
        old = codes.values[i]
        if old == 0 and way > FORGETTING:
            continue
        base, start, curvature = codes.bases[i], codes.starts[i], codes.curvatures[i]
        if codes.clean[i] and not recorded:
            slope = dot_runs(lanes, residual, base, runs, start, offsets)
        elif codes.clean[i]:
            slope = dot_changed_runs(lanes, residual, step, base, runs, start, offsets, None)
        elif recorded:
            slope = dot_changed_runs(lanes, residual, step, base, runs, start, offsets, scene.weights)
        else:
            slope = dot_changed_runs(lanes, residual, None, base, runs, start, offsets, scene.weights)
        target = old * curvature + slope
        size = (target if scene.nonnegative else abs(target)) - codes.penalties[i]
        # No branches by signs, which no processor foretells.
        new = (size if target > 0 else -size) / (curvature + scene.ridge) if size > 0 else target * 0
        if new != old:
            codes.values[i] = new
            change = old - new
            moved = change * change * curvature
            largest = moved if moved > largest else largest
            _add(changed, i, change, scene)
    return largest


@spliced
def _add(signal, i, factor, scene):
    """Add a code's filter to a signal, wherever it begins."""
    codes = scene.codes
    begin = codes.first_ghosts[i]
    for ghost in range(begin - 1, codes.first_ghosts[i + 1]):
        place = codes.bases[i] if ghost < begin else codes.ghosts[ghost]
        add_runs(scene.lanes, signal, place, scene.runs, codes.starts[i], scene.offsets, factor)


@routine
def _measure(s, newest, way, scene):
    """Complete the step of a strip, and sum up slopes of the objective along the moves, and the products of their steps.

    The residual takes up what was recorded; what is compared began as minus the residual before.
    """
    memory, strips, codes, residual = scene.memory, scene.strips, scene.codes, scene.residual
    sums, step, second, third = memory.sums[s], memory.steps[newest], (newest + 1) % MEMORY, (newest + 2) % MEMORY
    for k in range(MEMORY * (MEMORY + 1)):
        sums[k] = 0
    for i in range(strips.begins[s], strips.ends[s]):
        for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
            after = residual[t] + step[t]
            if way == COMPARED:
                step[t] = after
            else:
                residual[t] = after
        add_products(
            scene.lanes, residual, scene.weights, step, memory.steps[second], memory.steps[third], strips.rows[i],
            strips.counted[i], sums,
        )  # fmt: skip
    for n in range(strips.codes[s], strips.codes[s + 1]):
        value = codes.values[n]
        rise = codes.penalties[n] if value > 0 else -codes.penalties[n]
        for m in range(MEMORY):
            move = memory.moves[(newest + m) % MEMORY, n]
            sums[m * (MEMORY + 1) + MEMORY] += (rise + scene.ridge * value) * move
            for k in range(MEMORY if scene.ridge > 0 else 0):
                sums[m * (MEMORY + 1) + k] += scene.ridge * move * memory.moves[(newest + k) % MEMORY, n]


@routine
def _find_factors(held, scene):
    """Minimise ½ cᵀ H c + gᵀ c for the products H and slopes g of the moves that are held, by elimination.

    The system is a little regularised, each move by its own length: it is positive definite, and no pivots are needed.
    Moves of no length get nothing, and none does where factors exceed `most`: only rounding is left in the moves then.
    """
    sums, system, size = scene.memory.sums, scene.memory.system, 0.0
    for m in range(MEMORY):
        for k in range(MEMORY + 1):
            total = 0.0
            for s in range(len(sums)):
                total += sums[s, m * (MEMORY + 1) + k]
            system[m, k] = total if m < held and (k < held or k == MEMORY) else 0.0
        system[m, m] *= 1 + 1e-6
    for m in range(MEMORY):
        for k in range(MEMORY):
            if k != m and system[m, m] > 0:
                factor = system[k, m] / system[m, m]
                for j in range(MEMORY + 1):
                    system[k, j] -= factor * system[m, j]
    for m in range(MEMORY):
        system[m, MEMORY] = -system[m, MEMORY] / system[m, m] if system[m, m] > 0 else 0.0
        size += abs(system[m, MEMORY])
    for m in range(MEMORY):
        if not size <= scene.most:
            system[m, MEMORY] = 0


@routine
def _take(s, newest, scene):
    """Make the best step in the rows of a strip: it changes the residual and the newest step."""
    memory, strips, residual, kind = scene.memory, scene.strips, scene.residual, scene.residual.dtype.type
    a, b, c = kind(memory.system[0, MEMORY]), kind(memory.system[1, MEMORY]), kind(memory.system[2, MEMORY])
    first, second, third = (
        memory.steps[newest],
        memory.steps[(newest + 1) % MEMORY],
        memory.steps[(newest + 2) % MEMORY],
    )
    for i in range(strips.begins[s], strips.ends[s]):
        for t in range(np.uintp(strips.rows[i]), np.uintp(strips.rows[i] + strips.lengths[i])):
            change = a * first[t] + b * second[t] + c * third[t]
            residual[t] += change
            first[t] += change


@routine
def _clip(s, newest, scene):
    """Move the codes of a strip by the best step; those that it takes beyond zero stop there."""
    memory, strips, values, kind = scene.memory, scene.strips, scene.codes.values, scene.residual.dtype.type
    a, b, c = kind(memory.system[0, MEMORY]), kind(memory.system[1, MEMORY]), kind(memory.system[2, MEMORY])
    first, second, third = (
        memory.moves[newest],
        memory.moves[(newest + 1) % MEMORY],
        memory.moves[(newest + 2) % MEMORY],
    )
    for n in range(strips.codes[s], strips.codes[s + 1]):
        value = values[n]
        change = a * first[n] + b * second[n] + c * third[n]
        beyond = value + change
        if value * beyond < 0:
            _add(scene.residual, n, beyond, scene)
            _add(memory.steps[newest], n, beyond, scene)
            change, beyond = -value, value * 0
        first[n] += change
        values[n] = beyond


def make_team():
    """The place where a leader and its helpers meet once: (_SIZE,) whole numbers; those from `ORDERS` on say what to do."""
    return np.zeros(_SIZE, np.int64)


def disperse(team):
    """Send helpers home, whether their leader began or not; tells whether one had kept it waiting."""
    was_late = bool(team[_STATE] == _LATE)
    team[_STATE] = _LATE if was_late else _OVER
    return was_late


@spliced
def begin(team):
    """Lead from now on."""
    _store(team, _STATE, _BEGUN)


@spliced
def end(team):
    """Tell helpers that all is over."""
    if _load(team, _STATE) != _LATE:
        _store(team, _STATE, _OVER)


@routine
def announce(team, n_items):
    """Offer items of what the orders say."""
    team[_COUNT] = n_items
    _store(team, _DONE, 0)
    _store(team, _FREE, -1 if n_items == MOST_ITEMS else (1 << n_items) - 1)


@routine
def take_item(team, rank, n_threads):
    """The number of an item that nobody has taken, the first from a thread's own place on; −1 if there is none."""
    while True:
        free = _load(team, _FREE)
        if free == 0:
            return -1
        place = rank * team[_COUNT] // n_threads
        item = place if free >> place != 0 else 0
        while free >> item & 1 == 0:
            item += 1
        if _keep(team, _FREE, ~(1 << item)) & (1 << item) != 0:
            return item


@spliced
def finish_item(team):
    """Tell the leader that an item is done."""
    _increase(team, _DONE, 1)


@routine
def wait_for_items(team, n_items, patience):
    """Wait until all items are done; after so many looks helpers get no more of them."""
    looks = 0
    while _load(team, _DONE) < n_items:
        looks += 1
        if looks % _LOOKS == 0:
            _give_way()
        if looks == patience:
            _store(team, _STATE, _LATE)


@routine
def wait_for_work(team):
    """Wait as a helper until there are items to take; returns false when all is over."""
    looks = 0
    while _load(team, _FREE) == 0 or _load(team, _STATE) != _BEGUN:
        state = _load(team, _STATE)
        if state >= _OVER or (state == _WAITING and looks >= _LEADERLESS):
            return False
        looks += 1
        if looks % _LOOKS == 0:
            _give_way()
    return True


@writes(returns="team")
def _load(builder, team, place):
    """Load the number at a place; what other threads wrote before they wrote that is seen afterwards."""
    return builder.load_atomic(builder.gep(team.data, [place.value]), "acquire", 8)


@writes()
def _store(builder, team, place, value):
    """Write to a place; who reads it sees all that this thread wrote before."""
    builder.store_atomic(value.value, builder.gep(team.data, [place.value]), "release", 8)


@writes(returns="team")
def _increase(builder, team, place, value):
    """Add to what stands at a place, and return what stood there."""
    return builder.atomic_rmw("add", builder.gep(team.data, [place.value]), value.value, "acq_rel")


@writes(returns="team")
def _keep(builder, team, place, bits):
    """Clear all other bits of what stands at a place, and return what stood there."""
    return builder.atomic_rmw("and", builder.gep(team.data, [place.value]), bits.value, "acq_rel")
