"""Threads that share the work of one kernel, whose pieces take microseconds.

One thread leads: it announces work of some kind in so many items, takes items itself, and waits for those that others have
taken. Helpers look for items until the leader says that all is over. They come when they can, and none is waited for that
has not taken an item: the leader does everything itself where no helper is there. Whoever takes an item, it is the same, so
that results do not depend on the number of threads. Each thread begins in a place of its own among the items: what it has
in its cache is then what it needs again.

Helpers look for work without a break, which takes a processor as long as the kernel runs. One that keeps the leader waiting,
since other programs want its processor too, gets no more items.
"""

import numpy as np
from numba.core import types

from pointillist.kernels.compiling import routine, spliced
from pointillist.kernels.vectors import writes
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
    _add(team, _DONE, 1)


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
    """What stands at a place; what other threads wrote before they wrote that is seen afterwards."""
    return builder.load_atomic(builder.gep(team.data, [place.value]), "acquire", 8)


@writes()
def _store(builder, team, place, value):
    """Write to a place; who reads it sees all that this thread wrote before."""
    builder.store_atomic(value.value, builder.gep(team.data, [place.value]), "release", 8)


@writes(returns="team")
def _add(builder, team, place, value):
    """Add to what stands at a place, and return what stood there."""
    return builder.atomic_rmw("add", builder.gep(team.data, [place.value]), value.value, "acq_rel")


@writes(returns="team")
def _keep(builder, team, place, bits):
    """Clear all other bits of what stands at a place, and return what stood there."""
    return builder.atomic_rmw("and", builder.gep(team.data, [place.value]), bits.value, "acq_rel")
