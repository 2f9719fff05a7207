"""Pictures with holes at half, a quarter, an eighth of their size: large holes are small there.

A coarse pixel is the mean of the known ones among its four. Doubling is bilinear between the middles of pixels.
"""

import numpy as np
from numpy.typing import NDArray

from pointillist.restore.tiling import Box


def halved(planes: NDArray, known: NDArray) -> tuple[NDArray, NDArray]:
    """Planes at half the size, rounded up, and which of their pixels are known.

    planes: (channels, height, width), read where known; known: (1 or channels, height, width) bool.
    """
    ends = [(0, n % 2) for n in planes.shape[1:]]
    weights = np.pad(known, [(0, 0), *ends]).astype(planes.dtype)
    sums = np.pad(np.where(known, planes, 0), [(0, 0), *ends])
    total, count = (_fours(x) for x in (sums, weights))
    return total / np.maximum(count, 1), count > 0


def _fours(x: NDArray) -> NDArray:
    rows = x[:, ::2] + x[:, 1::2]
    return rows[:, :, ::2] + rows[:, :, 1::2]


def doubled(planes: NDArray, box: Box) -> NDArray:
    """Coarse planes (channels, height, width) at twice their size, cut to a box that is given in fine pixels."""
    first = [max(ends.start // 2 - 2, 0) for ends in box]
    last = [-(-ends.stop // 2) + 2 for ends in box]
    fine = planes[:, first[0] : last[0], first[1] : last[1]]
    for axis in (1, 2):
        fine = _stretched(fine, axis)
    top, left = (ends.start - 2 * start for ends, start in zip(box, first, strict=True))
    height, width = (ends.stop - ends.start for ends in box)
    return fine[:, top : top + height, left : left + width]


def _stretched(x: NDArray, axis: int) -> NDArray:
    """Twice as long along an axis: each coarse pixel becomes two, a quarter of the way towards its neighbours."""
    x = np.moveaxis(x, axis, -1)
    before = np.concatenate([x[..., :1], x[..., :-1]], axis=-1)
    after = np.concatenate([x[..., 1:], x[..., -1:]], axis=-1)
    out = np.empty((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    out[..., ::2] = 0.75 * x + 0.25 * before
    out[..., 1::2] = 0.75 * x + 0.25 * after
    return np.moveaxis(out, -1, axis)


def without_holes(planes: NDArray, known: NDArray) -> NDArray:
    """Planes (channels, height, width) with unknown pixels taken from the finest coarser picture that knows them.

    `known` is (1 or channels, height, width). A plane of which nothing is known becomes zero.
    """
    if np.all(known):
        return planes
    if planes.shape[1:] == (1, 1):
        return np.where(known, planes, 0).astype(planes.dtype)
    coarse, there = halved(planes, known)
    full = without_holes(coarse, there)
    box = (slice(0, planes.shape[1]), slice(0, planes.shape[2]))
    return np.where(known, planes, doubled(full, box))
