"""Where the codes of a signal are kept, by bucket, slot and number, and in which order lanes take a filter's samples."""

from functools import cache
from typing import Any

import numpy as np

from pointillist.cuda.banks import BANKS, lane_order, tap_offsets
from pointillist.cuda.plan import KernelPlan


def pack(plan: KernelPlan, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bucket number and packed code of flat code indices (filter · n_positions + position)."""
    filters, positions = indices // plan.n_positions, indices % plan.n_positions
    lines, columns = positions // plan.grid[2], positions % plan.grid[2]
    layers, rows = lines // plan.grid[1], lines % plan.grid[1]
    bucket = (layers // plan.bucket[0] * plan.buckets[1] + rows // plan.bucket[1]) * plan.buckets[2]
    codes = filters << 12 | layers % plan.bucket[0] << plan.lift | rows % plan.bucket[1] << plan.shift
    return bucket + columns // plan.bucket[2], (codes | columns % plan.bucket[2]).astype(np.int32)


def slots(buckets: np.ndarray, capacity: int, xp: Any = np) -> tuple[np.ndarray, np.ndarray]:
    """Number the codes of every bucket, and say which of them find room there; `xp` is NumPy or CuPy."""
    order = xp.argsort(buckets, kind="stable")
    ordered = buckets[order]
    number = xp.empty_like(order)
    number[order] = xp.arange(len(buckets)) - xp.searchsorted(ordered, ordered)
    return number, number < capacity


def lane_taps(plan: KernelPlan, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Filters (n, taps) with their samples in the order in which the lanes of a warp take them, and that order.

    Both are padded to whole warps, the filters by zeros. The order is (2, padded taps) int32: numbers of samples, and where
    these lie in the padded signal from a filter's first. Samples that a lane loads at once lie together in the filters.
    """
    lanes = _lanes(plan)
    filters = np.zeros((len(flat), lanes.shape[1]), np.float32)
    filters[:, : plan.taps] = flat[:, lanes[0, : plan.taps]]
    together = filters.reshape(len(flat), -1, at_once(plan), BANKS).swapaxes(2, 3)
    return np.ascontiguousarray(together).reshape(filters.shape), lanes


def at_once(plan: KernelPlan) -> int:
    """Samples of a filter that a lane loads at once, of those that it has: AT_ONCE of `common.cuh`."""
    share = -(-plan.taps // BANKS)
    return next(count for count in (4, 2, 1) if share % count == 0)


@cache
def _lanes(plan: KernelPlan) -> np.ndarray:
    order = lane_order(tap_offsets(plan.channels, plan.filter, plan.window))
    lanes = np.stack([order, tap_offsets(plan.channels, plan.filter, plan.padded)[order]]).astype(np.int32)
    return np.pad(lanes, [(0, 0), (0, -plan.taps % BANKS)], mode="edge")
