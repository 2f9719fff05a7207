"""One engine for every damage: smooth part off, detail coded with (blurred) filters and weights, plain filters back.

The tasks say what was seen, through which blur and at which penalty; how photographs look is not known here.
"""

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from pointillist.codes import SparseCodes
from pointillist.cuda.device import check_device
from pointillist.data import load_filters
from pointillist.parallel import effective_jobs, parallel
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.restore.blur import NO_BLUR, Blur
from pointillist.restore.picture import Progress, check_size
from pointillist.restore.smooth import TUNING as SMOOTH
from pointillist.restore.smooth import Smooth, smooth_part
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import encode_signals, make_solver, warn_unless_converged
from pointillist.validation import HOST, as_filters, check_arguments


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
    min_iter : int
        Rounds of the solver at least.
    """

    boundary: str = "same"
    tol: float = 0.3
    debias: bool = False
    n_jobs: int = 1
    device: str = "cpu"
    progress: Progress | None = None
    mu: float = SMOOTH.curvature
    min_iter: int = 0


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


def detail_of(signal: NDArray, weights: NDArray, part: Smooth) -> NDArray:
    """Signal without its smooth part, float32, zero where nothing was seen."""
    return np.where(weights > 0, signal - part.seen, 0.0).astype(np.float32)


def encode_details(
    details: list[NDArray],
    weights: list[NDArray] | None,
    filters: NDArray,
    penalty: float | NDArray,
    settings: Settings,
    start: SparseCodes | None = None,
    cells: tuple[int, ...] = (1,),
    inner: float = 0.5,
) -> Result:
    """Codes of details (channels, height, width), perhaps weighted, by coordinate descent."""
    solver = CoordinateDescent(tol=settings.tol, min_iter=settings.min_iter, cells=cells, inner=inner)
    return encode_signals(
        details,
        filters,
        penalty,
        weights=weights,
        boundary=settings.boundary,
        solver=make_solver(solver, settings.device),
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
    details = [detail_of(*each) for each in zip(damaged.signals, damaged.weights, smooth, strict=True)]
    weights = [weights.astype(np.float32) for weights in damaged.weights]
    return encode_details(details, weights, damaged.blur.filters(filters), penalty, settings, start)


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


def synthesise(
    codes: SparseCodes, filters: NDArray, shapes: list[tuple[int, ...]], blur: Blur, boundary: str
) -> list[NDArray]:
    """Detail (channels, height, width) without the blur, from codes of blurred filters."""
    size = tuple(filters.shape[2:])
    details = []
    for index, values, (channels, *space) in zip(codes.indices, codes.values, shapes, strict=True):
        seen = Geometry(tuple(space), blur.extended(size), channels, boundary)
        # Every code's plain filter fits on an area of the codes' grid and one filter; the blur moves it by its centre.
        area = tuple(g + f - 1 for g, f in zip(seen.grid, size, strict=True))
        whole = convolution(filters, (channels, *area), "valid").synthesise(index, values)
        top, left = (first - c for first, c in zip(seen.offset, blur.centre, strict=True))
        details.append(whole[:, top : top + space[0], left : left + space[1]].astype(np.float64))
    return details


def refit(
    damaged: Damaged, smooth: list[Smooth], filters: NDArray, codes: SparseCodes, settings: Settings
) -> SparseCodes:
    """Move the non-zeros towards their least-squares fit, which the penalty had shrunk; a few steps, from where they are."""
    blurred = damaged.blur.filters(filters).astype(np.float64)

    def fitted(i: int) -> NDArray:
        signal, root = damaged.signals[i], np.sqrt(damaged.weights[i])
        operator = convolution(blurred, signal.shape, settings.boundary)
        target = np.where(root > 0, signal - smooth[i].seen, 0.0)
        return operator.refit(codes.indices[i], codes.values[i], target, root, 20)

    values = [fitted(i) for i in range(len(smooth))]
    return codes.replaced(codes.indices, values)
