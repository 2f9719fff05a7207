"""The window of samples that a block has in shared memory, and how a warp meets it: few of its lanes wait for each other.

Shared memory has 32 banks, and lanes that meet different words of one bank are served one after the other. It depends on
the order in which the lanes take the samples of a filter, 32 at a time, and on how long the rows of the window are.
"""

from functools import cache
from math import prod

import numpy as np

BANKS = 32

_SPARE = 16  # columns that a row may get behind its samples

Shape = tuple[int, int, int]
"""Layers, rows and columns."""


def tile_window(grid: Shape, filter_: Shape, bucket: Shape, tile: Shape) -> Shape:
    """Layers, rows and columns of the residual that the codes of a tile touch."""
    axes = zip(bucket, tile, grid, filter_, strict=True)
    layers, rows, columns = (min(b * t, g) + f - 1 for b, t, g, f in axes)
    return layers, rows, columns


def tile_bytes(grid: Shape, filter_: Shape, channels: int, bucket: Shape, tile: Shape) -> int:
    """Bytes of the samples that the codes of a tile touch, in float32, and of one number for each bucket."""
    return 4 * (channels * prod(tile_window(grid, filter_, bucket, tile)) + prod(tile))


def tap_offsets(channels: int, filter_: Shape, shape: Shape) -> np.ndarray:
    """Where the samples of a filter lie from its first, in a signal (channels, *shape)."""
    places = np.unravel_index(np.arange(channels * prod(filter_)), (channels, *filter_))
    return np.ravel_multi_index(places, (channels, *shape))


def lane_order(offsets: np.ndarray) -> np.ndarray:
    """An order of samples at some offsets in which each 32 of them meet a bank as rarely as possible."""
    banks = offsets % BANKS
    by_bank = np.argsort(banks, kind="stable")
    number = np.empty_like(by_bank)  # of a sample among those of its bank
    number[by_bank] = np.arange(len(banks)) - np.searchsorted(banks[by_bank], banks[by_bank])
    return np.lexsort((banks, number))


def turns(offsets: np.ndarray) -> int:
    """How often shared memory is asked until all samples at some offsets are there, 32 of them in a request."""
    requests = np.split(offsets, range(BANKS, len(offsets), BANKS))
    return sum(int(np.max(np.bincount(np.unique(request) % BANKS))) for request in requests)


@cache
def best_pitch(channels: int, filter_: Shape, window: Shape, room: int) -> int:
    """How long the rows of a window should be, from its columns on, for filters to be met in the fewest turns.

    The window may have `room` samples in all channels.
    """
    layers, rows, columns = window
    most = max(columns, min(room // (channels * layers * rows), columns + _SPARE))

    def cost(pitch: int) -> int:
        offsets = tap_offsets(channels, filter_, (layers, rows, pitch))
        return turns(offsets[lane_order(offsets)])

    return min(range(columns, most + 1), key=cost)
