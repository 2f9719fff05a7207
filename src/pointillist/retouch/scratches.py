"""Scratches: a small network judges every pixel, and opaque lines with hard edges are found by their flat colour.

The network is fitted by ``scripts/learn_scratches.py`` to scratches with soft edges painted into photographs. Pictures go
through four sizes, from a half to a sixteenth, and back. Planes of one size lie in one array (height, width, channels), so
that a convolution is nine products of matrices.

A pen, a knife or a paint program leaves one flat colour of nearly one width; nature and lenses make soft edges and uneven
colours. So pixels are looked for that lie, along a row or a column, between two jumps of the same sign a few pixels apart,
and do not change between them. Such pixels of one colour, joined, are a line when they reach far, are narrow, and keep to
their colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from pointillist.retouch.dust import Groups
from pointillist.storage import read_arrays

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

GRID = 16
"""Pixels by which a picture may be shifted without changing the network's answer, away from its borders."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.finding``."""

    lower: float = 1.5
    """Log-odds below those needed, from which on pixels beside sure ones belong to the same scratch."""
    fewest: int = 50
    """Sure pixels that a scratch has."""
    softness: float = 0.7
    """Blur, in pixels, of a second look, in which hard and opaque scratches resemble those that were learned from."""
    paleness: float = 0.6
    """Contrast of that look."""
    doubt: float = 2.0
    """Log-odds taken off there."""
    jump: float = 0.1
    """Step of a jump, of full scale, in one channel, from one pixel to the next."""
    reach: float = 24.0
    """Length of a line in pixels at least, at the default sensitivity."""


TUNING = Tuning()


def scratch_odds(values: Floats) -> Floats:
    """Log-odds (2, height, width) of bright and of dark scratches in (height, width, channels) values from 0 to 1.

    A softer and paler copy is looked at, too; of what is seen there alone the network has to be surer.
    """
    network, colours = load_network(), np.broadcast_to(values, (*values.shape[:2], 3))
    softer = ndimage.gaussian_filter(colours, (TUNING.softness, TUNING.softness, 0)) - np.float32(0.5)
    second = log_odds(network, np.float32(TUNING.paleness) * softer + np.float32(0.5)) - np.float32(TUNING.doubt)
    return np.maximum(second, log_odds(network, colours))


def scratches_of(odds: Floats, needed: float) -> Mask:
    """Islands of pixels of nearly the log-odds needed (height, width) that hold enough pixels of as much."""
    labels, count = ndimage.label(odds > needed - TUNING.lower, np.ones((3, 3)))
    sure = np.bincount(labels[odds > needed], minlength=count + 1) >= TUNING.fewest
    sure[0] = False
    return sure[labels]


@dataclass(frozen=True, eq=False)
class Layer:
    """A convolution: `taps` (side², inputs, outputs) in the order of rows and columns, and `biases` (outputs,)."""

    taps: Floats
    biases: Floats

    def __call__(self, planes: Floats) -> Floats:
        """The convolution of planes (height, width, inputs), with zeros around them."""
        height, width = planes.shape[:2]
        reach = 1 if len(self.taps) == 9 else 0
        padded = np.pad(planes, ((reach, reach), (reach, reach), (0, 0)))
        answer = np.tile(self.biases, (height, width, 1))
        for number, tap in enumerate(self.taps):
            row, column = divmod(number, 2 * reach + 1)
            answer += padded[row : row + height, column : column + width] @ tap
        return answer


def _plus(planes: Floats, other: Floats | float = 0.0) -> Floats:
    """Planes after others were added and all that is negative was cut off, in place."""
    planes += other
    return np.maximum(planes, 0, out=planes)


def log_odds(layers: Mapping[str, Layer], values: Floats) -> Floats:
    """Log-odds (2, height, width) of scratches, brighter and darker than what they cover, in values (height, width, 3)."""
    height, width = values.shape[:2]
    ends = [(0, -length % GRID) for length in (height, width)]
    picture = np.pad(values, [*ends, (0, 0)], mode="edge") - np.float32(0.5)
    rows, columns = (n // 2 for n in picture.shape[:2])
    # Two by two pixels are channels of one, by colours first.
    planes, kept = picture.reshape(rows, 2, columns, 2, 3).transpose(0, 2, 4, 1, 3).reshape(rows, columns, 12), []
    for level in range(4):
        if level:
            planes = np.maximum.reduce([planes[i::2, j::2] for i in (0, 1) for j in (0, 1)])
        planes = _plus(layers[f"down.{level}"](planes))
        planes = _plus(layers[f"keep.{level}"](planes), planes)
        kept.append(planes)
    planes = _plus(layers["last"](planes), planes)
    for level in (2, 1, 0):
        lifted = layers[f"lift.{level}"](planes).repeat(2, 0).repeat(2, 1)
        planes = _plus(layers[f"join.{level}"](_plus(lifted, kept[level])))
        planes = _plus(layers[f"end.{level}"](planes), planes)
    pixels = layers["head"](planes).reshape(rows, columns, 2, 2, 2).transpose(2, 0, 3, 1, 4)
    return pixels.reshape(2, 2 * rows, 2 * columns)[:, :height, :width]


@cache
def load_network() -> dict[str, Layer]:
    """The layers that come with the package, by the names of ``scripts/learn_scratches.py``.

    Weights are stored as whole numbers, with a factor for each output.
    """
    with resources.as_file(resources.files(__package__).joinpath("scratches.safetensors")) as path:
        arrays = read_arrays(path, "network").arrays
    layers = {}
    for name in {name.rsplit(".", 1)[0] for name in arrays}:
        weights = arrays[f"{name}.weights"] * arrays[f"{name}.factors"][:, None, None, None]
        taps = weights.reshape(*weights.shape[:2], -1).T.astype(np.float32)
        layers[name] = Layer(np.ascontiguousarray(taps), arrays[f"{name}.biases"])
    return layers


def lines_in(values: Floats, sensitivity: float = 0.5) -> Mask:
    """Lines of one flat colour, brighter than their surroundings, in (height, width, channels) values from 0 to 1."""
    if values.size == 0:
        return np.zeros(values.shape[:2], bool)
    planes = np.moveaxis(values, -1, 0)
    between = np.any([_between(plane) | _between(plane.T).T for plane in planes], axis=0)
    return _slender(values, between, TUNING.reach * 4 ** (0.5 - sensitivity))


def _between(plane: Floats) -> Mask:
    """Pixels of a plane that lie, in their row, between a jump up and a jump down at most so many pixels behind it."""
    steps = np.pad(np.diff(plane, axis=1), ((0, 0), (1, 0)))
    uneven = np.abs(steps) > 0.025
    uneven[:, 0] = True
    starts = np.flatnonzero(uneven)  # of runs of one colour
    widths = np.diff(starts, append=plane.size)
    before = steps.ravel()[starts]
    behind = np.append(before[1:], 0)
    inside = (before > TUNING.jump) & (behind < -TUNING.jump) & (widths < 12)
    return np.repeat(inside, widths).reshape(plane.shape)


def _slender(values: Floats, between: Mask, reach: float) -> Mask:
    """Those of the pixels that form far-reaching, narrow islands of one colour, joined to neighbours of their colour."""
    width = between.shape[1]
    colours, flat = values.reshape(between.size, -1), np.pad(between.ravel(), (0, width + 1))
    places, number, pairs = np.flatnonzero(flat), np.cumsum(flat) - 1, []
    for ahead in (1, width - 1, width, width + 1):  # the neighbours to the right and below
        first = places[flat[places + ahead]]
        same = np.max(np.abs(colours[first] - colours[first + ahead]), axis=-1) <= 0.025
        pairs.append(number[np.stack([first, first + ahead])[:, same]])
    links = np.concatenate(pairs, axis=1)
    graph = sparse.coo_array((np.ones(links.shape[1], bool), tuple(links)), (len(places), len(places)))
    islands = Groups(*sparse.csgraph.connected_components(graph, directed=False)[::-1])
    length = np.hypot(*(islands.extent(axis) for axis in np.divmod(places, width)))
    good = (length >= reach) & (length**2 >= 6.0 * islands.size)
    good &= islands.spread(colours[places]).max(axis=-1) <= 0.015
    found = np.zeros_like(between)
    found[between] = good[islands.owner]
    return found
