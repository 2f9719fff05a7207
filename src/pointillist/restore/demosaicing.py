"""Colour from a sensor that saw one channel at each pixel: weights per channel, coded with colour filters."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.engine import Damaged, Detailed, Details, Options, Plain, Settings, choose_filters, mend
from pointillist.restore.penalties import Penalty, contrast, given_penalty
from pointillist.restore.pictures import open_picture
from pointillist.restore.reporting import finish

PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")

_PENALTY = 0.005


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
        As in `inpaint`.

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
    settings = Settings.given(options)
    grey = open_picture(mosaic, channel_axis=settings.channel_axis, data_range=settings.data_range, name="mosaic")
    bank = choose_filters(filters, "natural-colour-100", grey.shape)
    if bank.shape[1] != 3:
        raise ValueError("filters must be colour filters (n_filters, 3, height, width) for a mosaic")
    seen = _pattern(grey.shape, places) * grey.weights
    if not np.all(np.any(seen > 0, axis=(1, 2))):
        raise ValueError("mosaic has no seen pixel of one of its channels")
    picture = replace(grey, planes=grey.planes * seen, weights=seen, axis=2)
    damaged = Damaged([picture.planes], [picture.weights])
    value = given_penalty(penalty, damaged, bank, settings)
    value = _PENALTY * contrast(damaged) if value is None else value
    mended = mend(damaged, bank, value, settings)
    planes = mended.signals[0]
    if keep_seen:
        planes = np.where(seen > 0, picture.planes, planes)
    return finish(picture, planes, mended, value, begin, settings)


def _pattern(shape: tuple[int, int], places: str) -> NDArray:
    """Weights (3, height, width) of a mosaic: which channel each pixel saw."""
    weights = np.zeros((3, *shape))
    for i, letter in enumerate(places):
        weights["RGB".index(letter), i // 2 :: 2, i % 2 :: 2] = 1
    return weights
