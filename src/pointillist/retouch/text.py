"""Writing over a photograph: captions, dates and marks of one or two flat colours, in rows.

Letters have one colour, stand out from their surroundings on all sides, are made of strokes, and stand in rows of equal
height. So colours are looked for that many thin and flat places share; pixels of such a colour fall into islands; islands
that may be letters are joined to rows; and a row is taken when its letters stand on a line and keep to their colour much
better than their surroundings do. Leaves and twigs of one colour do neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse, stats

from pointillist.retouch.dust import Groups, opened, renumbered
from pointillist.retouch.marks import connected

Plane = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.finding``; colours are of full scale, in the channel that differs most."""

    stroke: int = 17
    """Side of squares that do not fit into a stroke, in pixels."""
    stands_out: float = 0.12
    """Contrast of letters and their surroundings at least."""
    like: float = 0.13
    """Difference from a colour of pixels that have it."""
    all_around: float = 0.85
    """Share of a letter's rim that differs from it at least."""
    uneven: float = 0.05
    """Deviation of the colour within a letter at most."""
    letters: int = 4
    """Letters of a row at least, at the default sensitivity."""
    unclear: float = 0.2
    """Deviation from the colour, over that of the rims, at most, at the default sensitivity."""


TUNING = Tuning()

_EIGHT = np.ones((3, 3), bool)


def text_in(values: Plane, polarity: str = "both", sensitivity: float = 0.5) -> Mask:
    """Writing in (height, width, channels) values from 0 to 1."""
    found = np.zeros(values.shape[:2], bool)
    if min(found.shape) < 8:
        return found
    least, unclear = max(2, round(2 * TUNING.letters * (1 - sensitivity))), TUNING.unclear * 4 ** (sensitivity - 0.5)
    thin = np.zeros_like(found)
    for channel in np.moveaxis(values, -1, 0):
        for side in (channel, 1 - channel):
            thin |= side - opened(side, TUNING.stroke) > TUNING.stands_out
    # Flat: pixels of a square of four that all have nearly the same colour.
    squares = ndimage.maximum_filter(values, (2, 2, 1)) - ndimage.minimum_filter(values, (2, 2, 1))
    flat = ndimage.maximum_filter(np.max(squares, axis=-1) <= 0.06, 2, origin=-1)
    for colour in _colours(values[thin & flat]):
        away = np.max(np.abs(values - colour), axis=-1)
        labels, letters = _letters(values, away, thin, colour, polarity)
        for members in _rows(letters, least):
            row = letters[members]
            if np.median(row.own) <= unclear * np.median(row.rim) and _is_aligned(row):
                found |= _written(values, away, np.isin(labels, members + 1), row)
    return found


def _colours(samples: Plane) -> Iterator[Plane]:
    """At most 16 frequent colours (channels,) among samples (samples, channels), the most frequent first."""
    bins = 21
    shape = [bins] * samples.shape[1]
    for _ in range(16):
        flat = np.rint(samples * (bins - 1)).astype(np.int64) @ bins ** np.arange(len(shape))
        counts = np.bincount(flat, minlength=bins ** len(shape)).reshape(shape)
        near = ndimage.uniform_filter(counts.astype(np.float32), 3, mode="constant")
        middle = np.array(np.unravel_index(np.argmax(near), shape)[::-1]) / np.float32(bins - 1)
        around = np.max(np.abs(samples - middle), axis=-1) <= 1.6 / (bins - 1)
        if np.count_nonzero(around) < 24:
            return
        colour = np.median(samples[around], axis=0).astype(np.float32)
        yield colour
        samples = samples[np.max(np.abs(samples - colour), axis=-1) > TUNING.like]


def _letters(values: Plane, away: Plane, thin: Mask, colour: Plane, polarity: str) -> tuple[NDArray, np.recarray]:
    """Islands of a colour that may be letters by their size, their strokes and their rims.

    An array (height, width) counts them from one. Records tell their ends, the share of their box that they cover, the
    width of their strokes, and the mean difference from the colour of their own pixels and of their rims.
    """
    labels, _ = ndimage.label(away <= TUNING.like, _EIGHT)
    ends = np.array([[s for axis in box for s in (axis.start, axis.stop)] for box in ndimage.find_objects(labels)])
    top, bottom, left, right = ends.reshape(-1, 4).T
    height, width = bottom - top, right - left
    area = np.bincount(labels.ravel(), minlength=len(top) + 1)[1:]
    sized = (height >= 5) & (height <= 120) & (width <= 10.0 * height) & (area >= 6)
    sized &= (top > 0) & (left > 0) & (bottom < len(values)) & (right < values.shape[1])
    labels, count = renumbered(labels, sized), int(np.count_nonzero(sized))
    near, wide = (ndimage.maximum_filter(labels, side) for side in (3, 5))
    where, around = np.nonzero(labels), np.nonzero((wide > 0) & (near == 0))
    own, rims = Groups(labels[where] - 1, count), Groups(wide[around] - 1, count)
    stroke = 2 * own.largest(ndimage.distance_transform_edt(labels > 0)[where])
    shape = [one[sized] for one in (top, bottom, left, right, area / (height * width))]
    columns = [*shape, stroke, own.mean(away[where]), rims.mean(away[around])]
    letters = np.rec.fromarrays(
        columns, formats=["i8"] * 4 + ["f8"] * 4, names="top, bottom, left, right, cover, stroke, own, rim"
    )
    good = (stroke <= 0.42 * np.maximum(height, width)[sized] + 1) & (stroke <= TUNING.stroke)
    good &= own.spread(values[where]).max(axis=-1) <= TUNING.uneven
    good &= own.mean(thin[where]) > 0.5
    good &= rims.mean(away[around] > TUNING.stands_out) >= TUNING.all_around
    if polarity != "both":
        darker = rims.mean((values[around] - colour).mean(axis=-1)) < 0
        good &= darker if polarity == "bright" else ~darker
    return renumbered(labels, good), letters[good]


def _rows(letters: np.recarray, least: int) -> Iterator[NDArray]:
    """Numbers of the letters of every row: islands that are near, of like height and stroke, side by side."""
    size, height = len(letters), letters.bottom - letters.top
    if size < least:
        return
    reach = min(1.3 * np.median(height) + 6, 12)
    links = []
    for i, one in enumerate(letters):
        tall, low = np.maximum(height[i], height), np.minimum(height[i], height)
        gap = letters.left - one.right
        overlap = np.minimum(one.bottom, letters.bottom) - np.maximum(one.top, letters.top)
        good = (gap <= np.maximum(1.1 * tall, reach)) & (gap > -0.5 * tall) & (overlap >= 0.6 * low)
        good &= (low >= 0.45 * tall) & (np.abs(np.log(letters.stroke / one.stroke)) < np.log(1.9))
        links.append(np.flatnonzero(good & (letters.left >= one.left)))
    ends = np.cumsum([0, *map(len, links)])
    graph = sparse.csr_array((np.ones(ends[-1]), np.concatenate(links), ends), (size, size))
    _, row = sparse.csgraph.connected_components(graph, directed=False)
    for number in np.flatnonzero(np.bincount(row) >= least):
        yield np.flatnonzero(row == number)


def _is_aligned(letters: np.recarray) -> bool:
    """True where the letters of a row have like strokes, and three of five stand on a line or hang from one."""
    if np.std(np.log(letters.stroke)) > 0.3 or np.mean(letters.cover) > 0.85:
        return False
    near = 0.07 * float(np.median(letters.bottom - letters.top)) + 0.6
    middle = (letters.left + letters.right) / 2
    for ends in (letters.bottom, letters.top):
        left = ends - stats.theilslopes(ends, middle).slope * middle
        if np.mean(np.abs(left - np.median(left)) <= near) >= 0.6:
            return True
    return False


def _written(values: Plane, away: Plane, members: Mask, letters: np.recarray) -> Mask:
    """Pixels of a row: its letters, what else of the colour lies within it, soft edges, and a rim or shadow."""
    tall = int(np.median(letters.bottom - letters.top))
    top, left = max(letters.top.min() - tall // 2, 0), max(letters.left.min() - tall, 0)
    box = slice(top, letters.bottom.max() + tall // 2), slice(left, letters.right.max() + tall)
    values, away, row = values[box], away[box], members[box]
    # Dots and marks, and letters of which too little is: islands that keep to the colour and do not touch the border.
    labels, count = ndimage.label(away <= TUNING.like, _EIGHT)
    most = 1.5 * float(np.median(letters.own)) + 0.01
    inner = np.append(False, Groups(labels[labels > 0] - 1, count).mean(away[labels > 0]) <= most)
    for line in (labels[0], labels[-1], labels[:, 0], labels[:, -1]):
        inner[line] = False
    row = row | inner[labels]
    # A rim or shadow: pixels of a second colour that lies next to the letters, and not farther away.
    apart = ndimage.distance_transform_edt(~row)
    next_to, farther = (apart > 1) & (apart <= 2.3), (apart > 7) & (apart <= 10)
    for colour in islice(_colours(values[next_to]), 1):
        like = np.max(np.abs(values - colour), axis=-1) <= TUNING.like
        if like[next_to].mean() >= 0.35 and not (farther.any() and like[farther].mean() > 0.3):
            row |= like & connected(row, (like & (apart <= 7)) | (apart <= 1.5))
    row |= ndimage.binary_dilation(row, _EIGHT) & (away < 0.8 * np.median(letters.rim))
    found = np.zeros(members.shape, bool)
    found[box] = row
    return found
