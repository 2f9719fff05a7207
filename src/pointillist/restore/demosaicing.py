"""Colour from a sensor that saw one channel at each pixel: weights per channel, coded with colour filters."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.model.geometry import Geometry
from pointillist.restore.engine import (
    NO_BLUR,
    Damaged,
    Detailed,
    Details,
    Mended,
    Options,
    Plain,
    Settings,
    choose_filters,
    refit,
    separate,
    synthesise,
)
from pointillist.restore.lattice import Lattice
from pointillist.restore.penalties import Penalty, contrast, given_penalty
from pointillist.restore.pictures import Picture, open_picture
from pointillist.restore.pieces import Large, as_large
from pointillist.restore.reporting import finish
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.base import effective_jobs
from pointillist.solvers.device import on_device
from pointillist.solvers.encoding import encode_signals, warn_unless_converged

PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")

_PENALTY = 0.005
_ROUGH = 0.05


@overload
def demosaic(
    mosaic: ArrayLike,
    pattern: str = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    keep_seen: bool = ...,
    **options: Unpack[Plain],
) -> NDArray: ...
@overload
def demosaic(
    mosaic: ArrayLike,
    pattern: str = ...,
    filters: ArrayLike | None = ...,
    penalty: Penalty = ...,
    *,
    keep_seen: bool = ...,
    **options: Unpack[Detailed],
) -> tuple[NDArray, Details]: ...
def demosaic(
    mosaic: ArrayLike,
    pattern: str = "RGGB",
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    *,
    keep_seen: bool = True,
    **options: Unpack[Options],
) -> NDArray | tuple[NDArray, Details]:
    """Colour picture from a Bayer mosaic.

    Parameters
    ----------
    mosaic : (height, width) array
        uint8, uint16 or float; each pixel holds the one channel that its place in the pattern names. NaN counts as missing.
    pattern : {"RGGB", "BGGR", "GRBG", "GBRG"}
        Channels of the upper left 2×2 pixels, row by row.
    filters : (n_filters, 3, h, w) array, optional
        Colour filters; by default the colour dictionary that ships with the package.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" is 0.005 of its contrast.
    keep_seen, debias, boundary, tol, n_jobs, device, return_details, data_range
        As in `inpaint`, but `tol` is 0.5.

    Returns
    -------
    (height, width, 3) array of the mosaic's dtype and scale; with `Details` if asked for

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import demosaic
    >>> filters = np.random.default_rng(0).standard_normal((4, 3, 5, 5)) / 9
    >>> demosaic(np.full((16, 16), 90, np.uint8), filters=filters)[3, 5].tolist()
    [90, 90, 90]
    """
    begin = time.perf_counter()
    places = str(pattern).upper()
    if places not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    if np.ndim(mosaic) != 2:
        raise ValueError(f"mosaic must be (height, width), got shape {np.shape(mosaic)}")
    settings = Settings.given(options, tol=0.5)
    if (large := as_large(mosaic, settings)) is not None:
        return _in_pieces(large, places, filters, penalty, settings, keep_seen=keep_seen)
    grey = open_picture(mosaic, channel_axis=settings.channel_axis, data_range=settings.data_range, name="mosaic")
    bank = _colour_filters(filters, grey.shape)
    return _coloured(_sorted(grey, places), places, bank, penalty, settings, keep_seen=keep_seen, begin=begin)


def _colour_filters(filters: ArrayLike | None, shape: tuple[int, int]) -> NDArray:
    bank = choose_filters(filters, "natural-colour-100", shape)
    if bank.shape[1] != 3:
        raise ValueError("filters must be colour filters (n_filters, 3, height, width) for a mosaic")
    return bank


def _sorted(grey: Picture, places: str) -> Picture:
    """A mosaic as three planes, each seen where the pattern says so."""
    seen = _pattern(grey.shape, places) * grey.weights
    if not np.all(np.any(seen > 0, axis=(1, 2))):
        raise ValueError("mosaic has no seen pixel of one of its channels")
    return replace(grey, planes=grey.planes * seen, weights=seen, axis=2)


def _coloured(
    picture: Picture,
    places: str,
    filters: NDArray,
    penalty: Penalty,
    settings: Settings,
    *,
    keep_seen: bool,
    begin: float,
) -> NDArray | tuple[NDArray, Details]:
    damaged = Damaged([picture.planes], [picture.weights])
    value = _penalty(penalty, damaged, filters, settings)
    mended = _mended(damaged, _lattice(places), filters, value, settings)
    planes = mended.signals[0]
    if keep_seen:
        planes = np.where(picture.weights > 0, picture.planes, planes)
    return finish(picture, planes, mended, value, begin, settings)


def _penalty(penalty: Penalty, damaged: Damaged, filters: NDArray, settings: Settings) -> float:
    value = given_penalty(penalty, damaged, filters, settings)
    return _PENALTY * contrast(damaged) if value is None else value


def _in_pieces(
    large: Large, places: str, filters: ArrayLike | None, penalty: Penalty, settings: Settings, *, keep_seen: bool
) -> NDArray | tuple[NDArray, Details]:
    """Colour of a large mosaic, everywhere at the penalty that a montage of it tells."""
    montage = open_picture(large.montage(period=2), data_range=settings.data_range, name="mosaic")
    bank = _colour_filters(filters, montage.shape)
    seen = _sorted(montage, places)
    value = _penalty(penalty, Damaged([seen.planes], [seen.weights]), bank, settings)

    def restore(crop: NDArray, n_jobs: int) -> tuple[NDArray, Details]:
        own = replace(settings, n_jobs=n_jobs, return_details=True, progress=None)
        part = _sorted(open_picture(crop, data_range=montage.scale), places)
        answer = _coloured(part, places, bank, value, own, keep_seen=keep_seen, begin=time.perf_counter())
        assert isinstance(answer, tuple)
        return answer

    # Even, so that all pieces begin with the same place of the pattern.
    answer = large.restored(restore, settings, margin=2 * max(bank.shape[2:]), channels=3)
    if keep_seen:
        _put_back(large.image, answer[0] if isinstance(answer, tuple) else answer, places)
    return answer


def _put_back(mosaic: NDArray, colour: NDArray, places: str) -> None:
    """Write the seen samples of a mosaic into a colour picture: sums of faded pieces are rounded."""
    for i, letter in enumerate(places):
        samples = mosaic[i // 2 :: 2, i % 2 :: 2]
        plane = colour[i // 2 :: 2, i % 2 :: 2, "RGB".index(letter)]
        np.copyto(plane, samples, where=~np.isnan(samples))


def _lattice(places: str) -> Lattice:
    return Lattice(2, tuple(("RGB".index(letter), i // 2, i % 2) for i, letter in enumerate(places)))


def _mended(damaged: Damaged, lattice: Lattice, filters: NDArray, penalty: float, settings: Settings) -> Mended:
    """Restore one mosaic: its detail is coded as a picture of half the size, with filters for each phase of the pattern."""
    smooth = separate(damaged, settings)
    signal, weights, shape = damaged.signals[0], damaged.weights[0], damaged.signals[0].shape
    detail = lattice.gathered(np.where(weights > 0, signal - smooth[0].seen, 0.0).astype(np.float32))
    seen = lattice.gathered(weights.astype(np.float32))
    phases = lattice.filters(filters)
    result = encode_signals(
        [detail],
        phases,
        penalty,
        weights=None if np.all(seen == 1) else [seen],
        sampling=1.0,
        boundary=settings.boundary,
        solver=on_device(_coder(settings.tol), settings.device),
        nonnegative=False,
        n_jobs=effective_jobs(settings.n_jobs),
        seed=0,
        progress=settings.progress,
    )
    warn_unless_converged(result)
    coarse = Geometry(detail.shape[1:], phases.shape[2:], len(detail), settings.boundary)
    codes = lattice.fine(result.codes, coarse.offset, filters.shape[2:], shape[1:])
    settings = replace(settings, boundary="full")  # of the codes where they are now
    codes = refit(damaged, smooth, filters, codes, settings) if settings.debias else codes
    more = synthesise(codes, filters, [shape], NO_BLUR, settings.boundary)[0]
    return Mended([smooth[0].sharp + more], [smooth[0].sharp], smooth[0].unsettled, codes, result)


def _coder(tol: float) -> CoordinateDescent:
    """Rough tolerances are reached soonest by few rounds that take many codes."""
    return (
        CoordinateDescent(tol=tol)
        if tol <= _ROUGH
        else CoordinateDescent(tol=tol, cells=(1,), inner=0.95, max_sweeps=2, extra=2)
    )


def _pattern(shape: tuple[int, int], places: str) -> NDArray:
    """Weights (3, height, width) of a mosaic: which channel each pixel saw."""
    weights = np.zeros((3, *shape))
    for i, letter in enumerate(places):
        weights["RGB".index(letter), i // 2 :: 2, i % 2 :: 2] = 1
    return weights
