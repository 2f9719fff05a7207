"""One engine for every damage: smooth part off, detail coded with (blurred) filters and weights, plain filters back.

The tasks say what was seen, through which blur and at which penalty; how photographs look is not known here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, lsqr
from threadpoolctl import threadpool_limits

from pointillist.codes import SparseCodes
from pointillist.cuda.device import check_device
from pointillist.data import load_filters
from pointillist.parallel import parallel
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.restore.blur import Blur
from pointillist.restore.pictures import check_size
from pointillist.restore.smooth import CURVATURE, Smooth, smooth_part
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.base import Result, check_numbers
from pointillist.solvers.device import on_device
from pointillist.solvers.encoding import encode_signals, warn_unless_converged
from pointillist.solvers.tiles import Progress
from pointillist.validation import HOST, as_filters

_REFIT_STEPS = 20
_ROUGH = 0.05  # tolerances above it ask for little descent within a round
_TOGETHER = 2**16

NO_BLUR = Blur(np.ones((1, 1)))


@dataclass(frozen=True)
class Settings:
    """How signals are recovered: the checked settings of a task.

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
    mu: float = CURVATURE

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.boundary not in ("same", "full"):
            raise ValueError(f'boundary must be "same" or "full", got {self.boundary!r}')
        if not self.tol:
            raise ValueError(f"tol must be positive, got {self.tol}")
        check_device(self.device)  # before any other work


@dataclass(frozen=True, eq=False)
class Damaged:
    """What was seen of some signals: samples, weights and the blur that they came through.

    Attributes
    ----------
    signals, weights : lists of (channels, height, width) float64 arrays
    blur : Blur
    """

    signals: list[NDArray]
    weights: list[NDArray]
    blur: Blur = NO_BLUR


@dataclass(frozen=True, eq=False)
class Recovered:
    """Recovered signals (channels, height, width), their smooth parts and what the solvers say."""

    signals: list[NDArray]
    smooth: list[NDArray]
    unsettled: float
    codes: SparseCodes
    result: Result


def as_bank(filters: ArrayLike | None) -> NDArray:
    """Filters (n_filters, channels, height, width) from what people pass; None is the default dictionary."""
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
    return bank


def choose_filters(filters: ArrayLike | None, shape: tuple[int, int]) -> NDArray:
    """Make filters of what people pass, and refuse a picture that is smaller than a filter."""
    bank = as_bank(filters)
    check_size(shape, bank.shape[2:])
    return bank


def separate(damaged: Damaged, settings: Settings) -> list[Smooth]:
    """The smooth part of each signal."""

    def work(i: int) -> Smooth:
        signal, weights = damaged.signals[i], damaged.weights[i]
        return smooth_part(signal, weights, damaged.blur, settings.mu, colour=len(signal) == 3)

    # The sums and products here are too short for threads of BLAS, which would only wait for each other.
    with threadpool_limits(1, "blas"), scipy.fft.set_workers(settings.n_jobs if len(damaged.signals) == 1 else 1):
        alike = len({signal.shape for signal in damaged.signals}) == 1 and len(damaged.signals[0]) == 1
        if alike and sum(signal.size for signal in damaged.signals) <= _TOGETHER:
            return _together(damaged, settings)
        return parallel(work, range(len(damaged.signals)), settings.n_jobs)


def _together(damaged: Damaged, settings: Settings) -> list[Smooth]:
    """The smooth parts of small grey signals of one shape, as if they were channels: fewer and longer operations."""
    both = smooth_part(np.concatenate(damaged.signals), np.concatenate(damaged.weights), damaged.blur, settings.mu)
    return [Smooth(sharp[None], seen[None], both.unsettled) for sharp, seen in zip(both.sharp, both.seen, strict=True)]


def code(
    damaged: Damaged,
    smooth: list[Smooth],
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    start: SparseCodes | None = None,
    coder: CoordinateDescent | None = None,
) -> Result:
    """Codes of the detail that the smooth parts leave, for the filters as the blur shows them; perhaps by another coder."""
    details = [detail_of(*each) for each in zip(damaged.signals, damaged.weights, smooth, strict=True)]
    weights = [weights.astype(np.float32) for weights in damaged.weights]
    if coder is None:  # a blur makes filters alike, so that few codes are to be taken at a time
        rough = {"inner": 0.7} if damaged.blur.kernel.size > 1 else {"cells": (1,), "inner": 0.9, "max_sweeps": 2}
        coder = quick_coder(settings.tol, **rough)
    return encode_details(details, weights, damaged.blur.filters(filters), penalty, settings, coder, start)


def detail_of(signal: NDArray, weights: NDArray, part: Smooth) -> NDArray:
    """What the smooth part leaves of a signal, float32, zero where nothing was seen."""
    return np.where(weights > 0, signal - part.seen, 0.0).astype(np.float32)


def encode_details(
    details: list[NDArray],
    weights: list[NDArray] | None,
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    coder: CoordinateDescent,
    start: SparseCodes | None = None,
) -> Result:
    """Codes of details (channels, height, width), perhaps weighted, by a coder of one's own."""
    return encode_signals(
        details,
        filters,
        penalty,
        weights=weights,
        boundary=settings.boundary,
        solver=on_device(coder, settings.device),
        n_jobs=settings.n_jobs,
        start=start,
        progress=settings.progress,
    )


def quick_coder(tol: float, **rough: Any) -> CoordinateDescent:
    """Coordinate descent to a tolerance, with settings that reach rough ones sooner: few rounds that take many codes."""
    return CoordinateDescent(tol=tol, **(rough if tol > _ROUGH else {}))


def recover(
    damaged: Damaged,
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    smooth: list[Smooth] | None = None,
    coder: CoordinateDescent | None = None,
) -> Recovered:
    """Recover signals: code their detail, synthesise it without the blur and add the smooth part, which may be known.

    A coder of one's own takes the place of that for the tolerance of the settings.
    """
    if smooth is None:
        smooth = separate(damaged, settings)
    result = code(damaged, smooth, filters, penalty, settings, coder=coder)
    warn_unless_converged(result)
    codes = refit(damaged, smooth, filters, result.codes, settings) if settings.debias else result.codes
    detail = synthesise(codes, filters, [one.shape for one in damaged.signals], damaged.blur, settings.boundary)
    signals = [part.sharp + more for part, more in zip(smooth, detail, strict=True)]
    return Recovered(signals, [part.sharp for part in smooth], max(part.unsettled for part in smooth), codes, result)


def convolution(filters: NDArray, shape: tuple[int, ...], settings: Settings) -> ConvolutionOperator:
    """The operator from codes of filters to signals of a shape (channels, height, width)."""
    return ConvolutionOperator(filters, Geometry(shape[1:], filters.shape[2:], shape[0], settings.boundary))


def synthesise(
    codes: SparseCodes, filters: NDArray, shapes: list[tuple[int, ...]], blur: Blur, boundary: str
) -> list[NDArray]:
    """Detail (channels, height, width) without the blur, from codes of blurred filters."""
    size = tuple(filters.shape[2:])
    details = []
    for index, values, (channels, *space) in zip(codes.indices, codes.values, shapes, strict=True):
        seen = Geometry(tuple(space), blur.extended(size), channels, boundary)
        # Every code's plain filter fits on an area of the codes' grid and one filter; the blur moves it by its centre.
        area = Geometry(tuple(g + f - 1 for g, f in zip(seen.grid, size, strict=True)), size, channels, "valid")
        whole = ConvolutionOperator(filters, area).synthesise(index, values)
        top, left = (first - c for first, c in zip(seen.offset, blur.centre, strict=True))
        details.append(whole[:, top : top + space[0], left : left + space[1]].astype(np.float64))
    return details


def refit(
    damaged: Damaged, smooth: list[Smooth], filters: NDArray, codes: SparseCodes, settings: Settings
) -> SparseCodes:
    """Move the non-zeros towards their least-squares fit, which the penalty had shrunk; a few steps, from where they are."""
    values = []
    blurred = damaged.blur.filters(filters).astype(np.float64)
    for i, part in enumerate(smooth):
        signal, index = damaged.signals[i], codes.indices[i]
        root = np.sqrt(damaged.weights[i])
        operator = convolution(blurred, signal.shape, settings)
        matrix = LinearOperator(
            (signal.size, len(index)),
            matvec=lambda z, o=operator, k=index, r=root: (r * o.synthesise(k, z)).ravel(),
            rmatvec=lambda y, o=operator, k=index, r=root: o.correlate(r * y.reshape(r.shape), k),
            dtype=np.float64,
        )
        target = (root * np.where(root > 0, signal - part.seen, 0.0)).ravel()
        start = codes.values[i].astype(np.float64)
        fitted = lsqr(matrix, target, x0=start, iter_lim=_REFIT_STEPS)[0] if len(index) else start
        values.append(fitted.astype(codes.dtype))
    return SparseCodes(codes.indices, values, codes.grids, codes.n_filters)
