"""Writing over a photograph: captions, dates and marks of one or two flat colours, in rows.

Letters have one colour, stand out from their surroundings on all sides, are made of strokes, and stand in rows of equal
height. So colours are looked for that many thin and flat places share; pixels of such a colour fall into islands; islands
that may be letters are joined to rows; and a row is taken when its letters stand on a line and keep to their colour much
better than their surroundings do. Leaves and twigs of one colour do neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from pointillist.retouch.groups import Groups
from pointillist.retouch.specks import opened

Plane = NDArray[np.float32]
Mask = NDArray[np.bool_]

_STROKE = 17  # side of squares that do not fit into a stroke
_STANDS_OUT = 0.12  # of full scale, in at least one channel
_FLAT = 0.06  # range of the four pixels of a flat place
_LIKE = 0.13  # pixels so near to a colour have it
_COLOURS, _FEWEST = 16, 24  # colours tried at most, and flat pixels of one at least
_BINS = 21
_TALLEST, _LONGEST = 120, 10.0  # height in pixels, and width in heights, of an island
_THICKEST = 0.42  # width of a stroke in heights
_ALL_AROUND = 0.85  # share of an island's rim that differs from it
_UNEVEN = 0.05  # deviation of the colour within an island
_EDGE = 0.08  # of full scale: soft edges differ so much from what lies beyond them
_LETTERS = 4  # of a row at least, at the default sensitivity
_UNCLEAR = 0.2  # deviation from the colour, over that of the rims, at most, at the default sensitivity
_ON_LINE, _EVEN, _SOLID = 0.6, 0.3, 0.85  # share of letters on a line, deviation of log strokes, mean fill
_SECOND = (
    0.35,
    0.3,
)  # share of the pixels next to letters that have a second colour, and of those farther away at most
_CROSS = np.ones((3, 3), bool)


@dataclass(frozen=True, eq=False)
class _Islands:
    """Islands of a colour that may be letters: `labels` (height, width) counts them from one; the rest is (islands,)."""

    labels: NDArray[np.int32]
    top: NDArray
    bottom: NDArray
    left: NDArray
    right: NDArray
    stroke: NDArray
    fill: NDArray  # share of the box that the island covers
    own: NDArray  # mean deviation of its pixels from the colour
    rim: NDArray  # and of the pixels around it

    @property
    def height(self) -> NDArray:
        return self.bottom - self.top

    @property
    def width(self) -> NDArray:
        return self.right - self.left

    def chosen(self, taken: Mask) -> "_Islands":
        """Some of the islands, counted anew."""
        numbers = np.zeros(len(taken) + 1, np.int32)
        numbers[1:][taken] = np.arange(1, np.count_nonzero(taken) + 1)
        own = (self.top, self.bottom, self.left, self.right, self.stroke, self.fill, self.own, self.rim)
        return _Islands(numbers[self.labels], *(one[taken] for one in own))


def text_in(values: Plane, polarity: str = "both", sensitivity: float = 0.5) -> Mask:
    """Writing in (height, width, channels) values from 0 to 1."""
    found = np.zeros(values.shape[:2], bool)
    if min(found.shape) < 8:
        return found
    least, unclear = max(2, round(2 * _LETTERS * (1 - sensitivity))), _UNCLEAR * 4 ** (sensitivity - 0.5)
    thin = _thin(values)
    for colour in _colours(values[thin & _flat(values)]):
        away = np.max(np.abs(values - colour), axis=-1)
        islands = _islands(values, away, thin, colour, polarity)
        for members in _rows(islands, least, unclear):
            found |= _written(values, away, islands, members)
    return found


def _thin(values: Plane) -> Mask:
    """Pixels of which a channel stands out from what is wider than a stroke, to either side."""
    thin = np.zeros(values.shape[:2], bool)
    for channel in np.moveaxis(values, -1, 0):
        for side in (channel, 1 - channel):
            thin |= side - opened(side, _STROKE) > _STANDS_OUT
    return thin


def _flat(values: Plane) -> Mask:
    """Pixels of a square of four that all have nearly the same colour."""
    squares = ndimage.maximum_filter(values, (2, 2, 1)) - ndimage.minimum_filter(values, (2, 2, 1))
    even = np.max(squares, axis=-1) <= _FLAT  # of the square that ends at each pixel
    return ndimage.maximum_filter(even, 2, origin=-1)


def _colours(samples: Plane) -> Iterator[Plane]:
    """The most frequent colours (channels,) among samples (samples, channels), the most frequent first."""
    for _ in range(_COLOURS):
        if len(samples) < _FEWEST:
            return
        bins = np.rint(samples * (_BINS - 1)).astype(np.int64)
        flat = bins @ _BINS ** np.arange(samples.shape[1])
        counts = np.bincount(flat, minlength=_BINS ** samples.shape[1]).reshape([_BINS] * samples.shape[1])
        near = ndimage.uniform_filter(counts.astype(np.float32), 3, mode="constant")
        middle = np.array(np.unravel_index(np.argmax(near), near.shape)[::-1]) / np.float32(_BINS - 1)
        around = np.max(np.abs(samples - middle), axis=-1) <= 1.6 / (_BINS - 1)
        if np.count_nonzero(around) < _FEWEST:
            return
        colour = np.median(samples[around], axis=0).astype(np.float32)
        yield colour
        samples = samples[np.max(np.abs(samples - colour), axis=-1) > _LIKE]


def _islands(values: Plane, away: Plane, thin: Mask, colour: Plane, polarity: str) -> _Islands:
    """Islands of a colour that may be letters by their size, their strokes and their rims."""
    labels, count = ndimage.label(away <= _LIKE, _CROSS)
    boxes = ndimage.find_objects(labels)
    ends = np.array([(b[0].start, b[0].stop, b[1].start, b[1].stop) for b in boxes]).reshape(-1, 4).T
    area = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    height, width = ends[1] - ends[0], ends[3] - ends[2]
    zero = np.zeros(count)
    islands = _Islands(
        labels, ends[0], ends[1], ends[2], ends[3], zero, area / np.maximum(height * width, 1), zero, zero
    )
    sized = (height >= 5) & (height <= _TALLEST) & (width <= _LONGEST * height) & (area >= 6)
    inside = (ends[0] > 0) & (ends[2] > 0) & (ends[1] < len(values)) & (ends[3] < values.shape[1])
    islands = islands.chosen(sized & inside)
    if not len(islands.top):
        return islands
    where = np.nonzero(islands.labels)
    own = Groups(islands.labels[where] - 1, len(islands.top))
    near, wide = (ndimage.maximum_filter(islands.labels, side) for side in (3, 5))
    around = np.nonzero((wide > 0) & (near == 0))
    rims = Groups(wide[around] - 1, len(islands.top))
    depth = ndimage.distance_transform_edt(islands.labels > 0)[where]
    islands = replace(islands, stroke=2 * own.largest(depth), own=own.mean(away[where]), rim=rims.mean(away[around]))
    good = (islands.stroke <= _THICKEST * np.maximum(islands.height, islands.width) + 1) & (islands.stroke <= _STROKE)
    good &= np.max([own.spread(values[where][:, c]) for c in range(values.shape[-1])], axis=0) <= _UNEVEN
    good &= own.mean(thin[where].astype(np.float32)) > 0.5
    good &= rims.mean((away[around] > _STANDS_OUT).astype(np.float32)) >= _ALL_AROUND
    if polarity != "both":
        darker = rims.mean((values[around] - colour).mean(axis=-1)) < 0
        good &= darker if polarity == "bright" else ~darker
    return islands.chosen(good)


def _rows(islands: _Islands, least: int, unclear: float) -> Iterator[NDArray]:
    """Numbers of the islands of every row of writing."""
    if len(islands.top) < least:
        return
    count, row = sparse.csgraph.connected_components(_beside(islands), directed=False)
    for number in np.flatnonzero(np.bincount(row, minlength=count) >= least):
        members = np.flatnonzero(row == number)
        if _is_writing(islands, members, unclear):
            yield members


def _beside(islands: _Islands) -> sparse.coo_array:
    """Pairs of islands that can be neighbours in a row: near, of like height and stroke, side by side."""
    order = np.argsort(islands.left, kind="stable")
    reach = 1.3 * np.median(islands.height) + 6
    pairs: list[tuple[int, int]] = []
    for place, i in enumerate(order):
        rest = order[place + 1 :]
        tall = np.maximum(islands.height[i], islands.height[rest])
        gap = islands.left[rest] - islands.right[i]
        overlap = np.minimum(islands.bottom[i], islands.bottom[rest]) - np.maximum(islands.top[i], islands.top[rest])
        low = np.minimum(islands.height[i], islands.height[rest])
        stroke = islands.stroke[rest] / islands.stroke[i]
        good = (gap <= np.maximum(1.1 * tall, min(reach, 12))) & (gap > -0.5 * tall) & (overlap >= 0.6 * low)
        good &= (low >= 0.45 * tall) & (stroke < 1.9) & (stroke > 1 / 1.9)
        pairs.extend((i, j) for j in rest[good])
    size = len(islands.top)
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    return sparse.coo_array((np.ones(len(first)), (first, second)), (size, size))


def _is_writing(islands: _Islands, members: NDArray, unclear: float) -> bool:
    """Whether the letters of a row stand on a line, have like strokes, and keep to their colour."""
    tall = float(np.median(islands.height[members]))
    middle = (islands.left[members] + islands.right[members]) / 2
    if np.median(islands.own[members]) > unclear * np.median(islands.rim[members]):
        return False
    if np.std(np.log(islands.stroke[members])) > _EVEN or np.mean(islands.fill[members]) > _SOLID:
        return False
    near = 0.07 * tall + 0.6
    return max(_on_line(middle, ends[members], near) for ends in (islands.bottom, islands.top)) >= _ON_LINE


def _on_line(along: NDArray, ends: NDArray, near: float) -> float:
    """Share of the letters that stand on the line through the ends of most of them."""
    slopes = np.subtract.outer(ends, ends)[np.triu_indices(len(ends), 1)]
    runs = np.subtract.outer(along, along)[np.triu_indices(len(ends), 1)]
    far = np.abs(runs) > 1
    slope = float(np.median(slopes[far] / runs[far])) if far.any() else 0.0
    left = ends - slope * along
    return float(np.mean(np.abs(left - np.median(left)) <= near))


def _written(values: Plane, away: Plane, islands: _Islands, members: NDArray) -> Mask:
    """Pixels of a row: its letters, what else of the colour lies within it, and soft edges and rims."""
    tall = int(np.median(islands.height[members]))
    top, left = max(islands.top[members].min() - tall // 2, 0), max(islands.left[members].min() - tall, 0)
    box = slice(top, islands.bottom[members].max() + tall // 2), slice(left, islands.right[members].max() + tall)
    found = np.zeros(away.shape, bool)
    letters = _within(away[box], 1.5 * float(np.median(islands.own[members])) + 0.01) | np.isin(
        islands.labels[box], members + 1
    )
    letters |= _second(values[box], letters)
    beyond = ndimage.binary_dilation(letters, _CROSS, 3)
    edge = ndimage.binary_dilation(letters, _CROSS) & ~letters
    rows, columns = ndimage.distance_transform_edt(beyond, return_distances=False, return_indices=True)[:, edge]
    letters[edge] = np.max(np.abs(values[box][edge] - values[box][rows, columns]), axis=-1) > _EDGE
    found[box] = letters
    return found


def _within(away: Plane, most: float) -> Mask:
    """Islands that keep to the colour and do not touch the border: dots and marks, and letters of which too little is."""
    labels, count = ndimage.label(away <= _LIKE, _CROSS)
    inner = np.append(False, Groups(labels[labels > 0] - 1, count).mean(away[labels > 0]) <= most)
    for line in (labels[0], labels[-1], labels[:, 0], labels[:, -1]):
        inner[line] = False
    return inner[labels]


def _second(values: Plane, letters: Mask) -> Mask:
    """A rim or shadow: pixels of a second colour that lies next to the letters, and not farther away."""
    away = ndimage.distance_transform_edt(~letters)
    next_to, farther = (away > 1) & (away <= 2.3), (away > 7) & (away <= 10)
    colour = next(_colours(values[next_to]), None)
    if colour is None:
        return np.zeros_like(letters)
    like = np.max(np.abs(values - colour), axis=-1) <= _LIKE
    if like[next_to].mean() < _SECOND[0] or (farther.any() and like[farther].mean() > _SECOND[1]):
        return np.zeros_like(letters)
    near = (like & (away <= 7)) | (away <= 1.5)
    labels, count = ndimage.label(near, _CROSS)
    touching = np.zeros(count + 1, bool)
    touching[labels[letters]] = True
    return touching[labels] & like & ~letters
