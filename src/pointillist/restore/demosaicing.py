"""Colour from a sensor that saw one channel at each pixel: weights per channel, coded with colour filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.data import load_filters
from pointillist.kernels.compiling import working_time
from pointillist.parallel import effective_jobs
from pointillist.problem import Geometry
from pointillist.restore.details import Details, answer, finish
from pointillist.restore.engine import (
    NO_BLUR,
    Damaged,
    Recovered,
    Settings,
    choose_filters,
    detail_of,
    encode_details,
    quick_coder,
    refit,
    separate,
    synthesise,
)
from pointillist.restore.large import open_subject
from pointillist.restore.lattice import Lattice
from pointillist.restore.penalties import Penalty, choose_penalty, contrast
from pointillist.restore.pictures import Picture
from pointillist.solvers.encoding import warn_unless_converged
from pointillist.solvers.tiles import Progress
from pointillist.validation import as_numbers, check_arguments

PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")

_PENALTY = 0.005  # of the contrast


def demosaic(
    mosaic: ArrayLike,
    pattern: str = "RGGB",
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    keep_seen: bool = True,
    debias: bool = False,
    boundary: str = "same",
    tol: float = 0.5,
    n_jobs: int | None = -1,
    device: str = "cpu",
    return_details: bool = False,
    data_range: float | None = None,
    progress: Progress | None = None,
) -> NDArray | Any:
    """Colour picture from a Bayer mosaic.

    Parameters
    ----------
    mosaic : (height, width) array
        uint8, uint16 or float; each pixel holds the one channel that its place in the pattern names. NaN counts as missing.
    pattern : {"RGGB", "BGGR", "GRBG", "GBRG"}
        Channels of the upper left 2×2 pixels, row by row.
    filters : (n_filters, 3, h, w) array, optional
        Colour filters; by default ``load_filters("natural-colour-100")``.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" is 0.005 of its contrast.
    keep_seen : bool
        Whether seen samples stay as they are. False replaces them by their fit too.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float
        Relative duality gap of the codes.
    n_jobs : int, optional
        Threads: -1 for all cores, None for what the surrounding joblib context says.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve for the codes on a GPU, as in `encode`.
    return_details : bool
        Whether to return `Details` too.
    data_range : float, optional
        Full scale; by default that of the mosaic's type, as in `inpaint`.
    progress : callable, optional
        Called from time to time with the share of the work that is done, from 0 to 1.

    Returns
    -------
    (height, width, 3) array of the mosaic's dtype and scale
        With `return_details` a pair of it and `Details`.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import demosaic
    >>> filters = np.random.default_rng(0).standard_normal((4, 3, 5, 5)) / 9
    >>> demosaic(np.full((16, 16), 90, np.uint8), filters=filters)[3, 5].tolist()
    [90, 90, 90]
    """
    begin = working_time()
    check_arguments(keep_seen=keep_seen, return_details=return_details, progress=progress)
    places = str(pattern).upper()
    if places not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    mosaic = as_numbers(mosaic, "mosaic")
    if mosaic.ndim != 2:
        raise ValueError(f"mosaic must be (height, width), got shape {mosaic.shape}")
    settings = Settings(boundary, tol, debias, effective_jobs(n_jobs), device, progress)
    subject = open_subject(mosaic, None, data_range, period=2, name="mosaic")
    bank = choose_filters(load_filters("natural-colour-100") if filters is None else filters, subject.sample.shape)
    if bank.shape[1] != 3:
        raise ValueError("filters must be colour filters (n_filters, 3, height, width) for a mosaic")
    sample = _sorted(subject.sample, places)
    damaged = Damaged([sample.planes], [sample.weights])
    value = choose_penalty(penalty, _PENALTY * contrast(damaged), damaged, bank, settings)

    def work(grey: Picture, settings: Settings) -> tuple[NDArray, Details]:
        return _coloured(_sorted(grey, places), places, bank, value, settings, keep_seen=keep_seen)

    # The margin is even, so that all tiles begin with the same place of the pattern.
    image, details = subject.restored(work, settings, margin=2 * max(bank.shape[2:]), channels=3)
    if keep_seen and subject.tiled:
        _put_back(subject.canvas.planes[0], image, places)
    return answer(image, details, begin, return_details)


def _sorted(grey: Picture, places: str) -> Picture:
    """A mosaic as three planes, each seen where the pattern says so."""
    seen = _pattern(grey.shape, places) * grey.weights
    if not np.all(np.any(seen > 0, axis=(1, 2))):
        raise ValueError("mosaic has no seen pixel of one of its channels")
    return replace(grey, planes=grey.planes * seen, weights=seen, axis=2)


def _coloured(
    picture: Picture, places: str, filters: NDArray, penalty: float, settings: Settings, *, keep_seen: bool
) -> tuple[NDArray, Details]:
    damaged = Damaged([picture.planes], [picture.weights])
    recovered = _recovered(damaged, _lattice(places), filters, penalty, settings)
    planes = recovered.signals[0]
    if keep_seen:
        planes = np.where(picture.weights > 0, picture.planes, planes)
    return finish(picture, planes, recovered, penalty)


def _put_back(mosaic: NDArray, colour: NDArray, places: str) -> None:
    """Write the seen samples of a mosaic into a colour picture: sums of faded tiles are rounded."""
    for i, letter in enumerate(places):
        samples = mosaic[i // 2 :: 2, i % 2 :: 2]
        plane = colour[i // 2 :: 2, i % 2 :: 2, "RGB".index(letter)]
        np.copyto(plane, samples, where=~np.isnan(samples))


def _lattice(places: str) -> Lattice:
    return Lattice(2, tuple(("RGB".index(letter), i // 2, i % 2) for i, letter in enumerate(places)))


def _recovered(damaged: Damaged, lattice: Lattice, filters: NDArray, penalty: float, settings: Settings) -> Recovered:
    """Recover one mosaic: its detail is coded as a picture of half the size, with filters for each phase of the pattern."""
    smooth = separate(damaged, settings)
    signal, weights, shape = damaged.signals[0], damaged.weights[0], damaged.signals[0].shape
    detail = lattice.gathered(detail_of(signal, weights, smooth[0]))
    seen = lattice.gathered(weights.astype(np.float32))
    phases = lattice.filters(filters)
    known = None if np.all(seen == 1) else [seen]
    coder = quick_coder(settings.tol, cells=(1,), inner=0.95, max_sweeps=2, extra=2)
    result = encode_details([detail], known, phases, penalty, settings, coder)
    warn_unless_converged(result)
    coarse = Geometry(detail.shape[1:], phases.shape[2:], len(detail), settings.boundary)
    codes = lattice.fine(result.codes, coarse.offset, filters.shape[2:], shape[1:])
    settings = replace(settings, boundary="full")  # of the codes where they are now
    codes = refit(damaged, smooth, filters, codes, settings) if settings.debias else codes
    more = synthesise(codes, filters, [shape], NO_BLUR, settings.boundary)[0]
    return Recovered([smooth[0].sharp + more], [smooth[0].sharp], smooth[0].unsettled, codes, result)


def _pattern(shape: tuple[int, int], places: str) -> NDArray:
    """Weights (3, height, width) of a mosaic: which channel each pixel saw."""
    weights = np.zeros((3, *shape))
    for i, letter in enumerate(places):
        weights["RGB".index(letter), i // 2 :: 2, i % 2 :: 2] = 1
    return weights
