"""What is judged sample by sample, in any number of dimensions: what is left, how much is explained, by how rare filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from pointillist.anomalies.surprise import running_median, standardise, surprise, surprise_of_both_sides
from pointillist.codes import SparseCodes
from pointillist.solvers.encoding import decode

_RARE = 0.1
"""Share of the average use below which a filter is rare, and what it explains counts as left."""
_ROUNDING = 1e-9
"""What a quotient of whole numbers may be too small by."""
_RING = 200
"""Samples without which a ring at the border is compared together with its neighbours."""
NEIGHBOURS = 21
"""Filter lengths, or events, that a series is compared with: those around it."""


@dataclass(frozen=True)
class Explained:
    """Signals beside what their codes make of them.

    Attributes
    ----------
    signals, explained : lists of (channels, *space) arrays
        Both divided by `scale`, so that squares fit.
    weights : list of (channels, *space) arrays or None
    codes : SparseCodes
    filters : (n_filters, channels, *size) array
    boundary : str
    scale : float
    """

    signals: list[NDArray]
    explained: list[NDArray]
    weights: list[NDArray] | None
    codes: SparseCodes
    filters: NDArray
    boundary: str
    scale: float

    @property
    def size(self) -> tuple[int, ...]:
        """Spatial size of the filters."""
        return self.filters.shape[2:]

    def seen(self, i: int) -> NDArray:
        """Where a signal was seen, in any channel: (*space)."""
        if self.weights is None:
            return np.ones(self.signals[i].shape[1:], bool)
        return np.any(self.weights[i] > 0, axis=0)

    def wholly_seen(self, i: int) -> NDArray:
        """Where as many channels of a signal were seen as anywhere in it: (*space)."""
        if self.weights is None:
            return np.ones(self.signals[i].shape[1:], bool)
        channels = np.sum(self.weights[i] > 0, axis=0)
        return channels == np.max(channels)

    def norms(self) -> NDArray:
        """Norms of the filters, (n_filters,)."""
        return np.sqrt(np.sum(np.square(self.filters, dtype=np.float64), axis=tuple(range(1, self.filters.ndim))))


def log_energies(seen: Explained) -> tuple[list[NDArray], list[NDArray]]:
    """Logarithms of the energy that is left and of that which is explained, in boxes of half the filters' size.

    What rare filters explain counts as left too: where they were learned from an anomaly, they explain nothing else.
    """
    left, explained = [], []
    rare = _rarely_explained(seen)
    for i, (signal, fit) in enumerate(zip(seen.signals, seen.explained, strict=True)):
        weight: NDArray | float = 1.0 if seen.weights is None else seen.weights[i]
        left.append(local_mean(np.sum(weight * np.square(signal - fit + rare[i]), axis=0), seen, i))
        # Codes that were found in some channels say what the others hold, where these were not seen.
        most = weight if isinstance(weight, float) else np.max(weight, axis=0)
        explained.append(local_mean(np.sum(most * np.square(fit), axis=0), seen, i))
    noise = np.median(np.concatenate([one.ravel() for one in left]))
    total = np.mean([np.mean(one) + np.mean(other) for one, other in zip(left, explained, strict=True)])
    # Below a millionth of the signal's own level there is rounding only, and below the noise nothing to be explained.
    least = 1e-12 * total + np.finfo(np.float64).tiny
    return [np.log(one + least) for one in left], [np.log(one + noise + least) for one in explained]


def _rarely_explained(seen: Explained) -> Sequence[NDArray | float]:
    """What rare filters contribute to each signal."""
    use = seen.codes.usage() * seen.norms()
    rare = use < _RARE * np.mean(use)
    if not np.any(rare & (use > 0)):
        return [0.0] * len(seen.signals)
    filters = np.where(rare.reshape(-1, *[1] * (seen.filters.ndim - 1)), seen.filters, 0)
    return [one / seen.scale for one in decode(seen.codes, filters, boundary=seen.boundary, channels=True)]


def local_mean(values: NDArray, seen: Explained, i: int) -> NDArray:
    """The mean over the seen samples of a box of half the filters' size around each sample.

    At the border of images and volumes a box ends there; at the ends of series the last sample goes on.
    """
    sides, beyond = box_sides(seen.size), "nearest" if values.ndim == 1 else "constant"
    mean = uniform_filter(values, sides, mode=beyond)
    if seen.weights is not None or values.ndim > 1:
        share = uniform_filter(seen.seen(i).astype(np.float64), sides, mode=beyond)
        mean = mean / np.maximum(share, 1 / prod(sides))
    return np.maximum(mean, 0)  # the running sum of the filter may round below zero


def box_sides(size: Sequence[int]) -> list[int]:
    """Sides of a box of half the filters' size."""
    return [max(side // 2, 1) for side in size]


def least_spread(size: Sequence[int]) -> float:
    """The spread that the logarithm of white noise's energy has in such a box; no signal is taken to be steadier."""
    return float(np.sqrt(2 / prod(box_sides(size))))


def residual_part(seen: Explained, left: list[NDArray]) -> list[NDArray]:
    """Surprise at what the filters leave; in series beside the surroundings, since the noise of recordings changes."""
    if len(seen.size) == 1:
        step = box_sides(seen.size)[0]
        left = [one - running_median(one, step, 2 * NEIGHBOURS + 1) for one in left]
    return [surprise(one) for one in _standardised(seen, left)]


def amplitude_part(seen: Explained, explained: list[NDArray]) -> list[NDArray]:
    """Surprise at how much is explained around a sample, too much or too little."""
    return [surprise_of_both_sides(one) for one in _standardised(seen, explained)]


def _standardised(seen: Explained, energies: list[NDArray]) -> list[NDArray]:
    """Deviations of logarithms of energies from what is usual, in units of their spread.

    Samples of images and volumes near the border, where filters are cut off and boxes hold fewer samples, are compared with
    those as near to it only.
    """
    out = [np.zeros_like(one) for one in energies]
    zones = _zones(seen)
    for number in range(1 + max(int(np.max(zone)) for zone in zones)):
        chosen = [(zone == number) & seen.seen(i) for i, zone in enumerate(zones)]
        pooled = np.concatenate([one[place] for one, place in zip(energies, chosen, strict=True)])
        if not len(pooled):
            continue
        middle, spread = standardise(pooled, least_spread(seen.size))
        for deviation, one, place in zip(out, energies, chosen, strict=True):
            deviation[place] = (one[place] - middle) / spread
    return out


def _zones(seen: Explained) -> list[NDArray]:
    """The zone of each sample: 0 further than a filter from the border, and of rings around that 1 for the outermost.

    The ends of series are few, and belong to zone 0. Rings are as narrow as their numbers of samples allow.
    """
    depths = [_depth(signal.shape[1:], seen.size) for signal in seen.signals]
    if len(seen.size) == 1:
        return [np.zeros(depth.shape, np.int64) for depth in depths]
    rings = max(seen.size)
    while True:
        zones = [np.where(depth < 1, 1 + (depth * rings + _ROUNDING).astype(np.int64), 0) for depth in depths]
        counts = np.sum([np.bincount(zone[seen.seen(i)], minlength=rings + 1) for i, zone in enumerate(zones)], axis=0)
        if rings == 1 or np.min(counts[1:]) >= _RING:
            return zones
        rings //= 2


def _depth(shape: tuple[int, ...], size: tuple[int, ...]) -> NDArray:
    """How many sides of a filter each sample lies from the border, along the axis along which that is least."""
    depth = np.full(shape, np.inf)
    for axis, (extent, side) in enumerate(zip(shape, size, strict=True)):
        place = np.arange(extent)
        line = np.minimum(place, extent - 1 - place) / side
        depth = np.minimum(depth, line.reshape([-1 if other == axis else 1 for other in range(len(shape))]))
    return depth


def rarity_part(seen: Explained) -> list[NDArray]:
    """Mean over the filters that cover a sample of how rare they are, weighted by what they contribute there."""
    strengths = seen.codes.usage() * seen.norms()
    if not strengths.any():
        return [np.zeros(signal.shape[1:]) for signal in seen.signals]
    rare = rarity(strengths)
    energy = np.sum(np.square(seen.filters, dtype=np.float64), axis=1)
    contributed = _covered(seen, energy, np.ones(len(rare)))
    weighted = _covered(seen, energy, rare)
    return [
        np.divide(one, other, out=np.zeros_like(one), where=other > 0)
        for one, other in zip(weighted, contributed, strict=True)
    ]


def rarity(use: NDArray) -> NDArray:
    """−log of how often filters are used, in nats above the most used one; filters without use cost as the rarest."""
    share = use / np.max(use)
    return np.log(1 / np.maximum(share, np.min(share[share > 0])))


def _covered(seen: Explained, energy: NDArray, factors: NDArray) -> list[NDArray]:
    """Sums over codes of size, factor and energy of their filters, spread over the samples that these cover."""
    values = []
    for index, value, grid in zip(seen.codes.indices, seen.codes.values, seen.codes.grids, strict=True):
        values.append(np.abs(value).astype(np.float64) * factors[index // prod(grid)])
    weighted = SparseCodes(seen.codes.indices, values, seen.codes.grids, seen.codes.n_filters)
    return list(np.maximum(one, 0) for one in decode(weighted, energy, boundary=seen.boundary))
