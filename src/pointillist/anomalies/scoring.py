"""Anomaly scores: signals are coded by a model, what is left and what was dear to explain is judged, events are found.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.ndimage import maximum_filter1d, median_filter, uniform_filter, uniform_filter1d
from scipy.special import log_ndtr
from sklearn.utils.validation import check_is_fitted

from pointillist.codes import SparseCodes
from pointillist.learners.estimators import ConvolutionalLearner
from pointillist.reprs import ShortRepr, shown
from pointillist.solvers.encoding import decode
from pointillist.solvers.large_signals import Progress
from pointillist.validation import Signals, check_arguments, is_number, trusted


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of the scores; ``python -m benchmarks.anomalies`` measures them."""

    rare: float = 0.1
    """Share of the average use below which a filter is rare, and what it explains counts as left."""
    rings: int = 4
    """Rings within a filter of the border of images, each compared with itself."""
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


@dataclass(frozen=True, repr=False)
class AnomalyScore(ShortRepr):
    """Strangeness of every sample of signals, in nats, and what stands out.

    Attributes
    ----------
    scores : list of arrays (*space)
        One for each signal, without channels: the sum of the parts. Larger is stranger; samples that were not seen have 0.
    parts : dict from str to list of arrays
        What each score is made of: "residual", "amplitude", "rarity" and, for series, "rhythm".
    threshold : float
        The score that samples of normal signals exceed at the rate that was asked for; see `anomaly_score`.
    extent : tuple of int
        Size of the filters. Samples above the threshold that lie nearer to each other than half of it are one event.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> score = np.zeros(100)
    >>> score[40:44] = [3.0, 9.0, 8.0, 2.5]
    >>> found = pt.AnomalyScore([score], {"residual": [score]}, threshold=2.0, extent=(10,)).events()
    >>> [found[name][0].item() for name in ("signal", "start", "stop", "peak", "score", "cause")]
    [0, 40, 44, 41, 9.0, 'residual']
    """

    scores: list[NDArray]
    parts: dict[str, list[NDArray]]
    threshold: float
    extent: tuple[int, ...]

    def events(self, *, threshold: float | None = None) -> NDArray:
        """Stretches, or boxes, of samples above the threshold, ordered by signal and place.

        Parameters
        ----------
        threshold : float or None
            Another threshold than the attribute's.

        Returns
        -------
        structured array
            ``signal``, ``start``, ``stop`` (behind the last sample), ``peak`` (where the score is largest), ``score``
            (there) and ``cause`` (the part that contributes most there). For series, places are integers; for images and
            volumes they have one entry for each axis.
        """
        level = self.threshold if threshold is None else threshold
        if not is_number(level):
            raise ValueError(f"threshold must be a finite number, got {shown(threshold)}")
        axes = len(self.extent)
        place = (np.int64,) if axes == 1 else (np.int64, (axes,))
        kinds = [("signal", np.int64), *((name, *place) for name in ("start", "stop", "peak"))]
        kinds += [("score", np.float64), ("cause", "U16")]
        reach = [2 * max(side // 4, 1) + 1 for side in self.extent]
        rows = []
        for i, score in enumerate(self.scores):
            above = score > level
            groups = ndimage.label(ndimage.maximum_filter(above, reach, mode="constant"))[0] * above
            for number, box in enumerate(ndimage.find_objects(groups), start=1):
                if box is None:
                    continue
                inside = np.where(groups[box] == number, score[box], -np.inf)
                offset = np.unravel_index(np.argmax(inside), inside.shape)
                peak = tuple(int(side.start + step) for side, step in zip(box, offset, strict=True))
                cause = max(self.parts, key=lambda name: self.parts[name][i][peak])
                corners = (tuple(side.start for side in box), tuple(side.stop for side in box), peak)
                places = [corner[0] if axes == 1 else corner for corner in corners]
                rows.append((i, *places, float(score[peak]), cause))
        return np.array(sorted(rows, key=lambda row: row[:2]), np.dtype(kinds))


def bulk_threshold(scores: Sequence[NDArray], false_alarms: float) -> float:
    """The score above which a share `false_alarms` of normal samples lies, by the bulk of all samples.

    A surprise in nats has an exponential tail. It is laid through the median and the upper quartile and prolonged, so that
    anomalies move it little, as long as they are well under a quarter of the samples.
    """
    middle, upper = np.quantile(np.concatenate([score.ravel() for score in scores]), [0.5, 0.75])
    return float(middle + (upper - middle) * np.log(0.5 / false_alarms) / np.log(2))


def anomaly_score(
    signals: Signals,
    model: ConvolutionalLearner,
    *,
    weights: Signals | None = None,
    false_alarms: float = 0.01,
    progress: Progress | None = None,
) -> AnomalyScore:
    """Say how strange every sample of signals is to a learned model.

    The signals are coded, and four things are judged, each by how far it lies from what is usual in these very signals
    (medians and median absolute deviations, which anomalies do not move as long as they are fewer than half). A deviation
    counts as −log of the probability that a normal variable deviates as much, in nats, and the four are added:

    - *residual*: the energy around a sample that the filters do not explain, or that only rare filters do;
    - *amplitude*: the energy that they do explain, if it is unusually high or low;
    - *rarity*: −log of how often a filter is used, above the most used one;
    - *rhythm*, in series: an event that comes early, and samples at which the next one is overdue.

    In series, events are the moments at which the signal and the filters that explain it change most, and an event is
    compared with its 21 neighbours. Its score holds from this moment on and fades within the length of a filter. Filters
    should be about as long as the usual interval between events; `learn_windows` learns such filters.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or list of arrays of any sizes
        As for the model's ``transform``: series, images or volumes. NaN marks samples that were not seen.
    model : fitted BatchCSC or OnlineCSC
    weights : like signals, optional
        w ≥ 0, multiplying the squared error. Zero marks samples that were not seen, which are not judged.
    false_alarms : float in (0, 0.5)
        Share of the samples of normal signals that may lie above the threshold. An exponential tail is laid through the
        median and the upper quartile of the scores, so that anomalies move it little, as long as they are well under a
        quarter of the samples.
    progress : callable, optional
        Called now and then with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AnomalyScore
        ``scores``, one array for each signal, their ``parts``, the ``threshold``, and ``events()`` above it.

    Examples
    --------
    A pulse that comes every 50 samples, once too early and once with another shape:

    >>> import numpy as np, pointillist as pt
    >>> series = 0.01 * np.random.default_rng(0).standard_normal(3000)
    >>> for beat in range(25, 2990, 50):
    ...     moment = beat - 15 if beat == 1025 else beat
    ...     series[moment : moment + 9] += np.hanning(9) * (-1 if beat == 2025 else 1)
    >>> signals = pt.remove_baseline(series[None], 50)
    >>> model = pt.learn_windows(signals, 50, random_state=0)
    >>> found = pt.anomaly_score(signals, model).events()
    >>> strangest = np.sort(found["peak"][np.argsort(-found["score"])[:2]])
    >>> bool(abs(strangest[0] - 1014) < 20), bool(abs(strangest[1] - 2029) < 20)
    (True, True)
    """
    if not isinstance(model, ConvolutionalLearner):
        raise ValueError(f"model must be a fitted BatchCSC or OnlineCSC, got {type(model).__name__}")
    check_is_fitted(model, "filters_", msg="model is not fitted: call its fit, or learn one by learn_windows")
    check_arguments(false_alarms=false_alarms, progress=progress)
    seen = _coded(signals, model, weights, progress)
    left, explained = log_energies(seen)
    parts = {"residual": residual_part(seen, left)}
    if len(seen.size) == 1:
        parts |= event_parts(seen, explained)
    else:
        amplitude = [surprise_of_both_sides(one) for one in standardised(seen, explained)]
        parts |= {"amplitude": amplitude, "rarity": rarity_part(seen)}
    return _added(seen, parts, false_alarms)


def _coded(signals: Any, model: ConvolutionalLearner, weights: Any, progress: Progress | None) -> Explained:
    """Signals and what the model makes of them, in float64 and divided by their largest sample, so that squares fit."""
    channels = bool(model.channels)
    arrays, filters, counted = trusted(signals, model.filters_, weights, channels=channels)
    plain = arrays if channels else [array[0] for array in arrays]
    marked = counted if channels or counted is None else [one[0] for one in counted]
    codes = model.encode(plain, marked, progress=progress).codes.on_host()
    fits = model.inverse_transform(codes)
    scale = max(max(float(np.max(np.abs(array))) for array in arrays), np.finfo(np.float64).tiny)
    weights = [np.ones(array.shape) for array in arrays]
    if counted is not None:
        largest = max(float(np.max(weight)) for weight in counted) or 1.0
        weights = [np.asarray(weight, np.float64) / largest for weight in counted]
    return Explained(
        [np.asarray(array, np.float64) / scale for array in arrays],
        [np.asarray(fit if channels else fit[None], np.float64) / scale for fit in fits],
        weights,
        codes,
        filters,
        model.boundary,
        scale,
    )


def _added(seen: Explained, parts: dict[str, list[NDArray]], false_alarms: float) -> AnomalyScore:
    """Sum the parts, with zeros where nothing was seen."""
    masks = [seen.seen(i) for i in range(len(seen.signals))]
    judged = {
        name: [np.where(mask, one, 0.0) for one, mask in zip(part, masks, strict=True)] for name, part in parts.items()
    }
    scores = [np.sum(one, axis=0) for one in zip(*judged.values(), strict=True)]
    threshold = bulk_threshold([score[mask] for score, mask in zip(scores, masks, strict=True)], false_alarms)
    return AnomalyScore(scores, judged, threshold, seen.size)


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

    @property
    def sizes(self) -> SparseCodes:
        """The codes without their signs."""
        values = [np.abs(value).astype(np.float64) for value in self.codes.values]
        return self.codes.replaced(self.codes.indices, values)

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
    zones = [_zones(one.shape, seen.size) for one in energies]
    for number in range(TUNING.rings + 1):
        chosen = [(zone == number) & seen.seen(i) for i, zone in enumerate(zones)]
        pooled = np.concatenate([one[place] for one, place in zip(energies, chosen, strict=True)])
        if len(pooled):
            middle, spread = standardise(pooled, seen.least_spread)
            for deviation, one, place in zip(out, energies, chosen, strict=True):
                deviation[place] = (one[place] - middle) / spread
    return out


def _zones(space: tuple[int, ...], size: tuple[int, ...]) -> NDArray:
    """The zone of each sample: 0 further than a filter from the border, and of rings around that 1 for the outermost.

    The ends of series are few, and belong to zone 0.
    """
    if len(size) == 1:
        return np.zeros(space, np.int64)
    lines = zip(np.ogrid[tuple(map(slice, space))], space, size, strict=True)
    # In sides of a filter from the border, along the axis along which that is least.
    depth = reduce(np.minimum, [np.minimum(place, n - 1 - place) / side for place, n, side in lines])
    return np.where(depth < 1, 1 + (depth * TUNING.rings + 1e-9).astype(np.int64), 0)


def rarity_part(seen: Explained) -> list[NDArray]:
    """Mean over the filters that cover a sample of how rare they are, weighted by what they contribute there."""
    if not seen.strengths.any():
        return [np.zeros(signal.shape[1:]) for signal in seen.signals]
    energy = np.sum(np.square(seen.filters, dtype=np.float64), axis=1)
    rare = energy * rarity(seen.strengths).reshape(-1, *[1] * len(seen.size))
    sums = [[np.maximum(one, 0) for one in decode(seen.sizes, some, boundary=seen.boundary)] for some in (rare, energy)]
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
    length, numbers = seen.size[0], np.arange(len(seen.filters))
    slopes = np.abs(np.gradient(np.asarray(seen.filters, np.float64), axis=-1)) if length > 1 else np.abs(seen.filters)
    changes = decode(seen.sizes, slopes, boundary=seen.boundary, channels=True)
    moments = [
        _moments(signal, np.maximum(change, 0), length) for signal, change in zip(seen.signals, changes, strict=True)
    ]
    smooth = uniform_filter1d(slopes.sum(axis=1), max(int(TUNING.smooth * length), 1), axis=-1, mode="constant")
    alone = [decode(seen.sizes, smooth * (numbers == k)[:, None], boundary=seen.boundary) for k in numbers]
    gaps = np.concatenate([np.diff(one) for one in moments])
    usual = float(np.median(gaps)) if len(gaps) else float(length)
    beats = []
    for i, one in enumerate(moments):
        typical = np.full(len(one), usual)
        if len(one) > TUNING.intervals:  # the median interval among the neighbours of each event
            around = median_filter(np.diff(one).astype(np.float64), TUNING.neighbours, mode="reflect")
            typical = np.concatenate([around[:1], around])
        # The filter that changes most at each event.
        beats.append(_Beats(one, np.argmax([change[i][one] for change in alone], axis=0), typical))
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


def _rhythm(beats: list[_Beats], gaps: list[NDArray]) -> tuple[list[NDArray], list[NDArray]]:
    """Surprise at each event that comes early, and at each sample at which one is overdue.

    An event that comes in time after the last but one is not early: then the one between them was an extra one. A pause that
    makes up for an early event before it is in time: two intervals together are then as long as two. Where samples since the
    event before are in a gap, another one may have happened there, and nothing is said.
    """
    ratios = np.concatenate([np.log(one.intervals[1:] / one.typical[1:]) for one in beats])
    early, late = [np.zeros(len(one.moments)) for one in beats], [np.zeros(len(gap)) for gap in gaps]
    if len(ratios) < TUNING.intervals:
        return early, late
    usual = float(np.median(np.concatenate([one.typical for one in beats])))
    middle, spread = standardise(ratios, TUNING.rounding / usual)
    for i, (one, gap) in enumerate(zip(beats, gaps, strict=True)):
        if not len(one.moments):
            continue
        unseen, intervals, samples = np.cumsum(gap), one.intervals, np.arange(len(gap))
        after_two = np.full(len(intervals), np.inf)
        after_two[2:] = intervals[2:] + intervals[1:-1]
        short = surprise((middle - np.log(intervals / one.typical)) / spread)
        extra = surprise(np.abs(np.log(after_two / one.typical) - middle) / spread)
        known = np.diff(unseen[one.moments], prepend=-1) == 0  # nothing is known before the first event
        early[i] = np.where(known, np.minimum(short, extra), 0.0)
        last = np.searchsorted(one.moments, samples, side="right") - 1
        event = np.maximum(last, 0)
        since, typical = np.maximum(samples - one.moments[event], 1), one.typical[event]
        ratio = np.minimum(since / typical, (since + intervals[event]) / (2 * typical))
        overdue = (np.log(ratio) - middle) / spread
        known = (last >= 0) & (unseen == unseen[one.moments[event]])
        late[i] = np.where(known & (overdue > 0), surprise(overdue), 0.0)
    return early, late


def _held(moments: NDArray, surprises: NDArray, length: int, samples: int) -> NDArray:
    """Surprises (parts, events) held from each event on, fading within a filter length; the largest sum wins a sample."""
    out = np.zeros((len(surprises), samples))
    fading = 1 - (np.arange(length) / length) ** 2
    for moment, parts in zip(moments, surprises.T, strict=True):
        here = out[:, moment : moment + length]
        held = parts[:, None] * fading[: here.shape[1]]
        np.copyto(here, held, where=held.sum(axis=0) > here.sum(axis=0))
    return out
