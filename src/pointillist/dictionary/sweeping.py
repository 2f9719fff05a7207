"""Sweeps over filters with block-Toeplitz sums: one filter after the other, and most of their products in threads.

Filters are taken in groups. What the filters outside of a group add to its gradients does not change while the group is
updated, so that threads share it. What is left, the products of the group with itself, is computed filter by filter.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pointillist.backends import statistics
from pointillist.dictionary.constraints import FilterConstraints

_GROUP = 24
"""Filters of a group: fewer would make threads wait for each other more often, more would leave them less to do."""
_WORTH_THREADS = 2**24
"""Products of a group with the other filters from which on threads share them: half a millisecond of them."""

Span = tuple[int, int]


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
    blocks = [np.zeros_like(sums.block) for _ in range(threads)]
    with ThreadPoolExecutor(max(threads - 1, 1)) as pool:  # starts no thread before it is given work
        for begin in range(0, len(chosen), _GROUP):
            some = slice(begin, begin + _GROUP)
            group = chosen[some]
            members = np.zeros(n_filters, bool)
            members[group] = True

            def work(span: Span, block: NDArray, group: NDArray = group, members: NDArray = members) -> None:
                own = sums._replace(block=block)
                statistics.add_others(toeplitz, scale, n_channels, group, *span, members, own)

            _share(pool, work, len(group), blocks)
            statistics.sweep_group(
                toeplitz, scale, linear[some], group, lipschitz[some], support, constraints.zero_mean,
                constraints.nonnegative, filters, members, sums, np.empty_like(filters[0]),
            )  # fmt: skip


def _share(pool: ThreadPoolExecutor, work: Callable[[Span, NDArray], None], count: int, blocks: list[NDArray]) -> None:
    """Share out the numbers 0 … count − 1 between threads, each with its own block; this thread takes the first."""
    ends = np.linspace(0, count, len(blocks) + 1).astype(int).tolist()
    (own, block), *others = zip(pairwise(ends), blocks, strict=True)
    waiting = [pool.submit(work, *other) for other in others]
    work(own, block)
    for future in waiting:
        future.result()
