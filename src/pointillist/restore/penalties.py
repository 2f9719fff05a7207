"""Penalties as people pass them, or those that predict hidden samples best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.problem import Geometry, Problem, lambda_max
from pointillist.reprs import shown
from pointillist.restore.engine import Damaged, Settings, code, convolution, separate
from pointillist.restore.picture import crops
from pointillist.restore.smooth import Smooth
from pointillist.sampling import generator
from pointillist.validation import is_number


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.fills``."""

    tried: tuple[float, ...] = (0.2, 0.065, 0.02)
    """Penalties tried, of the contrast: below them coding takes long and pictures gain little."""
    hidden: float = 0.25
    """Share of the seen samples that is hidden to see how well it is predicted."""
    worthwhile: float = 0.015
    """Log error above the smallest for which the largest penalty is taken: smaller penalties take longer."""


TUNING = Tuning()

Penalty = float | str


def parse_penalty(penalty: Penalty) -> tuple[float, bool] | None:
    """The number that people passed, and True if it is relative to λ_max; None where they left it to the task."""
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
    if not 0 < float(value) <= 1e9:
        raise ValueError(f"penalty must be positive, and at most 1e+09 times full scale, got {penalty!r}")
    return float(value), relative


def choose_penalty(penalty: Penalty, usual: float, damaged: Damaged, filters: NDArray, settings: Settings) -> float:
    """The penalty that people passed, as a number, or the usual one where they left it to the task ("auto").

    A string such as ``"5%"`` is relative to the largest λ_max of the signals, from which on all codes are zero; to one where
    there is no detail but rounding.
    """
    parsed = parse_penalty(penalty)
    if parsed is None:
        return usual
    value, relative = parsed
    if not relative:
        return value
    blurred = damaged.blur.filters(filters)
    largest = 0.0
    for signal, weights, part in zip(damaged.signals, damaged.weights, separate(damaged, settings), strict=True):
        geometry = Geometry(signal.shape[1:], blurred.shape[2:], len(signal), settings.boundary)
        problem = Problem(filters=blurred, geometry=geometry, penalty=np.ones((len(blurred), 1)), weights=weights)
        detail = np.where(weights > 0, signal - part.seen, 0.0)
        largest = max(largest, float(lambda_max(problem, [detail])[0]))
    return value * (largest if largest >= 1e-4 else 1.0)


def contrast(damaged: Damaged) -> float:
    """Range of the samples seen, at most one: dark pictures have less detail, and want less penalty."""
    pairs = zip(damaged.signals, damaged.weights, strict=True)
    ends = [(np.min(seen), np.max(seen)) for signal, weights in pairs if (seen := signal[weights > 0]).size]
    return min(1.0, float(max(high for _, high in ends) - min(low for low, _ in ends))) or 1.0


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
    """Hide a quarter of the seen samples of a few crops that were seen well enough.

    They are spread from the calmest to the liveliest, so that they stand for the picture: those of most detail would ask
    for too small a penalty.
    """
    side = max(48, 2 * max(damaged.blur.extended(filters.shape[2:])))
    cut = [
        (signal[:, rows, columns], weights[:, rows, columns])
        for signal, weights in zip(damaged.signals, damaged.weights, strict=True)
        for rows, columns in crops(signal.shape[1:], side)
    ]
    enough = 0.5 * np.mean([np.mean(weights) for weights in damaged.weights])
    cut = [crop for crop in cut if np.mean(crop[1]) >= enough] or cut[:1]
    spreads = [float(np.std(signal[weights > 0])) if np.any(weights) else 0.0 for signal, weights in cut]
    order = np.argsort(spreads, kind="stable")
    chosen = [cut[order[i]] for i in np.unique(np.linspace(0, len(order) - 1, 8).astype(int))]
    signals, weights = [signal for signal, _ in chosen], [weights for _, weights in chosen]
    hidden = []
    for i, one in enumerate(weights):
        seen = np.flatnonzero(one)
        count = min(max(1, round(TUNING.hidden * len(seen))), max(len(seen) - 1, 0))
        gone = np.zeros(one.size, bool)
        gone[generator(0, i).choice(seen, count, replace=False)] = True
        hidden.append(gone.reshape(one.shape))
    left = Damaged(signals, [one * ~gone for one, gone in zip(weights, hidden, strict=True)], damaged.blur)
    return Trial(Damaged(signals, weights, damaged.blur), hidden, left, separate(left, settings))


def predicted_penalty(trial: Trial, usual: float, filters: NDArray, settings: Settings) -> float:
    """The penalty, in `usual` units, whose restoration predicts the hidden samples of a trial best, through the blur.

    What is left of the crops is coded with three falling penalties, each from the codes of the one before; a parabola
    through the logarithms of the errors, over that of the penalty, says the rest.
    """
    settings = replace(settings, progress=None)
    blurred = trial.crops.blur.filters(filters)
    penalties = usual * np.array(TUNING.tried)
    errors: list[float] = []
    codes = None
    for penalty in penalties.tolist():
        codes = code(trial.left, trial.smooth, filters, penalty, settings, codes).codes
        error = 0.0
        for i, gone in enumerate(trial.hidden):
            detail = convolution(blurred, gone.shape, settings.boundary).synthesise(codes.indices[i], codes.values[i])
            error += float(np.sum((trial.crops.signals[i] - trial.smooth[i].seen - detail)[gone] ** 2))
        errors.append(max(error, np.finfo(np.float64).tiny))
        if error > errors[0]:
            break
    if errors[0] <= min(errors[1:]):
        return float(penalties[0])
    places = np.log(penalties[: len(errors)])
    between = np.linspace(places[0], places[-1], 101)
    curve = np.polyval(np.polyfit(places, np.log(errors), len(places) - 1), between)
    return float(np.exp(between[np.flatnonzero(curve <= np.min(curve) + TUNING.worthwhile)[0]]))
