"""Where the codes of a signal are kept: which bucket, in which of its slots, and as which number."""

from typing import Any

import numpy as np

from pointillist.backends.cuda.plan import KernelPlan


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
