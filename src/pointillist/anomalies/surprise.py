"""Signals judged sample by sample and event by event: how surprising is what filters leave, explain, and when they set in.

A surprise is −log of the probability that a normal variable deviates as much, in nats, from what is usual in these very
signals by statistics that a share of outliers cannot move. An event is a moment at which both a series and the filters that
explain it change most, such as the beat of a heart; its surprise lasts from there for the length of a filter and fades: what
a sample is told, it is told by the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, median_filter, uniform_filter, uniform_filter1d
from scipy.special import log_ndtr

from pointillist.codes import SparseCodes
from pointillist.problem import Geometry
from pointillist.solvers.encoding import decode


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of the scores; ``python -m benchmarks.anomalies`` measures them."""

    rare: float = 0.1
    """Share of the average use below which a filter is rare, and what it explains counts as left."""
    ring: int = 200
    """Samples without which a ring at the border is compared together with its neighbours."""
    neighbours: int = 21
    """Filter lengths, or events, that a series is compared with: those around it."""
    apart: float = 0.4
    """Filter lengths that two events lie apart at least."""
    smooth: float = 0.2
    """Window in which changes are summed, in filter lengths."""
    salience: float = 1 / 3
    """Share of its neighbours' change that a moment must have to be an event."""
    intervals: int = 8
    """Intervals without which nothing is said about a rhythm."""
    rounding: float = 1.0
    """Samples by which an interval may be wrong, as moments are counted in samples; no rhythm is taken to be steadier."""


TUNING = Tuning()


def surprise(deviations: NDArray) -> NDArray:
    """−log of the probability that a standard normal variable is at least so large, in nats."""
    return -log_ndtr(-np.asarray(deviations, np.float64))


def surprise_of_both_sides(deviations: NDArray) -> NDArray:
    """−log of the probability that a standard normal variable lies at least so far from zero, in nats."""
    return np.maximum(surprise(np.abs(deviations)) - np.log(2), 0)


def standardise(values: NDArray, least: float) -> tuple[float, float]:
    """The median of values and their spread by the median absolute deviation, which is at least `least`."""
    middle = float(np.median(values))
    return middle, max(1.4826 * float(np.median(np.abs(values - middle))), least)


def running_median(values: NDArray, step: int, size: int) -> NDArray:
    """The median around each entry of a series, taken over `size` entries that lie `step` apart."""
    coarse = median_filter(values[::step], size, mode="reflect")
    return np.interp(np.arange(len(values)), np.arange(0, len(values), step), coarse)


@dataclass(frozen=True)
class Explained:
    """Signals beside what their codes make of them.

    Attributes
    ----------
    signals, explained, weights : lists of (channels, *space) arrays
        The first two divided by `scale`, so that squares fit; weights of zero mark what was not seen.
    codes : SparseCodes
    filters : (n_filters, channels, *size) array
    boundary : str
    scale : float
    """

    signals: list[NDArray]
    explained: list[NDArray]
    weights: list[NDArray]
    codes: SparseCodes
    filters: NDArray
    boundary: str
    scale: float

    @property
    def size(self) -> tuple[int, ...]:
        """Spatial size of the filters."""
        return self.filters.shape[2:]

    @property
    def box(self) -> list[int]:
        """Sides of a box of half the filters' size."""
        return [max(side // 2, 1) for side in self.size]

    @property
    def least_spread(self) -> float:
        """The spread that the logarithm of white noise's energy has in a box; no signal is taken to be steadier."""
        return float(np.sqrt(2 / prod(self.box)))

    @property
    def strengths(self) -> NDArray:
        """Contribution of each filter: the sum of its |codes| times its norm."""
        squares = np.square(self.filters, dtype=np.float64)
        return self.codes.usage() * np.sqrt(np.sum(squares, axis=tuple(range(1, squares.ndim))))

    def seen(self, i: int) -> NDArray:
        """Samples of a signal that were seen, in any channel: (*space)."""
        return np.any(self.weights[i] > 0, axis=0)

    def local_mean(self, values: NDArray, i: int) -> NDArray:
        """The mean over the seen samples of a box around each sample of signal i.

        At the border of images and volumes a box ends there; at the ends of series the last sample goes on.
        """
        beyond = "nearest" if values.ndim == 1 else "constant"
        share = uniform_filter(self.seen(i).astype(np.float64), self.box, mode=beyond)
        mean = uniform_filter(values, self.box, mode=beyond) / np.maximum(share, 1 / prod(self.box))
        return np.maximum(mean, 0)  # the running sum of the filter may round below zero


def log_energies(seen: Explained) -> tuple[list[NDArray], list[NDArray]]:
    """Logarithms of the energy that is left and of that which is explained, in boxes of half the filters' size.

    What rare filters explain counts as left too: where they were learned from an anomaly, they explain nothing else.
    """
    use = seen.strengths
    rare = use < TUNING.rare * np.mean(use)
    rarely: Sequence[NDArray | float] = [0.0] * len(seen.signals)
    if np.any(rare & (use > 0)):
        filters = np.where(rare.reshape(-1, *[1] * (seen.filters.ndim - 1)), seen.filters, 0)
        rarely = [one / seen.scale for one in decode(seen.codes, filters, boundary=seen.boundary, channels=True)]
    left, explained = [], []
    for i, (signal, fit, weight) in enumerate(zip(seen.signals, seen.explained, seen.weights, strict=True)):
        left.append(seen.local_mean(np.sum(weight * np.square(signal - fit + rarely[i]), axis=0), i))
        # Codes that were found in some channels say what the others hold, where these were not seen.
        explained.append(seen.local_mean(np.sum(np.max(weight, axis=0) * np.square(fit), axis=0), i))
    noise = np.median(np.concatenate([one.ravel() for one in left]))
    total = np.mean([np.mean(one) + np.mean(other) for one, other in zip(left, explained, strict=True)])
    # Below a millionth of the signal's own level there is rounding only, and below the noise nothing to be explained.
    least = 1e-12 * total + np.finfo(np.float64).tiny
    return [np.log(one + least) for one in left], [np.log(one + noise + least) for one in explained]


def residual_part(seen: Explained, left: list[NDArray]) -> list[NDArray]:
    """Surprise at what the filters leave; in series beside the surroundings, since the noise of recordings changes."""
    if len(seen.size) == 1:
        left = [one - running_median(one, seen.box[0], 2 * TUNING.neighbours + 1) for one in left]
    return [surprise(one) for one in standardised(seen, left)]


def standardised(seen: Explained, energies: list[NDArray]) -> list[NDArray]:
    """Deviations of logarithms of energies from what is usual, in units of their spread.

    Samples of images and volumes near the border, where filters are cut off and boxes hold fewer samples, are compared with
    those as near to it only.
    """
    out = [np.zeros_like(one) for one in energies]
    zones = _zones(seen)
    for number in range(1 + max(int(np.max(zone)) for zone in zones)):
        chosen = [(zone == number) & seen.seen(i) for i, zone in enumerate(zones)]
        pooled = np.concatenate([one[place] for one, place in zip(energies, chosen, strict=True)])
        if len(pooled):
            middle, spread = standardise(pooled, seen.least_spread)
            for deviation, one, place in zip(out, energies, chosen, strict=True):
                deviation[place] = (one[place] - middle) / spread
    return out


def _zones(seen: Explained) -> list[NDArray]:
    """The zone of each sample: 0 further than a filter from the border, and of rings around that 1 for the outermost.

    The ends of series are few, and belong to zone 0. Rings are as narrow as their numbers of samples allow.
    """
    spaces = [signal.shape[1:] for signal in seen.signals]
    if len(seen.size) == 1:
        return [np.zeros(space, np.int64) for space in spaces]
    depths = []  # in sides of a filter from the border, along the axis along which that is least
    for space in spaces:
        lines = zip(np.ogrid[tuple(slice(n) for n in space)], space, seen.size, strict=True)
        depths.append(reduce(np.minimum, [np.minimum(place, n - 1 - place) / side for place, n, side in lines]))
    rings = max(seen.size)
    while True:
        zones = [np.where(depth < 1, 1 + (depth * rings + 1e-9).astype(np.int64), 0) for depth in depths]
        counts = np.sum([np.bincount(zone[seen.seen(i)], minlength=rings + 1) for i, zone in enumerate(zones)], axis=0)
        if rings == 1 or np.min(counts[1:]) >= TUNING.ring:
            return zones
        rings //= 2


def rarity_part(seen: Explained) -> list[NDArray]:
    """Mean over the filters that cover a sample of how rare they are, weighted by what they contribute there."""
    if not seen.strengths.any():
        return [np.zeros(signal.shape[1:]) for signal in seen.signals]
    energy = np.sum(np.square(seen.filters, dtype=np.float64), axis=1)
    sums = []
    for factors in (rarity(seen.strengths), np.ones(len(energy))):
        values = [
            np.abs(value).astype(np.float64) * factors[index // prod(grid)]
            for index, value, grid in zip(seen.codes.indices, seen.codes.values, seen.codes.grids, strict=True)
        ]
        weighted = seen.codes.replaced(seen.codes.indices, values)
        sums.append([np.maximum(one, 0) for one in decode(weighted, energy, boundary=seen.boundary)])
    return [np.divide(one, all_, out=np.zeros_like(one), where=all_ > 0) for one, all_ in zip(*sums, strict=True)]


def rarity(use: NDArray) -> NDArray:
    """−log of how often filters are used, in nats above the most used one; filters without use cost as the rarest."""
    share = use / np.max(use)
    return np.log(1 / np.maximum(share, np.min(share[share > 0])))


@dataclass(frozen=True)
class _Beats:
    """Events of one series: their samples, their filters, and the typical interval around each."""

    moments: NDArray
    filters: NDArray
    typical: NDArray

    @property
    def intervals(self) -> NDArray:
        """Samples since the event before; the typical number for the first one."""
        return np.concatenate([self.typical[:1], np.diff(self.moments)])


def event_parts(seen: Explained, explained: list[NDArray]) -> dict[str, list[NDArray]]:
    """Amplitude, rarity and rhythm of series, per sample; `explained` are logarithms of the energy around each sample."""
    beats = _find_beats(seen)
    levels = []  # of the energy at each event, beside its neighbours
    for one, energy in zip(beats, explained, strict=True):
        level = energy[one.moments]
        if len(level) > TUNING.intervals:
            level = level - median_filter(level, TUNING.neighbours, mode="reflect")
        levels.append(level)
    if any(map(len, levels)):
        middle, spread = standardise(np.concatenate(levels), seen.least_spread)
        levels = [surprise_of_both_sides((one - middle) / spread) for one in levels]
    counts = np.bincount(np.concatenate([one.filters for one in beats]), minlength=seen.codes.n_filters)
    rarities = rarity(counts) if counts.any() else np.zeros(len(counts))
    # Where no channel or not all of them were seen, an event may be missed.
    channels = [np.sum(weight > 0, axis=0) for weight in seen.weights]
    early, late = _rhythm(beats, [one < np.max(one) for one in channels])
    parts: dict[str, list[NDArray]] = {"amplitude": [], "rarity": [], "rhythm": []}
    for i, one in enumerate(beats):
        held = _held(
            one.moments, np.stack([levels[i], rarities[one.filters], early[i]]), seen.size[0], len(explained[i])
        )
        for name, values in zip(parts, (held[0], held[1], held[2] + late[i]), strict=True):
            parts[name].append(values)
    return parts


def _find_beats(seen: Explained) -> list[_Beats]:
    """The events of each series."""
    length = seen.size[0]
    slopes = np.abs(np.gradient(np.asarray(seen.filters, np.float64), axis=-1)) if length > 1 else np.abs(seen.filters)
    sizes = seen.codes.replaced(seen.codes.indices, [np.abs(value) for value in seen.codes.values])
    changes = decode(sizes, slopes, boundary=seen.boundary, channels=True)
    moments = [
        _moments(signal, np.maximum(change, 0), length) for signal, change in zip(seen.signals, changes, strict=True)
    ]
    gaps = np.concatenate([np.diff(one) for one in moments])
    usual = float(np.median(gaps)) if len(gaps) else float(length)
    beats = []
    for i, one in enumerate(moments):
        typical = np.full(len(one), usual)
        if len(one) > TUNING.intervals:  # the median interval among the neighbours of each event
            around = median_filter(np.diff(one).astype(np.float64), TUNING.neighbours, mode="reflect")
            typical = np.concatenate([around[:1], around])
        beats.append(_Beats(one, _filters_at(seen, i, one, slopes), typical))
    return beats


def _moments(signal: NDArray, change: NDArray, length: int) -> NDArray:
    """Samples at which a series (channels, n) and what explains it change most, ascending."""
    jump = np.abs(np.gradient(np.asarray(signal, np.float64), axis=-1)) if signal.shape[-1] > 1 else 0 * signal
    window = max(int(TUNING.smooth * length), 1)
    salience = np.sqrt(np.maximum(uniform_filter1d(np.sum(jump * change, axis=0), window), 0))
    highest = running_median(maximum_filter1d(salience, 2 * length + 1), length, 2 * TUNING.neighbours - 1)
    candidates = np.flatnonzero(
        (salience == maximum_filter1d(salience, 3)) & (salience > TUNING.salience * highest) & (salience > 0)
    )
    free = np.ones(len(salience), bool)
    apart = max(int(TUNING.apart * length), 1)
    chosen = []
    for moment in candidates[np.argsort(-salience[candidates], kind="stable")]:
        if free[moment]:
            chosen.append(moment)
            free[max(moment - apart, 0) : moment + apart + 1] = False
    return np.sort(np.array(chosen, np.int64))


def _filters_at(seen: Explained, i: int, moments: NDArray, slopes: NDArray) -> NDArray:
    """The filter that changes most at each event of series i."""
    length, grid = seen.size[0], seen.codes.grids[i][0]
    geometry = Geometry(seen.signals[i].shape[1:], seen.size, len(seen.signals[i]), seen.boundary)
    filters, position = np.divmod(seen.codes.indices[i], grid)
    start = position - geometry.offset[0]
    size = np.abs(seen.codes.values[i]).astype(np.float64)
    smooth = uniform_filter1d(slopes.sum(axis=1), max(int(TUNING.smooth * length), 1), axis=-1, mode="constant")
    change = np.zeros((len(moments), len(slopes)))
    first, last = np.searchsorted(moments, start), np.searchsorted(moments, start + length)
    for step in range(int(np.max(last - first, initial=0))):
        some = first + step < last
        event = (first + step)[some]
        np.add.at(change, (event, filters[some]), size[some] * smooth[filters[some], moments[event] - start[some]])
    return np.argmax(change, axis=1) if len(moments) else np.empty(0, np.int64)


def _rhythm(beats: list[_Beats], gaps: list[NDArray]) -> tuple[list[NDArray], list[NDArray]]:
    """Surprise at each event that comes early, and at each sample at which one is overdue.

    Where samples since the event before are in a gap, another one may have happened there, and nothing is said.
    """
    ratios = [np.log(one.intervals[1:] / one.typical[1:]) for one in beats]
    pooled = np.concatenate(ratios)
    if len(pooled) < TUNING.intervals:
        return [np.zeros(len(one.moments)) for one in beats], [np.zeros(len(gap)) for gap in gaps]
    usual = float(np.median(np.concatenate([one.typical for one in beats])))
    middle, spread = standardise(pooled, TUNING.rounding / usual)
    early, late = [], []
    for one, gap in zip(beats, gaps, strict=True):
        unseen = np.cumsum(gap)
        early.append(_early(one, middle, spread))
        early[-1][1:][np.diff(unseen[one.moments]) > 0] = 0
        late.append(_late(one, len(gap), middle, spread))
        if len(one.moments):
            last = np.searchsorted(one.moments, np.arange(len(gap)), side="right") - 1
            late[-1][unseen > unseen[one.moments[np.maximum(last, 0)]]] = 0
    return early, late


def _early(beats: _Beats, middle: float, spread: float) -> NDArray:
    """Surprise at events that come early.

    One that comes in time after the last event but one does not: then the event between them was an extra one.
    """
    interval = beats.intervals
    after_two = np.full(len(interval), np.inf)
    after_two[2:] = interval[2:] + interval[1:-1]
    alone = surprise((middle - np.log(interval / beats.typical)) / spread)
    extra = surprise(np.abs(np.log(after_two / beats.typical) - middle) / spread)
    out = np.minimum(alone, extra)
    out[:1] = 0
    return out


def _late(beats: _Beats, length: int, middle: float, spread: float) -> NDArray:
    """Surprise at samples at which an event is overdue.

    A pause that makes up for an early event before it is in time: two intervals together are then as long as two.
    """
    if not len(beats.moments):
        return np.zeros(length)
    samples = np.arange(length)
    last = np.searchsorted(beats.moments, samples, side="right") - 1
    event = np.maximum(last, 0)
    since = np.maximum(samples - beats.moments[event], 1)
    typical = beats.typical[event]
    alone = np.log(since / typical)
    together = np.log((since + beats.intervals[event]) / (2 * typical))
    overdue = (np.minimum(alone, together) - middle) / spread
    return np.where((last >= 0) & (overdue > 0), surprise(overdue), 0.0)


def _held(moments: NDArray, surprises: NDArray, length: int, samples: int) -> NDArray:
    """Surprises (parts, events) held from each event on, fading within a filter length; the largest sum wins a sample."""
    out = np.zeros((len(surprises), samples))
    if not len(moments):
        return out
    places = np.arange(samples)
    last = np.searchsorted(moments, places, side="right") - 1
    best = np.zeros(samples)
    for back in range(int(1 / TUNING.apart) + 1):
        event = np.maximum(last - back, 0)
        age = (places - moments[event]) / length
        fading = np.where((last >= back) & (age < 1), 1 - age**2, 0.0)
        sums = surprises.sum(axis=0)[event] * fading
        wins = sums > best
        out[:, wins] = surprises[:, event[wins]] * fading[wins]
        best[wins] = sums[wins]
    return out
