"""Scratches: a small network judges every pixel, and opaque lines with hard edges are found by their flat colour.

The network is fitted by ``scripts/learn_scratches.py`` to scratches with soft edges painted into photographs. Pictures go
through four sizes, from a half to a sixteenth, and back. Planes of one size lie in one array (height + 2, width + 2,
channels) with a border of zeros, so that as a matrix of pixels the neighbours of all pixels in one direction are a slice of
it, and a convolution is nine products of matrices.

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
from scipy.linalg.blas import sgemm

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


def scratches_in(values: Floats, polarity: str, needed: float) -> Mask:
    """Scratches in (height, width, channels) values from 0 to 1, of at least such log-odds."""
    found = np.zeros(values.shape[:2], bool)
    for name, odds in zip(("bright", "dark"), scratch_odds(values), strict=True):
        if polarity in ("both", name):
            found |= scratches_of(odds, needed)
    return found


def scratch_odds(values: Floats) -> Floats:
    """Log-odds (2, height, width) of bright and of dark scratches in (height, width, channels) values from 0 to 1.

    A softer and paler copy is looked at, too; of what is seen there alone the network has to be surer.
    """
    colours = np.broadcast_to(values, (*values.shape[:2], 3))
    softer = ndimage.gaussian_filter(colours, (TUNING.softness, TUNING.softness, 0))
    odds = log_odds(load_network(), np.float32(TUNING.paleness) * (softer - np.float32(0.5)) + np.float32(0.5))
    return np.maximum(odds - np.float32(TUNING.doubt), log_odds(load_network(), colours))


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
        """The convolution of planes (height + 2, width + 2, inputs) with a border of zeros; so has the answer."""
        answer = np.empty((*planes.shape[:2], len(self.biases)), np.float32)
        pixels, answers = (x.reshape(-1, x.shape[2]) for x in (planes, answer))
        across = planes.shape[1]
        reach = 1 if len(self.taps) == 9 else 0
        shifts = [row * across + column for row in range(-reach, reach + 1) for column in range(-reach, reach + 1)]
        last = len(pixels) - across - 1
        for start in range(across + 1, last, 4096):  # pixels whose products stay in the cache
            stop = min(start + 4096, last)
            part = answers[start:stop]
            part[:] = self.biases
            for tap, shift in zip(self.taps, shifts, strict=True):
                sgemm(1.0, tap.T, pixels[start + shift : stop + shift].T, 1.0, part.T, overwrite_c=1)
        answer[0] = answer[-1] = answer[:, 0] = answer[:, -1] = 0
        return answer


def _bordered(values: Floats) -> Floats:
    return np.pad(values, ((1, 1), (1, 1), (0, 0)))


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
    quartered = picture.reshape(rows, 2, columns, 2, 3).transpose(0, 2, 4, 1, 3).reshape(rows, columns, 12)
    planes, kept = _bordered(quartered), []
    for level in range(4):
        if level:
            inner = planes[1:-1, 1:-1]
            planes = _bordered(np.maximum.reduce([inner[i::2, j::2] for i in (0, 1) for j in (0, 1)]))
        planes = _plus(layers[f"down.{level}"](planes))
        planes = _plus(layers[f"keep.{level}"](planes), planes)
        kept.append(planes)
    planes = _plus(layers["last"](planes), planes)
    for level in (2, 1, 0):
        lifted = layers[f"lift.{level}"](planes)[1:-1, 1:-1].repeat(2, 0).repeat(2, 1)
        planes = _plus(layers[f"join.{level}"](_plus(_bordered(lifted), kept[level])))
        planes = _plus(layers[f"end.{level}"](planes), planes)
    pixels = layers["head"](planes)[1:-1, 1:-1].reshape(rows, columns, 2, 2, 2).transpose(2, 0, 3, 1, 4)
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


def lines_in(values: Floats, polarity: str = "both", sensitivity: float = 0.5) -> Mask:
    """Lines of one flat colour in (height, width, channels) values from 0 to 1."""
    found = np.zeros(values.shape[:2], bool)
    reach = TUNING.reach * 4 ** (0.5 - sensitivity)
    for name, sign in (("bright", 1), ("dark", -1)):
        if polarity in ("both", name):
            planes = [sign * channel for channel in np.moveaxis(values, -1, 0)]
            between = np.any([_between(plane) | _between(plane.T).T for plane in planes], axis=0)
            found |= _slender(values, between, reach)
    return found


def _between(plane: Floats) -> Mask:
    """Pixels of a plane that lie, in their row, between a jump up and a jump down at most so many pixels behind it."""
    steps = np.diff(plane, axis=1)
    up, down = (np.pad(jump, ((0, 0), (1, 1))) for jump in (steps > TUNING.jump, steps < -TUNING.jump))
    uneven = np.pad(np.abs(steps) > 0.025, ((0, 0), (1, 1)))
    columns = np.arange(plane.shape[1])
    widest = 12  # pixels between two jumps of a line

    def latest(event: Mask, never: int) -> NDArray:
        return np.maximum.accumulate(np.where(event[:, :-1], columns, never), axis=1)

    def next_(event: Mask, never: int) -> NDArray:
        return np.minimum.accumulate(np.where(event[:, 1:], columns, never)[:, ::-1], axis=1)[:, ::-1]

    begun, ended = latest(up, -widest - 1), next_(down, len(columns) + widest)
    return (begun == latest(uneven, -1)) & (ended == next_(uneven, len(columns))) & (ended - begun < widest)


def _slender(values: Floats, between: Mask, reach: float) -> Mask:
    """Those of the pixels that form far-reaching, narrow islands of one colour, joined to neighbours of their colour."""
    found = np.zeros_like(between)
    rows, columns = np.nonzero(between)
    if not len(rows):
        return found
    number = np.full(between.shape, -1)
    number[between] = np.arange(len(rows))
    pairs = []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        here = slice(0, -down or None), slice(max(-right, 0), -right if right > 0 else None)
        there = slice(down, None), slice(max(right, 0), right if right < 0 else None)
        both = between[here] & between[there]
        same = np.max(np.abs(values[here][both] - values[there][both]), axis=-1) <= 0.025
        pairs.append((number[here][both][same], number[there][both][same]))
    first, second = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    graph = sparse.coo_array((np.ones(len(first), bool), (first, second)), (len(rows), len(rows)))
    count, owner = sparse.csgraph.connected_components(graph, directed=False)
    islands = Groups(owner, count)
    length = np.hypot(islands.extent(rows), islands.extent(columns))
    good = (length >= reach) & (length**2 >= 6.0 * islands.size)
    good &= np.max([islands.spread(one) for one in values[rows, columns].T], axis=0) <= 0.015
    found[rows, columns] = good[owner]
    return found
