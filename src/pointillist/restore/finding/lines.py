"""Candidates for scratches and hairs: thin bright lines, each described by a row of numbers.

Second derivatives, averaged along short lines of many directions, give centre lines; neighbours that agree in direction are
joined. Dark lines are found in the negative. Which candidates are scratches is decided by `forest`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from pointillist.restore.finding.groups import Groups, as_features
from pointillist.restore.levels import doubled

Plane = NDArray[np.float32]
Place = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows and columns of some pixels."""

SCALES = (0.8, 1.6, 3.0)
"""Deviations of the Gaussians whose second derivatives are taken, in pixels: lines about twice as wide answer most."""

FEATURES = 31 + 3 * 8 + 4 + 2

_DIRECTIONS = 12
_REACH = 7  # pixels to either side over which a line is averaged
_FLOOR, _OVER_TEXTURE = 0.02, 1.5
_SHORTEST = 8
_NEAR, _WIDE = 41, 161
_TINY = 0.004
_COARSE = 8  # pixels of a square on which the lines nearby are added up


@dataclass(frozen=True, eq=False)
class Lines:
    """Centre lines.

    Attributes
    ----------
    rows, columns : (points,) int arrays
    owner : (points,) int array
        Number of the line that a point belongs to, from zero.
    contrast : (points,) float array
        Height over both sides.
    scale : (points,) float array
        The one of `SCALES` that answers most.
    features : (lines, FEATURES) float32 array
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    owner: NDArray[np.intp]
    contrast: Plane
    scale: Plane
    features: Plane


@dataclass(frozen=True, eq=False)
class Ridges:
    """Strongest answer over scales and directions, with its scale and direction, for every pixel."""

    strength: Plane
    direction: NDArray[np.int8]
    scale: NDArray[np.int8]


def both_ridges(grey: Plane) -> tuple[Ridges, Ridges]:
    """Bright and dark ridges of a picture; the filters are the same for both."""
    best = [
        Ridges(np.zeros(grey.shape, np.float32), np.zeros(grey.shape, np.int8), np.zeros(grey.shape, np.int8))
        for _ in range(2)
    ]
    whole = slice(0, grey.shape[0]), slice(0, grey.shape[1])
    for number, scale in enumerate(SCALES):
        half = scale > 1.2
        image, sigma = (_halved(grey), scale / 2) if half else (grey, scale)
        yy, xx, xy = (ndimage.gaussian_filter(image, sigma, order) * sigma**2 for order in ((2, 0), (0, 2), (1, 1)))
        for step in range(_DIRECTIONS):
            angle = np.pi * step / _DIRECTIONS
            s, c = np.sin(angle), np.cos(angle)  # along the line: (row, column) = (s, c); across: (c, -s)
            across = c * c * yy + s * s * xx - 2 * s * c * xy
            mean = ndimage.correlate(across, _segment(angle, _REACH // 2 + 1 if half else _REACH))
            mean = doubled(mean[None], whole)[0] if half else mean
            for ridges, sign in zip(best, (-1, 1), strict=True):
                better = sign * mean > ridges.strength
                np.copyto(ridges.strength, sign * mean, where=better)
                np.copyto(ridges.direction, np.int8(step), where=better)
                np.copyto(ridges.scale, np.int8(number), where=better)
    return best[0], best[1]


def _halved(image: Plane) -> Plane:
    padded = np.pad(image, [(0, n % 2) for n in image.shape], mode="edge")
    return 0.25 * (padded[::2, ::2] + padded[1::2, ::2] + padded[::2, 1::2] + padded[1::2, 1::2])


def _segment(angle: float, reach: int) -> Plane:
    """A short line as weights that add up to one."""
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
    for t in np.arange(-reach, reach + 1):
        kernel[reach + round(t * np.sin(angle)), reach + round(t * np.cos(angle))] = 1
    return kernel / kernel.sum()


def line_candidates(values: Plane, ridges: Ridges) -> Lines:
    """Lines of a picture (height, width, channels) with values in [0, 1] on its bright ridges."""
    mean = ndimage.uniform_filter(ridges.strength, _NEAR)
    crest = _crest(ridges) & (ridges.strength > np.maximum(_FLOOR, _OVER_TEXTURE * mean))
    rows, columns = np.nonzero(crest)
    owner = _joined((rows, columns), ridges)
    sizes = np.bincount(owner) if len(owner) else np.zeros(0, int)
    keep = sizes[owner] >= _SHORTEST if len(owner) else np.zeros(0, bool)
    rows, columns = rows[keep], columns[keep]
    owner = np.unique(owner[keep], return_inverse=True)[1]
    if len(rows) == 0:
        empty = np.zeros(0, np.float32)
        return Lines(rows, columns, owner, empty, empty, np.zeros((0, FEATURES), np.float32))
    return _described(values, ridges, mean, (rows, columns), owner)


def _crest(ridges: Ridges) -> NDArray[np.bool_]:
    """Pixels that answer at least as strongly as their neighbours across the line."""
    s, result = ridges.strength, np.zeros(ridges.strength.shape, bool)
    padded = np.pad(s, 1)
    height, width = s.shape
    for step in range(_DIRECTIONS):
        angle = np.pi * step / _DIRECTIONS
        dy, dx = round(np.cos(angle)), round(-np.sin(angle))
        ahead = padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
        behind = padded[1 - dy : 1 - dy + height, 1 - dx : 1 - dx + width]
        result |= (ridges.direction == step) & (s >= ahead) & (s > behind)
    return result


def _joined(at: Place, ridges: Ridges) -> NDArray[np.intp]:
    """Number of the line of every crest pixel: neighbours up to two pixels away that go on in the same direction."""
    rows, columns = at
    index = np.full([n + 4 for n in ridges.direction.shape], -1, np.int32)
    index[rows + 2, columns + 2] = np.arange(len(rows))
    direction = ridges.direction[at].astype(int)
    angle = np.pi * direction / _DIRECTIONS
    pairs = []
    for dy in range(3):
        for dx in range(-2, 3):
            if dy == 0 and dx <= 0:
                continue
            other = index[rows + 2 + dy, columns + 2 + dx]
            turn = np.abs(direction - direction[other])
            aside = np.abs(dy * np.cos(angle) - dx * np.sin(angle)) / np.hypot(dy, dx)
            near = max(abs(dy), abs(dx)) == 1
            good = (other >= 0) & (np.minimum(turn, _DIRECTIONS - turn) <= 2) & ((aside < 0.6) | near)
            pairs.append(np.stack([np.nonzero(good)[0], other[good]]))
    first, second = np.concatenate(pairs, axis=1)
    graph = sparse.coo_array((np.ones(len(first), bool), (first, second)), shape=(len(rows), len(rows)))
    return sparse.csgraph.connected_components(graph, directed=False)[1]


def _described(values: Plane, ridges: Ridges, mean: Plane, at: Place, owner: NDArray[np.intp]) -> Lines:
    lines = Groups(owner, int(np.max(owner)) + 1)
    average, scatter, points = lines.mean, lines.spread, lines.size
    direction, scale = ridges.direction[at], ridges.scale[at]
    angle = np.pi * direction.astype(np.float64) / _DIRECTIONS
    width = np.array(SCALES)[scale]
    centre = values[at]
    sides = [_beside(values, at, angle, sign * (1.7 * width + 1.5)) for sign in (1, -1)]
    far = [_beside(values, at, angle, sign * (2.5 * width + 4)) for sign in (1, -1)]
    left, right = (side.mean(axis=-1) for side in sides)
    grey = centre.mean(axis=-1)
    below = (sides[0] + sides[1]) / 2
    height = grey - (left + right) / 2
    smaller = grey - np.maximum(left, right)
    opacity = (centre - below) / (1.05 - below)
    contrast = np.maximum(average(height), _TINY)
    by_channel, colour, lifted = average(opacity), average(centre), average(centre - below)
    strength = ridges.strength[at]
    wide = ndimage.uniform_filter(mean, _WIDE)
    chord = np.hypot(*(lines.extent(axis) for axis in at))
    doubled = np.hypot(average(np.cos(2 * angle)), average(np.sin(2 * angle)))
    features = [
        np.log(points),
        np.log(chord),
        points / chord,
        doubled,
        contrast,
        np.log(contrast),
        scatter(height) / contrast,
        average(smaller) / contrast,
        average((smaller < 0.3 * contrast[owner]).astype(float)),
        np.abs(average(left - right)) / contrast,
        scatter(left - right) / contrast,
        scatter((left + right) / 2) / contrast,
        np.abs(average((far[0] - far[1]).mean(axis=-1))) / contrast,
        average(np.abs(far[0] - sides[0]).mean(axis=-1) + np.abs(far[1] - sides[1]).mean(axis=-1)) / contrast,
        scatter(grey) / contrast,
        average(scale.astype(float)),
        scatter(scale.astype(float)),
        by_channel.mean(axis=-1),
        np.ptp(by_channel, axis=-1) / (np.abs(by_channel).mean(axis=-1) + 0.02),
        scatter(opacity.mean(axis=-1)) / (np.abs(by_channel).mean(axis=-1) + 0.02),
        lifted.min(axis=-1) / contrast,
        lifted.max(axis=-1) / contrast,
        colour.min(axis=-1),
        np.ptp(colour, axis=-1),
        average(np.ptp(below, axis=-1)),
        average(below.mean(axis=-1)),
        np.log(average(strength) / (average(mean[at]) + _TINY / 4)),
        np.log(average(strength) / (average(wide[at]) + _TINY / 4)),
        scatter(strength) / average(strength),
        *_crowd(values.shape, at, strength, lines),
        *_profile(values.mean(axis=-1), at, angle, lines, contrast),
        *_mixture(centre.mean(axis=-1), below.mean(axis=-1), lines, contrast),
        *_parallel(values.shape, at, direction, strength, lines),
    ]
    return Lines(*at, owner, height.astype(np.float32), width.astype(np.float32), as_features(features))


def _profile(grey: Plane, at: Place, angle: NDArray, lines: Groups, contrast: NDArray) -> list[NDArray]:
    """The mean cross-section of every line, how unequal its two sides are, and how much both vary along it."""
    centre = grey[at]
    result = []
    for offset in range(1, 9):
        left, right = (_beside(grey, at, angle, np.full(len(angle), sign * offset)) for sign in (1, -1))
        drop = centre - (left + right) / 2
        result += [lines.mean(drop), np.abs(lines.mean(left - right)), lines.spread(drop)]
    return [column / contrast for column in result]


def _mixture(centre: NDArray, below: NDArray, lines: Groups, contrast: NDArray) -> list[NDArray]:
    """Features that tell how well a line is one paint, mixed with what lies below it in one proportion all along."""
    spread = lines.spread(below)
    joint = lines.mean(centre * below) - lines.mean(centre) * lines.mean(below)
    slope = np.clip(joint / (spread**2 + 1e-4), -1, 2)
    rest = lines.spread(centre - slope[lines.owner] * below)
    return [slope, rest / contrast, spread / contrast, rest / (spread + 0.01)]


def _beside(values: Plane, at: Place, angle: NDArray, offset: NDArray) -> Plane:
    """Values at the nearest pixel so far across the line."""
    y = np.clip(np.rint(at[0] + offset * np.cos(angle)).astype(int), 0, values.shape[0] - 1)
    x = np.clip(np.rint(at[1] - offset * np.sin(angle)).astype(int), 0, values.shape[1] - 1)
    return values[y, x]


def _crowd(shape: tuple[int, ...], at: Place, strength: Plane, lines: Groups) -> list[NDArray]:
    """How much of other lines lies near every line, relative to its own strength, on a logarithmic scale."""
    total = np.zeros([n // _COARSE + 1 for n in shape[:2]], np.float32)
    square = at[0] // _COARSE, at[1] // _COARSE
    np.add.at(total, square, strength)
    own, result = lines.total(strength), []
    for side in (7, 19):
        seen = lines.mean(ndimage.uniform_filter(total, side, mode="constant")[square] * side**2)
        result.append(np.log1p(np.maximum(seen - own, 0) / (own / lines.size) / side))
    return result


def _parallel(
    shape: tuple[int, ...], at: Place, direction: NDArray[np.int8], strength: Plane, lines: Groups
) -> list[NDArray]:
    """How much of other lines goes in the same direction, as planks and grass do: nearby, and in the whole picture."""
    side = 25
    volume = np.zeros((_DIRECTIONS, *(n // _COARSE + 1 for n in shape[:2])), np.float32)
    cell = direction.astype(int), at[0] // _COARSE, at[1] // _COARSE
    np.add.at(volume, cell, strength)
    volume = ndimage.uniform_filter1d(volume, 3, axis=0, mode="wrap") * 3
    nearby = ndimage.uniform_filter(volume, (1, side, side), mode="constant")[cell] * side**2
    everywhere = volume.sum(axis=(1, 2))[cell[0]]
    own = lines.total(strength)
    return [np.log1p(np.maximum(lines.mean(seen) - own, 0) / own) for seen in (nearby, everywhere)]
