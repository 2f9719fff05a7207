"""Sweeps over filters with block-Toeplitz sums: one filter after the other, and most of their products in threads.

Filters are taken in groups. All that a gradient is made of but the filters that come before its own in the group does not
change while the group is updated, so that threads share it. What is left is added filter by filter.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.kernels import statistics
from pointillist.parallel import SharedMap

_GROUP = 25
"""Filters of a group at most: fewer would make threads wait for each other more often, more would leave them less to do."""
_WORTH_THREADS = 2**24
"""Products of a group with all filters from which on threads share them: half a millisecond of them."""

Span = tuple[int, int]
Part = tuple[Span, bool, statistics.Sums]


def sweep_filters(
    toeplitz: statistics.Toeplitz,
    scale: float,
    linear: NDArray,
    chosen: NDArray,
    lipschitz: NDArray,
    constraints: FilterConstraints,
    filters: NDArray,
    n_jobs: int = 1,
) -> None:
    """One pass of projected block coordinate descent over the chosen filters, in place.

    Parameters
    ----------
    toeplitz : Toeplitz
        C.
    scale : float
        What C is multiplied by.
    linear : (n_chosen, channels, n_taps) array
        B of the chosen filters, scaled already.
    chosen : (n_chosen,) int array
    lipschitz : (n_chosen,) array
        Bounds of the curvatures, scaled already; filters with none stay as they are.
    constraints : FilterConstraints
        Without a rank.
    filters : (n_filters, channels, n_taps) array
    n_jobs : int
        Threads; the filters do not depend on it.
    """
    n_filters, n_channels, n_taps = filters.shape
    support = np.ones((n_filters, n_taps), bool)
    if constraints.support is not None:
        support = constraints.support.reshape(support.shape)
    products = min(_GROUP, len(chosen)) * n_filters * n_channels * n_taps**2
    threads = min(n_jobs, _GROUP) if products >= _WORTH_THREADS else 1
    sums = statistics.make_sums(toeplitz, filters, _GROUP)
    gradient = np.empty_like(filters[0])
    rooms = [sums._replace(block=np.zeros_like(sums.block)) for _ in range(threads)]
    mapper = SharedMap(threads)
    for span in _spans(len(chosen), -(-len(chosen) // _GROUP)):
        some = slice(*span)
        group = chosen[some]
        ranks = np.full(n_filters, -1)
        ranks[group] = np.arange(len(group))

        def work(part: Part, group: NDArray = group, ranks: NDArray = ranks, some: slice = some) -> None:
            (first, last), moves, room = part
            statistics.sweep_group(
                toeplitz, scale, linear[some], group, first, last, moves, lipschitz[some], support,
                constraints.zero_mean, constraints.nonnegative, filters, ranks, room, gradient,
            )  # fmt: skip

        mapper(work, ((part, False, room) for part, room in zip(_spans(len(group), threads), rooms, strict=True)))
        work(((0, len(group)), True, rooms[0]))


def _spans(count: int, parts: int) -> list[Span]:
    """Cut the numbers 0 … count − 1 into parts of about equal length."""
    return list(pairwise(count * i // max(parts, 1) for i in range(parts + 1)))
