"""Anomaly scores: signals are coded by a model, what is left and what was dear to explain is judged, events are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.utils.validation import check_is_fitted

from pointillist.anomalies.surprise import (
    Explained,
    event_parts,
    log_energies,
    rarity_part,
    residual_part,
    standardised,
    surprise_of_both_sides,
)
from pointillist.learners.estimators import ConvolutionalLearner
from pointillist.reprs import ShortRepr, shown
from pointillist.solvers.large_signals import Progress
from pointillist.validation import Signals, check_arguments, is_number, trusted


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
        rows = [row for i in range(len(self.scores)) for row in self._events_of(i, level)]
        return np.array(rows, np.dtype(kinds))

    def _events_of(self, i: int, threshold: float) -> list[tuple]:
        score = self.scores[i]
        above = score > threshold
        reach = [max(side // 4, 1) for side in self.extent]
        near = ndimage.maximum_filter(above, [2 * side + 1 for side in reach], mode="constant")
        groups = ndimage.label(near)[0] * above
        found = []
        for number, box in enumerate(ndimage.find_objects(groups), start=1):
            if box is None:
                continue
            inside = np.where(groups[box] == number, score[box], -np.inf)
            offset = np.unravel_index(int(np.argmax(inside)), inside.shape)
            peak = tuple(int(side.start + step) for side, step in zip(box, offset, strict=True))
            cause = max(self.parts, key=lambda name: self.parts[name][i][peak])
            corners = [side.start for side in box], [side.stop for side in box], list(peak)
            found.append((i, *map(_place, corners), float(score[peak]), cause))
        return sorted(found, key=lambda row: row[1])


def _place(corner: Sequence[int]) -> int | tuple[int, ...]:
    return corner[0] if len(corner) == 1 else tuple(corner)


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
