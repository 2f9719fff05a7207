"""Masks of missing pixels from files: from a mask image, or from a colour, transparency or NaN in the photograph itself.

Files are read and written by the data layer; mending what is found here is done by the restoration layer.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.photofiles import Photograph, read_photograph
from pointillist.retouch.marks import find_key, find_marks


def plain(photograph: Photograph) -> Photograph:
    """The photograph with grey pixels if its colour channels are all alike, so that one is worked on instead of three."""
    pixels = photograph.pixels
    if pixels.ndim == 2 or not (_alike(pixels[::16]) and _alike(pixels)):
        return photograph
    return replace(photograph, pixels=np.ascontiguousarray(pixels[..., 0]))


def _alike(pixels: NDArray[Any]) -> bool:
    first, floating = pixels[..., 0], pixels.dtype.kind == "f"
    return all(np.array_equal(first, pixels[..., channel], equal_nan=floating) for channel in (1, 2))


def read_mask(path: Path, photograph: Photograph, name: Path) -> NDArray[np.bool_]:
    """A mask image as booleans: what is opaque if some of it is transparent, else what is white, or brighter than half."""
    mask = read_photograph(path)
    if mask.shape != photograph.shape:
        (rows, columns), (height, width) = mask.shape, photograph.shape
        raise ValueError(f"--mask {path} has {columns}×{rows} pixels, {name} {width}×{height}: they must agree")
    if mask.alpha is not None and np.ptp(mask.alpha) > 0:
        return mask.alpha >= mask.peak / 2
    pixels = mask.pixels
    bright = pixels if pixels.ndim == 2 else pixels.astype(np.float32).mean(axis=-1)
    return bright >= mask.peak / 2


def marked_by_itself(photograph: Photograph, name: Path, **options: Any) -> tuple[NDArray[np.bool_], str]:
    """The missing pixels that a picture marks by itself, and by what; raises when it marks none.

    `options` are those of `find_marks`, for pictures that mark them by a colour.
    """
    if photograph.alpha is not None and (photograph.alpha == 0).any():
        return photograph.alpha == 0, "transparent"
    if photograph.pixels.dtype.kind == "f":
        holes = ~np.isfinite(photograph.pixels)
        if holes.any():
            return holes if holes.ndim == 2 else holes.any(axis=-1), "NaN"
    try:
        key = find_key(photograph.pixels)
    except ValueError as error:
        raise ValueError(f"{name}: {str(error).replace('colour=', '--key')}") from error
    if key is None:
        raise ValueError(
            f"{name} marks no pixels as missing: give --mask FILE, --key COLOUR or --find dust, or make them transparent "
            "or magenta (#ff00ff)"
        )
    return find_marks(photograph.pixels, key, **options), key
