"""Opaque lines with hard edges, such as a pen, a knife or a paint program leaves: one flat colour, of nearly one width.

Nature and lenses make soft edges and uneven colours. So pixels are looked for that lie, along a row or a column, between two
jumps of the same sign a few pixels apart, and do not change between them. Such pixels of one colour, joined, are a line when
they reach far, are narrow, and keep to their colour.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pointillist.retouch.groups import Groups

Plane = NDArray[np.float32]
Mask = NDArray[np.bool_]

_WIDEST = 12  # pixels between two jumps
_JUMP = 0.1  # of full scale, in one channel, from one pixel to the next
_EVEN = 0.025  # neighbours of one line differ by no more
_UNEVEN = 0.015  # deviation of the colour within a line
_REACH = 24.0  # pixels that a line is long at least, at the default sensitivity
_SLENDER = 6.0  # widths that it is long at least
_STEEP = 4.0  # times as long lines are needed at the smallest sensitivity as at the largest
_NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1))


def lines_in(values: Plane, polarity: str = "both", sensitivity: float = 0.5) -> Mask:
    """Lines of one flat colour in (height, width, channels) values from 0 to 1."""
    found = np.zeros(values.shape[:2], bool)
    reach = _REACH * _STEEP ** (0.5 - sensitivity)
    for sign in (1, -1):
        if polarity == {1: "dark", -1: "bright"}[sign]:
            continue
        between = np.zeros_like(found)
        for channel in np.moveaxis(values, -1, 0):
            between |= _between(sign * channel) | _between(sign * channel.T).T
        found |= _slender(values, between, reach)
    return found


def _between(plane: Plane) -> Mask:
    """Pixels of a plane that lie, in their row, between a jump up and a jump down at most so many pixels behind it."""
    steps = np.diff(plane, axis=1)
    up, down = (np.pad(jump, ((0, 0), (1, 1))) for jump in (steps > _JUMP, steps < -_JUMP))
    uneven = np.pad(np.abs(steps) > _EVEN, ((0, 0), (1, 1)))
    columns = np.arange(plane.shape[1])
    begun = np.maximum.accumulate(np.where(up[:, :-1], columns, -_WIDEST - 1), axis=1)
    broken = np.maximum.accumulate(np.where(uneven[:, :-1], columns, -1), axis=1)
    ended = np.minimum.accumulate(np.where(down[:, 1:], columns, len(columns) + _WIDEST)[:, ::-1], axis=1)[:, ::-1]
    stopped = np.minimum.accumulate(np.where(uneven[:, 1:], columns, len(columns))[:, ::-1], axis=1)[:, ::-1]
    return (begun == broken) & (ended == stopped) & (ended - begun < _WIDEST)


def _slender(values: Plane, between: Mask, reach: float) -> Mask:
    """Those of the pixels that form far-reaching, narrow islands of one colour."""
    found = np.zeros_like(between)
    rows, columns = np.nonzero(between)
    if not len(rows):
        return found
    count, owner = _islands(values, between)
    islands = Groups(owner, count)
    length = np.hypot(islands.extent(rows), islands.extent(columns))
    width = islands.size / length
    good = (length >= reach) & (length >= _SLENDER * width)
    colours = values[rows, columns]
    good &= np.max([islands.spread(one) for one in colours.T], axis=0) <= _UNEVEN
    found[rows, columns] = good[owner]
    return found


def _islands(values: Plane, between: Mask) -> tuple[int, NDArray[np.int32]]:
    """Pixels joined to neighbours of their colour: how many islands, and the number of each pixel's island."""
    total = int(np.count_nonzero(between))
    number = np.full(between.shape, -1)
    number[between] = np.arange(total)
    pairs = []
    for down, right in _NEIGHBOURS:
        here = slice(0, -down or None), slice(max(-right, 0), -right if right > 0 else None)
        there = slice(down, None), slice(max(right, 0), right if right < 0 else None)
        both = between[here] & between[there]
        same = np.max(np.abs(values[here][both] - values[there][both]), axis=-1) <= _EVEN
        pairs.append((number[here][both][same], number[there][both][same]))
    first, second = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    graph = sparse.coo_array((np.ones(len(first), bool), (first, second)), (total, total))
    return sparse.csgraph.connected_components(graph, directed=False)
