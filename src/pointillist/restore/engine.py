"""One engine for every damage: smooth part off, detail coded with (blurred) filters and weights, plain filters back.

The tasks say what was seen, through which blur and at which penalty: one that people pass, one that follows the noise, or
the one that predicts hidden samples best. How photographs look is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from pointillist.codes import SparseCodes
from pointillist.cuda.device import check_device
from pointillist.data import load_filters
from pointillist.parallel import effective_jobs, parallel
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.reprs import shown
from pointillist.restore.blur import NO_BLUR, Blur
from pointillist.restore.picture import Box, Progress, check_size
from pointillist.restore.smooth import TUNING as SMOOTH
from pointillist.restore.smooth import Smooth, smooth_part
from pointillist.sampling import generator
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import encode_signals, make_solver, max_penalty, warn_unless_converged
from pointillist.validation import HOST, as_filters, check_arguments, is_number


@dataclass(frozen=True)
class Settings:
    """Settings by which signals are recovered.

    Attributes
    ----------
    boundary, tol, debias, device, progress
        As in `inpaint`.
    n_jobs : int
        Threads.
    mu : float
        Weight of the smooth part's squared second differences.
    """

    boundary: str = "same"
    tol: float = 0.3
    debias: bool = False
    n_jobs: int = 1
    device: str = "cpu"
    progress: Progress | None = None
    mu: float = SMOOTH.curvature


def check_settings(
    boundary: str, tol: float, debias: bool, n_jobs: int | None, device: str, progress: Progress | None
) -> Settings:
    """Check the arguments that all tasks share."""
    check_arguments(boundary=boundary, tol=tol, debias=debias, progress=progress)
    if boundary not in ("same", "full"):
        raise ValueError(f'boundary must be "same" or "full", got {boundary!r}')
    if not tol:
        raise ValueError(f"tol must be positive, got {tol}")
    check_device(device)
    return Settings(boundary, tol, debias, effective_jobs(n_jobs), device, progress)


@dataclass(frozen=True, eq=False)
class Damaged:
    """Signals as they were seen: samples, weights and the blur that they came through.

    Attributes
    ----------
    signals, weights : lists of (channels, height, width) float64 arrays
    blur : Blur
    """

    signals: list[NDArray]
    weights: list[NDArray]
    blur: Blur = NO_BLUR

    def details(self, smooth: list[Smooth]) -> list[NDArray]:
        """Signals without their smooth parts, float32, zero where nothing was seen."""
        triples = zip(self.signals, self.weights, smooth, strict=True)
        return [np.where(seen > 0, signal - part.seen, 0.0).astype(np.float32) for signal, seen, part in triples]


@dataclass(frozen=True, eq=False)
class Recovered:
    """Recovered signals (channels, height, width), their smooth parts and what the solvers say."""

    signals: list[NDArray]
    smooth: list[NDArray]
    unsettled: float
    codes: SparseCodes
    result: Result


def choose_filters(filters: ArrayLike | None, shape: tuple[int, int] | None = None) -> NDArray:
    """Filters (n_filters, channels, height, width) from what people pass; None is the default dictionary.

    A picture that is smaller than a filter is refused, where its shape is given.
    """
    array = load_filters() if filters is None else HOST.array(filters, "filters")
    if array.ndim not in (3, 4):
        raise ValueError(
            f"filters must be (n_filters, height, width) or (n_filters, 3, height, width), got shape {array.shape}"
        )
    with np.errstate(over="ignore"):
        bank = as_filters(array, channels=array.ndim == 4).astype(np.float32)
    if not np.all(np.isfinite(bank)):
        raise ValueError("filters are too large for pictures in [0, 1]: divide them by their norms")
    if bank.shape[1] not in (1, 3):
        raise ValueError(f"filters must have one channel or three, got {bank.shape[1]}")
    if shape is not None:
        check_size(shape, bank.shape[2:])
    return bank


def separate(damaged: Damaged, settings: Settings) -> list[Smooth]:
    """The smooth part of each signal."""

    def work(i: int) -> Smooth:
        signal = damaged.signals[i]
        return smooth_part(signal, damaged.weights[i], damaged.blur, settings.mu, colour=len(signal) == 3)

    with scipy.fft.set_workers(settings.n_jobs if len(damaged.signals) == 1 else 1):
        return parallel(work, range(len(damaged.signals)), settings.n_jobs)


def encode_details(
    details: list[NDArray],
    weights: list[NDArray] | None,
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    start: SparseCodes | None = None,
    **solver: Any,
) -> Result:
    """Codes of details (channels, height, width), perhaps weighted, by coordinate descent with some options.

    It has one round at least from no codes, whose gap may be small enough for a rough tolerance.
    """
    return encode_signals(
        details,
        filters,
        penalty,
        weights=weights,
        boundary=settings.boundary,
        solver=make_solver(CoordinateDescent(tol=settings.tol, min_iter=int(start is None), **solver), settings.device),
        n_jobs=settings.n_jobs,
        start=start,
        progress=settings.progress,
    )


def code(
    damaged: Damaged,
    smooth: list[Smooth],
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    start: SparseCodes | None = None,
) -> Result:
    """Codes of the detail that the smooth parts leave, for the filters as the blur shows them."""
    weights = [weights.astype(np.float32) for weights in damaged.weights]
    return encode_details(damaged.details(smooth), weights, damaged.blur.filters(filters), penalty, settings, start)


def recover(
    damaged: Damaged,
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    smooth: list[Smooth] | None = None,
) -> Recovered:
    """Recover signals: code their detail, synthesise it without the blur and add the smooth part, which may be known."""
    smooth = smooth or separate(damaged, settings)
    result = code(damaged, smooth, filters, penalty, settings)
    warn_unless_converged(result)
    codes = refit(damaged, smooth, filters, result.codes, settings) if settings.debias else result.codes
    detail = synthesise(codes, filters, [one.shape for one in damaged.signals], damaged.blur, settings.boundary)
    signals = [part.sharp + more for part, more in zip(smooth, detail, strict=True)]
    return Recovered(signals, [part.sharp for part in smooth], max(part.unsettled for part in smooth), codes, result)


def convolution(filters: NDArray, shape: tuple[int, ...], boundary: str) -> ConvolutionOperator:
    """The operator from codes of filters to signals of a shape (channels, height, width)."""
    return ConvolutionOperator(filters, Geometry(shape[1:], filters.shape[2:], shape[0], boundary))


def plain_area(blur: Blur, shape: tuple[int, ...], size: tuple[int, ...], boundary: str) -> tuple[tuple[int, ...], Box]:
    """Area that holds the plain filter of every code of blurred filters, and where the picture of `shape` lies on it.

    Codes with boundary "valid" on the area have the indices of those of blurred filters; the blur moves a filter by its
    centre.
    """
    seen = Geometry(shape, blur.extended(size), 1, boundary)
    area = tuple(g + f - 1 for g, f in zip(seen.grid, size, strict=True))
    top, left = (first - c for first, c in zip(seen.offset, blur.centre, strict=True))
    return area, (slice(top, top + shape[0]), slice(left, left + shape[1]))


def synthesise(
    codes: SparseCodes, filters: NDArray, shapes: list[tuple[int, ...]], blur: Blur, boundary: str
) -> list[NDArray]:
    """Detail (channels, height, width) without the blur, from codes of blurred filters."""
    details = []
    for index, values, (channels, *space) in zip(codes.indices, codes.values, shapes, strict=True):
        area, (rows, columns) = plain_area(blur, tuple(space), tuple(filters.shape[2:]), boundary)
        whole = convolution(filters, (channels, *area), "valid").synthesise(index, values)
        details.append(whole[:, rows, columns].astype(np.float64))
    return details


def refit(
    damaged: Damaged, smooth: list[Smooth], filters: NDArray, codes: SparseCodes, settings: Settings
) -> SparseCodes:
    """Move the non-zeros towards their least-squares fit, which the penalty had shrunk; a few steps, from where they are."""
    blurred, details = damaged.blur.filters(filters).astype(np.float64), damaged.details(smooth)
    parts = zip(details, damaged.weights, codes.indices, codes.values, strict=True)
    values = [
        convolution(blurred, detail.shape, settings.boundary).refit(index, value, detail, np.sqrt(weights), 20)
        for detail, weights, index, value in parts
    ]
    return codes.replaced(codes.indices, values)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.fills``."""

    tried: tuple[float, ...] = (0.2, 0.06, 0.02)
    """Penalties tried, of the contrast: below them coding takes long and pictures gain little."""
    hidden: float = 0.25
    """Share of the seen samples that is hidden to see how well it is predicted."""


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
    details = damaged.details(separate(damaged, settings))
    how: dict[str, Any] = {"weights": damaged.weights, "boundary": settings.boundary, "channels": True}
    largest = float(np.max(max_penalty(details, damaged.blur.filters(filters), **how)))
    return value * (largest if largest >= 1e-4 else 1.0)


def contrast(damaged: Damaged) -> float:
    """Range of the samples seen, at most one: dark pictures have less detail, and want less penalty."""
    pairs = zip(damaged.signals, damaged.weights, strict=True)
    seen = np.concatenate([signal[weights > 0] for signal, weights in pairs])
    return min(1.0, float(np.ptp(seen))) or 1.0


@dataclass(frozen=True, eq=False)
class Trial:
    """Crops of a damaged picture with some of the seen samples hidden, to see how well these are predicted.

    Attributes
    ----------
    crops : Damaged
        Their weights are zero where samples were not seen, or are hidden.
    hidden : list of (channels, height, width) bool arrays
    smooth : list of Smooth
        The smooth parts of what is left.
    """

    crops: Damaged
    hidden: list[NDArray]
    smooth: list[Smooth]


def trial_of(damaged: Damaged, filters: NDArray, settings: Settings) -> Trial:
    """Hide a quarter of the seen samples of a few crops that were seen well enough.

    They are spread from the calmest to the liveliest, so that they stand for the picture: those of most detail would ask
    for too small a penalty.
    """
    side = max(48, 2 * max(filters.shape[2:]))
    cut = []
    for signal, seen in zip(damaged.signals, damaged.weights, strict=True):
        height, width = (min(side, n) for n in signal.shape[1:])
        for top, left in product(
            range(0, signal.shape[1] - height + 1, height), range(0, signal.shape[2] - width + 1, width)
        ):
            box = (slice(None), slice(top, top + height), slice(left, left + width))
            cut.append((signal[box], seen[box]))
    enough = 0.5 * np.mean([np.mean(weights) for weights in damaged.weights])
    cut = [crop for crop in cut if np.mean(crop[1]) >= enough] or cut[:1]
    cut.sort(key=lambda crop: float(np.std(crop[0][crop[1] > 0])) if np.any(crop[1]) else 0.0)
    signals: list[NDArray] = []
    weights: list[NDArray] = []
    hidden: list[NDArray] = []
    for i in np.unique(np.linspace(0, len(cut) - 1, 8).astype(int)):
        signal, seen = cut[i]
        places = np.flatnonzero(seen)
        gone = np.zeros(seen.size, bool)
        gone[generator(0, len(hidden)).choice(places, round(TUNING.hidden * len(places)), replace=False)] = True
        hidden.append(gone.reshape(seen.shape))
        signals.append(signal)
        weights.append(seen * ~hidden[-1])
    crops = Damaged(signals, weights)
    return Trial(crops, hidden, separate(crops, settings))


def predicted_penalty(trial: Trial, usual: float, filters: NDArray, settings: Settings) -> float:
    """The penalty whose restoration predicts the hidden samples of a trial best, of a few in units of `usual`.

    What is left of the crops is coded with falling penalties, each from the codes of the one before, until they predict
    worse than the first.
    """
    errors: list[float] = []
    codes = None
    for share in TUNING.tried:
        codes = code(trial.crops, trial.smooth, filters, usual * share, settings, codes).codes
        error = 0.0
        for i, gone in enumerate(trial.hidden):
            detail = convolution(filters, gone.shape, settings.boundary).synthesise(codes.indices[i], codes.values[i])
            error += float(np.sum((trial.crops.signals[i] - trial.smooth[i].seen - detail)[gone] ** 2))
        errors.append(error)
        if error > errors[0]:
            break
    return usual * TUNING.tried[int(np.argmin(errors))]
