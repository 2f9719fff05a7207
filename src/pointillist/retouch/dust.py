"""Specks of dust: small islands brighter than their surroundings, described by a row of numbers each and judged by trees.

Dark specks are found in the negative. The trees are fitted by ``python -m benchmarks.finding --fit`` to damage painted into
development photographs; here they are only read and evaluated.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from pointillist.storage import read_arrays

Plane = NDArray[np.float32]
Labels = NDArray[np.int32]

WINDOWS = (5, 9, 17)
"""Sides of the squares that must not fit into a speck, in pixels."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.finding``; the trees are fitted to what these let through."""

    floor: float = 0.05
    """Height of a speck, of full scale, at least."""
    hopeless: float = -7.0
    """Log-odds below which an island is left out after every twenty trees, which saves most of the time."""


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples in groups, such as pixels of islands: `owner` (samples,) is that of each one, from 0 to `count` − 1."""

    owner: NDArray[np.integer]
    count: int

    @cached_property
    def size(self) -> NDArray[np.integer]:
        """Samples of every group, counted as one where there are none."""
        return np.maximum(np.bincount(self.owner, minlength=self.count), 1)

    def mean(self, samples: NDArray) -> NDArray:
        """Mean of every group; of samples (samples, channels) that of every channel, (count, channels)."""
        if samples.ndim == 2:
            return np.stack([self.mean(one) for one in samples.T], axis=-1)
        return np.bincount(self.owner, samples, self.count) / self.size

    def spread(self, samples: NDArray) -> NDArray:
        """Standard deviation within every group, of shape as `mean`."""
        return np.sqrt(np.maximum(self.mean(samples.astype(np.float64) ** 2) - self.mean(samples) ** 2, 0))

    def largest(self, samples: NDArray) -> NDArray:
        """Largest sample of every group, at least zero."""
        largest = np.zeros(self.count)
        np.maximum.at(largest, self.owner, samples)
        return largest

    def extent(self, places: NDArray[np.integer]) -> NDArray[np.integer]:
        """Rows or columns from the first to the last of every group."""
        end = np.max(places, initial=0)
        return self.largest(places) - (end - self.largest(end - places)) + 1


def renumbered(labels: Labels, taken: NDArray[np.bool_]) -> Labels:
    """Labels that count only the islands that are taken, from one; `taken` has an entry for each island."""
    return np.append(0, np.where(taken, np.cumsum(taken), 0)).astype(np.int32)[labels]


@dataclass(frozen=True, eq=False)
class Forest:
    """Boosted trees whose leaves add up to log-odds.

    Attributes
    ----------
    roots : (trees,) int array
        Node at which each tree begins.
    feature, threshold, left, right, value : (nodes,) arrays
        A row goes left where its feature is at most the threshold; a leaf has itself on both sides.
    base : float
        Log-odds before any tree.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    base: float

    def log_odds(self, rows: Plane) -> Plane:
        """Log-odds of every row (rows, features) to be damage; hopeless rows keep what they have after some trees."""
        total = np.full(len(rows), self.base, np.float32)
        at = np.arange(len(rows))
        for number, root in enumerate(self.roots):
            if number and number % 20 == 0:
                at = at[total[at] > TUNING.hopeless]
            node, moved = np.full(len(at), root, np.int32), True
            while moved:
                below = rows[at, self.feature[node]] <= self.threshold[node]
                after = np.where(below, self.left[node], self.right[node])
                node, moved = after, not np.array_equal(node, after)
            total[at] += self.value[node]
        return total


@cache
def load_forest() -> Forest:
    """The trees that come with the package."""
    with resources.as_file(resources.files(__package__).joinpath("dust.safetensors")) as path:
        stored = read_arrays(path, "forest")
    return Forest(**stored.arrays, base=stored.metadata["base"])


def dust_in(values: Plane, needed: float) -> NDArray[np.bool_]:
    """Bright dust in (height, width, channels) values from 0 to 1, of at least such log-odds."""
    found = np.zeros(values.shape[:2], bool)
    for labels, features in speck_candidates(values):
        found |= np.append(False, load_forest().log_odds(features) > needed)[labels]
    return found


def speck_candidates(values: Plane) -> list[tuple[Labels, Plane]]:
    """Islands of every window in (height, width, channels) values from 0 to 1.

    Each is an array (height, width) that counts them from one, and (islands, features) that tells of them.
    """
    grey = values.mean(axis=-1)
    hats = [grey - opened(grey, window) for window in WINDOWS]
    near = [ndimage.uniform_filter(hat, 41) for hat in hats]
    wide = ndimage.uniform_filter(hats[1], 161)
    pits = ndimage.uniform_filter(-grey - opened(-grey, WINDOWS[1]), 41)
    slopes = ndimage.gaussian_gradient_magnitude(grey, 0.8)
    maps = np.stack([*near, wide, pits, ndimage.uniform_filter(slopes, 41)], axis=-1)
    found = []
    for window, hat, mean in zip(WINDOWS, hats, near, strict=True):
        least = np.maximum(TUNING.floor, 2.0 * mean)
        summit = ndimage.maximum_filter(hat, window)
        high = (hat > 0.4 * summit) & (summit > least) & (hat > 0.6 * TUNING.floor)
        labels, count = ndimage.label(high, np.ones((3, 3), int))
        where = np.nonzero(labels)
        islands = Groups(labels[where] - 1, count)
        good = (islands.extent(where[0]) <= window) & (islands.extent(where[1]) <= window) & (islands.size >= 2)
        good &= islands.largest(hat[where] / least[where]) > 1
        labels = renumbered(labels, good)
        found.append((labels, _features(values, grey, hat, slopes, maps, labels, window)))
    return found


def opened(grey: Plane, side: int) -> Plane:
    """The morphological opening by a square: all that no such square fits into is cut off."""
    return ndimage.maximum_filter(ndimage.minimum_filter(grey, side), side)


def _features(values: Plane, grey: Plane, hat: Plane, slopes: Plane, maps: Plane, labels: Labels, window: int) -> Plane:
    """Size, shape, height, colour and company of every island, (islands, features)."""
    tiny = 0.004
    where = np.nonzero(labels)
    islands = Groups(labels[where] - 1, int(np.max(labels)))
    mean, area, peak = islands.mean, islands.size, islands.largest(hat[where])
    middle = [mean(axis) for axis in where]
    away = [axis - centre[islands.owner] for axis, centre in zip(where, middle, strict=True)]
    yy, xx, xy = (mean(away[i] * away[j]) for i, j in ((0, 0), (1, 1), (0, 1)))
    root = np.sqrt(((yy - xx) / 2) ** 2 + xy**2)
    long, short = (yy + xx) / 2 + root + 0.08, np.maximum((yy + xx) / 2 - root, 0) + 0.08
    # Beside every island: the pixels that lie two to four pixels away from it.
    inner_ring, outer_ring = (ndimage.maximum_filter(labels, side) for side in (5, 9))
    beside = np.nonzero((outer_ring > 0) & (inner_ring == 0))
    ring = Groups(outer_ring[beside] - 1, islands.count)
    around = ring.mean(values[beside])
    low = np.where(np.bincount(ring.owner, minlength=ring.count) > 0, 1 - ring.largest(1 - grey[beside]), 0)
    inner = mean(values[where])
    contrast = inner - around
    opacity = contrast / (1.05 - around)
    texture = maps[middle[0].astype(int), middle[1].astype(int)]
    lifted = np.maximum(contrast.mean(axis=-1), tiny)
    # Other islands nearby, and farther away, by their heights over this one's.
    points = np.zeros([n // 8 + 1 for n in labels.shape], np.float32)
    at = tuple((axis / 8).astype(int) for axis in middle)
    np.add.at(points, at, peak.astype(np.float32))
    crowds = [ndimage.uniform_filter(points, side, mode="constant")[at] * side**2 for side in (5, 13)]
    columns = [
        np.log(area),
        np.log(area) - 2 * np.log(window),
        peak,
        np.log(peak),
        mean(hat[where]) / peak,
        *(np.log(peak[:, None] / (texture + tiny)).T),
        0.5 * np.log(long / short),
        area / (12.566 * np.sqrt(long * short)),
        mean(slopes[where]) / peak,
        np.log(lifted / peak),
        np.log((ring.spread(grey[beside]) + tiny) / peak),
        (ring.largest(grey[beside]) - around.mean(axis=-1)) / peak,
        (around.mean(axis=-1) - low) / peak,
        contrast.min(axis=-1) / lifted,
        contrast.max(axis=-1) / lifted,
        np.ptp(opacity, axis=-1) / (np.abs(opacity).mean(axis=-1) + 0.02),
        opacity.mean(axis=-1),
        inner.min(axis=-1),
        np.ptp(inner, axis=-1),
        np.ptp(around, axis=-1),
        around.mean(axis=-1),
        *(np.log1p(crowd / peak) for crowd in crowds),
        np.full(islands.count, np.log(window)),
    ]
    return np.clip(np.stack(columns, axis=-1), -20, 20).astype(np.float32)
