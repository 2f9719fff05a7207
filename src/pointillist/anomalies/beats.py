"""What is judged event by event in series: when filters set in, how strong they are there, how rare, how early or late.

An event is a moment at which both a series and the filters that explain it change most, such as the beat of a heart. Its
surprise lasts from there for the length of a filter and fades: what a sample is told, it is told by the past.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, median_filter, uniform_filter1d

from pointillist.anomalies.energies import NEIGHBOURS, Explained, least_spread, rarity
from pointillist.anomalies.surprise import running_median, standardise, surprise, surprise_of_both_sides
from pointillist.codes import SparseCodes
from pointillist.problem import Geometry
from pointillist.solvers.encoding import decode

_APART = 0.4
"""Two events lie at least so many filter lengths apart."""
_SMOOTH = 0.2
"""Window in which changes are summed, in filter lengths."""
_LEAST = 1 / 3
"""Share of its neighbours' change that a moment must have to be an event."""
_INTERVALS = 8
"""Intervals without which nothing is said about a rhythm."""
_ROUNDING = 1.0
"""Samples by which an interval may be wrong because moments are counted in samples; no rhythm is taken to be steadier."""


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
    """Amplitude, rarity and rhythm of series, per sample.

    Parameters
    ----------
    seen : Explained
    explained : list of (length,) arrays
        Logarithms of the explained energy around each sample.
    """
    beats = _find_beats(seen)
    amplitude = _amplitude(seen, beats, explained)
    rare = _rarity(beats, seen.codes.n_filters)
    early, late = _rhythm(beats, [~seen.wholly_seen(i) for i in range(len(seen.signals))])
    parts: dict[str, list[NDArray]] = {"amplitude": [], "rarity": [], "rhythm": []}
    for i, one in enumerate(beats):
        held = _held(one.moments, np.stack([amplitude[i], rare[i], early[i]]), seen.size[0], len(explained[i]))
        parts["amplitude"].append(held[0])
        parts["rarity"].append(held[1])
        parts["rhythm"].append(held[2] + late[i])
    return parts


def _find_beats(seen: Explained) -> list[_Beats]:
    length = seen.size[0]
    slopes = np.abs(np.gradient(np.asarray(seen.filters, np.float64), axis=-1)) if length > 1 else np.abs(seen.filters)
    sizes = SparseCodes(
        seen.codes.indices, [np.abs(value) for value in seen.codes.values], seen.codes.grids, seen.codes.n_filters
    )
    changes = decode(sizes, slopes, boundary=seen.boundary, channels=True)
    found = []
    for i, (signal, change) in enumerate(zip(seen.signals, changes, strict=True)):
        moments = _moments(signal, np.maximum(change, 0), length)
        found.append((moments, _filters_at(seen, i, moments, slopes)))
    gaps = [np.diff(moments) for moments, _ in found]
    usual = float(np.median(np.concatenate(gaps))) if any(len(gap) for gap in gaps) else float(length)
    return [_Beats(moments, filters, _typical(moments, usual)) for moments, filters in found]


def _moments(signal: NDArray, change: NDArray, length: int) -> NDArray:
    """Samples at which a series (channels, n) and what explains it change most, ascending."""
    jump = np.abs(np.gradient(np.asarray(signal, np.float64), axis=-1)) if signal.shape[-1] > 1 else 0 * signal
    window = max(int(_SMOOTH * length), 1)
    salience = np.sqrt(np.maximum(uniform_filter1d(np.sum(jump * change, axis=0), window), 0))
    highest = running_median(maximum_filter1d(salience, 2 * length + 1), length, 2 * NEIGHBOURS - 1)
    candidates = np.flatnonzero(
        (salience == maximum_filter1d(salience, 3)) & (salience > _LEAST * highest) & (salience > 0)
    )
    free = np.ones(len(salience), bool)
    apart = max(int(_APART * length), 1)
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
    smooth = uniform_filter1d(slopes.sum(axis=1), max(int(_SMOOTH * length), 1), axis=-1, mode="constant")
    change = np.zeros((len(moments), len(slopes)))
    first, last = np.searchsorted(moments, start), np.searchsorted(moments, start + length)
    for step in range(int(np.max(last - first, initial=0))):
        some = first + step < last
        event = (first + step)[some]
        np.add.at(change, (event, filters[some]), size[some] * smooth[filters[some], moments[event] - start[some]])
    return np.argmax(change, axis=1) if len(moments) else np.empty(0, np.int64)


def _typical(moments: NDArray, usual: float) -> NDArray:
    """The median interval among the neighbours of each event; that of all series where there are few neighbours."""
    if len(moments) <= _INTERVALS:
        return np.full(len(moments), usual)
    around = median_filter(np.diff(moments).astype(np.float64), NEIGHBOURS, mode="reflect")
    return np.concatenate([around[:1], around])


def _amplitude(seen: Explained, beats: list[_Beats], explained: list[NDArray]) -> list[NDArray]:
    """Surprise at the explained energy at each event, beside its neighbours."""
    values = []
    for one, energy in zip(beats, explained, strict=True):
        level = energy[one.moments]
        values.append(level - median_filter(level, NEIGHBOURS, mode="reflect") if len(level) > _INTERVALS else level)
    pooled = np.concatenate(values)
    if not len(pooled):
        return values
    middle, spread = standardise(pooled, least_spread(seen.size))
    return [surprise_of_both_sides((one - middle) / spread) for one in values]


def _rarity(beats: list[_Beats], n_filters: int) -> list[NDArray]:
    counts = np.bincount(np.concatenate([one.filters for one in beats]), minlength=n_filters)
    return [rarity(counts)[one.filters] if len(one.filters) else np.empty(0) for one in beats]


def _rhythm(beats: list[_Beats], gaps: list[NDArray]) -> tuple[list[NDArray], list[NDArray]]:
    """Surprise at each event that comes early, and at each sample at which one is overdue.

    Where samples since the event before are in a gap, another one may have happened there, and nothing is said.
    """
    ratios = [np.log(one.intervals[1:] / one.typical[1:]) for one in beats]
    pooled = np.concatenate(ratios)
    if len(pooled) < _INTERVALS:
        return [np.zeros(len(one.moments)) for one in beats], [np.zeros(len(gap)) for gap in gaps]
    usual = float(np.median(np.concatenate([one.typical for one in beats])))
    middle, spread = standardise(pooled, _ROUNDING / usual)
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
    for back in range(int(1 / _APART) + 1):
        event = np.maximum(last - back, 0)
        age = (places - moments[event]) / length
        fading = np.where((last >= back) & (age < 1), 1 - age**2, 0.0)
        sums = surprises.sum(axis=0)[event] * fading
        wins = sums > best
        out[:, wins] = surprises[:, event[wins]] * fading[wins]
        best[wins] = sums[wins]
    return out
