"""Which penalty to use: what people pass, or the one that predicts hidden samples best."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import Geometry, Problem, lambda_max
from pointillist.reprs import shown
from pointillist.restore.engine import Damaged, Settings, code, convolution, separate
from pointillist.restore.smooth import Smooth
from pointillist.restore.tiling import spans
from pointillist.sampling import generator
from pointillist.validation import is_number

_HIDDEN = 0.25
_CROPS = 8
_CROP_SIDE = 48
_TRIED = (0.2, 0.065, 0.02)  # of the contrast; below them coding takes long and pictures gain little
_WORTHWHILE = 0.015
"""The largest penalty is taken whose log error lies so near to the smallest: smaller penalties take longer."""

_BETWEEN = 101
_NO_DETAIL = 1e-4  # λ_max below which there is nothing but rounding to code

Penalty = float | str

_LARGEST = 1e9


def parse_penalty(penalty: Penalty) -> tuple[float, bool] | None:
    """The number that people passed and whether it is relative to λ_max; None where they left it to the task."""
    if isinstance(penalty, str) and penalty == "auto":
        return None
    relative = isinstance(penalty, str) and penalty.endswith("%")
    value: Any = penalty
    if isinstance(penalty, str):
        try:
            value = float(penalty.removesuffix("%")) / (100 if relative else 1)
        except ValueError:
            raise ValueError(f'penalty must be a number, "auto" or for instance "5%", got {penalty!r}') from None
    if not isinstance(value, float) and not is_number(value):
        raise ValueError(f'penalty must be a number, "auto" or for instance "5%", got {shown(penalty)}')
    if not 0 < float(value) <= _LARGEST:
        raise ValueError(f"penalty must be positive, and at most {_LARGEST:g} times full scale, got {penalty!r}")
    return float(value), relative


def choose_penalty(penalty: Penalty, usual: float, damaged: Damaged, filters: NDArray, settings: Settings) -> float:
    """The penalty that people passed, as a number, or the usual one where they left it to the task ("auto").

    A string such as ``"5%"`` is relative to the largest λ_max of the signals.
    """
    parsed = parse_penalty(penalty)
    if parsed is None:
        return usual
    value, relative = parsed
    return value * largest_penalty(damaged, separate(damaged, settings), filters, settings) if relative else value


def contrast(damaged: Damaged) -> float:
    """Range of the samples seen, at most one: dark pictures have less detail, and want less penalty."""
    pairs = zip(damaged.signals, damaged.weights, strict=True)
    ends = [(np.min(seen), np.max(seen)) for signal, weights in pairs if (seen := signal[weights > 0]).size]
    return min(1.0, float(max(high for _, high in ends) - min(low for low, _ in ends))) or 1.0


def largest_penalty(damaged: Damaged, smooth: list[Smooth], filters: NDArray, settings: Settings) -> float:
    """λ_max of the detail: from there on all codes are zero. One where there is no detail but rounding."""
    blurred = damaged.blur.filters(filters)
    largest = 0.0
    for signal, weights, part in zip(damaged.signals, damaged.weights, smooth, strict=True):
        geometry = Geometry(signal.shape[1:], blurred.shape[2:], len(signal), settings.boundary)
        problem = Problem(filters=blurred, geometry=geometry, penalty=np.ones((len(blurred), 1)), weights=weights)
        detail = np.where(weights > 0, signal - part.seen, 0.0)
        largest = max(largest, float(lambda_max(problem, [detail])[0]))
    return largest if largest >= _NO_DETAIL else 1.0


@dataclass(frozen=True, eq=False)
class Trial:
    """Crops of a damaged picture with some of the seen samples hidden, to see how well these are predicted.

    Attributes
    ----------
    crops : Damaged
        As they were seen.
    hidden : list of (channels, height, width) bool arrays
    left : Damaged
        The crops without what is hidden.
    smooth : list of Smooth
        The smooth parts of what is left.
    """

    crops: Damaged
    hidden: list[NDArray]
    left: Damaged
    smooth: list[Smooth]


def trial_of(damaged: Damaged, filters: NDArray, settings: Settings) -> Trial:
    """Hide a quarter of the seen samples of a few crops of the signals."""
    crops = sample_crops(damaged, max(_CROP_SIDE, 2 * max(damaged.blur.extended(filters.shape[2:]))))
    hidden = [hide_some(weights, i) for i, weights in enumerate(crops.weights)]
    left = [weights * ~gone for weights, gone in zip(crops.weights, hidden, strict=True)]
    remaining = Damaged(crops.signals, left, crops.blur)
    return Trial(crops, hidden, remaining, separate(remaining, settings))


def predicted_penalty(damaged: Damaged, filters: NDArray, settings: Settings, trial: Trial | None = None) -> float:
    """The penalty whose restoration predicts the hidden samples of a trial best.

    What is left of the crops is coded with three falling penalties, each from the codes of the one before; a parabola
    through the logarithms of the errors, over that of the penalty, says the rest.
    """
    settings = replace(settings, progress=None)
    trial = trial or trial_of(damaged, filters, settings)
    penalties = contrast(damaged) * np.array(_TRIED)
    errors: list[float] = []
    start = None
    for penalty in penalties:
        start = code(trial.left, trial.smooth, filters, float(penalty), settings, start).codes
        errors.append(_error(trial, filters, start, settings))
        if errors[-1] > errors[0]:
            break
    return _largest_of_the_best(penalties[: len(errors)], np.array(errors))


def _largest_of_the_best(penalties: NDArray, errors: NDArray) -> float:
    """The largest penalty whose error, as a parabola tells it, is within `_WORTHWHILE` of the smallest."""
    if errors[0] <= np.min(errors[1:]):
        return float(penalties[0])
    places, heights = np.log(penalties), np.log(np.maximum(errors, np.finfo(np.float64).tiny))
    between = np.linspace(places[0], places[-1], _BETWEEN)
    curve = np.polyval(np.polyfit(places, heights, len(places) - 1), between)
    return float(np.exp(between[np.flatnonzero(curve <= np.min(curve) + _WORTHWHILE)[0]]))


def sample_crops(damaged: Damaged, side: int) -> Damaged:
    """Square crops of the signals that were seen well enough, evenly spread in variance."""
    crops = [
        (signal[:, rows, columns], weights[:, rows, columns])
        for signal, weights in zip(damaged.signals, damaged.weights, strict=True)
        for rows in spans(signal.shape[1], side)
        for columns in spans(signal.shape[2], side)
    ]
    enough = 0.5 * np.mean([np.mean(weights) for weights in damaged.weights])
    crops = [crop for crop in crops if np.mean(crop[1]) >= enough] or crops[:1]
    spreads = [float(np.std(signal[weights > 0])) if np.any(weights) else 0.0 for signal, weights in crops]
    # From the calmest to the liveliest, so that they stand for the picture: those of most detail would ask for too little.
    order = np.argsort(spreads, kind="stable")
    chosen = [crops[order[i]] for i in np.unique(np.linspace(0, len(order) - 1, _CROPS).astype(int))]
    return Damaged([signal for signal, _ in chosen], [weights for _, weights in chosen], damaged.blur)


def hide_some(weights: NDArray, i: int) -> NDArray:
    """A quarter of the seen samples, at least one and never all of them."""
    seen = np.flatnonzero(weights)
    count = min(max(1, round(_HIDDEN * len(seen))), max(len(seen) - 1, 0))
    hidden = np.zeros(weights.size, bool)
    hidden[generator(0, i).choice(seen, count, replace=False)] = True
    return hidden.reshape(weights.shape)


def _error(trial: Trial, filters: NDArray, codes: SparseCodes, settings: Settings) -> float:
    """Sum of squared errors on the hidden samples, as they were seen (through the blur)."""
    blurred = trial.crops.blur.filters(filters)
    total = 0.0
    for i, gone in enumerate(trial.hidden):
        detail = convolution(blurred, gone.shape, settings).synthesise(codes.indices[i], codes.values[i])
        fit = trial.smooth[i].seen + detail
        total += float(np.sum((trial.crops.signals[i] - fit)[gone] ** 2))
    return total
