"""Candidates for specks of dust: small islands brighter than their surroundings, each described by a row of numbers.

Dark specks are found in the negative. Which candidates are dust is decided by `forest`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from pointillist.retouch.groups import Groups, as_features

Plane = NDArray[np.float32]
Labels = NDArray[np.int32]

WINDOWS = (5, 9, 17)
"""Sides of the squares that must not fit into a speck, in pixels."""

FEATURES = 29

_FLOOR = 0.05  # of full scale: nothing fainter is looked at
_OVER_TEXTURE = 2.0  # times the mean height of islands nearby
_FOOT = 0.4  # a speck is what reaches this share of its peak
_NEAR, _WIDE = 41, 161
_TINY = 0.004


@dataclass(frozen=True, eq=False)
class Candidates:
    """Islands of one window: `labels` (height, width) counts them from one, `features` (islands, FEATURES) tells of each."""

    labels: Labels
    features: Plane


def speck_candidates(values: Plane) -> list[Candidates]:
    """Islands of every window in a picture (height, width, channels) with values in [0, 1]."""
    grey = values.mean(axis=-1)
    hats = [grey - opened(grey, window) for window in WINDOWS]
    near = [ndimage.uniform_filter(hat, _NEAR) for hat in hats]
    wide = ndimage.uniform_filter(hats[1], _WIDE)
    pits = ndimage.uniform_filter(-grey - opened(-grey, WINDOWS[1]), _NEAR)
    slopes = ndimage.gaussian_gradient_magnitude(grey, 0.8)
    rough = ndimage.uniform_filter(slopes, _NEAR)
    maps = np.stack([*near, wide, pits, rough], axis=-1)
    return [
        _islands(values, grey, hat, mean, slopes, maps, window)
        for window, hat, mean in zip(WINDOWS, hats, near, strict=True)
    ]


def opened(grey: Plane, side: int) -> Plane:
    """The morphological opening by a square: what is left when all that no such square fits into is cut off."""
    return ndimage.maximum_filter(ndimage.minimum_filter(grey, side), side)


def _islands(
    values: Plane, grey: Plane, hat: Plane, mean: Plane, slopes: Plane, maps: Plane, window: int
) -> Candidates:
    summit = ndimage.maximum_filter(hat, window)
    high = (hat > _FOOT * summit) & (summit > np.maximum(_FLOOR, _OVER_TEXTURE * mean)) & (hat > 0.6 * _FLOOR)
    labels, _ = ndimage.label(high, np.ones((3, 3), int))
    labels = _kept(labels, hat, mean, window)
    if not labels.any():
        return Candidates(labels, np.zeros((0, FEATURES), np.float32))
    return Candidates(labels, _described(values, grey, hat, slopes, maps, labels, window))


def _kept(labels: Labels, hat: Plane, mean: Plane, window: int) -> Labels:
    """Labels, counted anew, of the islands that are small and high enough."""
    where = np.nonzero(labels)
    islands = Groups(labels[where], int(np.max(labels)) + 1)
    good = (islands.extent(where[0]) <= window) & (islands.extent(where[1]) <= window) & (islands.size >= 2)
    good &= islands.largest(hat[where] / np.maximum(_FLOOR, _OVER_TEXTURE * mean[where])) > 1
    good[0] = False
    renumbered = np.zeros(islands.count, np.int32)
    renumbered[good] = np.arange(1, np.count_nonzero(good) + 1)
    return renumbered[labels]


def _described(
    values: Plane, grey: Plane, hat: Plane, slopes: Plane, maps: Plane, labels: Labels, window: int
) -> Plane:
    where = np.nonzero(labels)
    islands = Groups(labels[where] - 1, int(np.max(labels)))
    mean, area, peak = islands.mean, islands.size, islands.largest(hat[where])
    middle = [mean(axis) for axis in where]
    away = [axis - centre[islands.owner] for axis, centre in zip(where, middle, strict=True)]
    yy, xx, xy = (mean(away[i] * away[j]) for i, j in ((0, 0), (1, 1), (0, 1)))
    root = np.sqrt(((yy - xx) / 2) ** 2 + xy**2)
    long, short = (yy + xx) / 2 + root + 0.08, np.maximum((yy + xx) / 2 - root, 0) + 0.08
    ring = _ring(values, grey, labels, islands.count)
    inner = mean(values[where])
    contrast = inner - ring.means
    opacity = contrast / (1.05 - ring.means)
    texture = maps[middle[0].astype(int), middle[1].astype(int)]
    lifted = np.maximum(contrast.mean(axis=-1), _TINY)
    columns = [
        np.log(area),
        np.log(area) - 2 * np.log(window),
        peak,
        np.log(peak),
        mean(hat[where]) / peak,
        *(np.log(peak[:, None] / (texture + _TINY)).T),
        0.5 * np.log(long / short),
        area / (12.566 * np.sqrt(long * short)),
        mean(slopes[where]) / peak,
        np.log(lifted / peak),
        np.log((ring.spread + _TINY) / peak),
        (ring.high - ring.means.mean(axis=-1)) / peak,
        (ring.means.mean(axis=-1) - ring.low) / peak,
        contrast.min(axis=-1) / lifted,
        contrast.max(axis=-1) / lifted,
        np.ptp(opacity, axis=-1) / (np.abs(opacity).mean(axis=-1) + 0.02),
        opacity.mean(axis=-1),
        inner.min(axis=-1),
        np.ptp(inner, axis=-1),
        np.ptp(ring.means, axis=-1),
        ring.means.mean(axis=-1),
        *_crowd(labels.shape, middle, peak),
        np.full(islands.count, np.log(window)),
    ]
    return as_features(columns)


@dataclass(frozen=True, eq=False)
class _Ring:
    means: NDArray  # (islands, channels)
    spread: NDArray  # (islands,): deviation of the grey values
    high: NDArray
    low: NDArray


def _ring(values: Plane, grey: Plane, labels: Labels, count: int) -> _Ring:
    """Means, spread and extremes of the pixels that lie two to four pixels away from every island."""
    inner, outer = (ndimage.maximum_filter(labels, side) for side in (5, 9))
    where = np.nonzero((outer > 0) & (inner == 0))
    rings = Groups(outer[where] - 1, count)
    samples = grey[where]
    low = np.ones(count)
    np.minimum.at(low, rings.owner, samples)
    low[rings.total(np.ones(len(samples))) == 0] = 0
    return _Ring(rings.mean(values[where]), rings.spread(samples), rings.largest(samples), low)


def _crowd(shape: tuple[int, ...], middle: list[NDArray], peak: NDArray) -> list[NDArray]:
    """Features that tell how many other islands of the same height lie nearby, and farther away, on a logarithmic scale."""
    points = np.zeros([n // 8 + 1 for n in shape], np.float32)
    at = tuple((axis / 8).astype(int) for axis in middle)
    np.add.at(points, at, peak.astype(np.float32))
    return [np.log1p(ndimage.uniform_filter(points, side, mode="constant")[at] * side**2 / peak) for side in (5, 13)]
