"""Which pixels of a photograph are missing: by a mask image, by a colour, by transparency or by not being a number.

Files are read and written by the data layer; mending what is found here is done by the restoration layer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from pointillist.data.photofiles import Photograph, read_photograph

KEYS = ("#ff00ff", "#00ff00", "#ff0000", "#00ffff", "#0000ff", "#ffff00")
"""Colours that mark missing pixels by themselves: fully saturated, so that photographs hardly contain them exactly."""

LEAST_MARKED = 0.001
"""Part of the pixels that must have such a colour."""

_TINTED, _TINTED_BESIDE = (
    0.5,
    0.25,
)  # towards a key's colour, for a pixel to look like a mixture, anywhere and beside it


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
    """A mask image as booleans: what is opaque if parts of it are transparent, else what is white, or brighter than half."""
    mask = read_photograph(path)
    if mask.shape != photograph.shape:
        (rows, columns), (height, width) = mask.shape, photograph.shape
        raise ValueError(f"--mask {path} has {columns}×{rows} pixels, {name} {width}×{height}: they must agree")
    if mask.alpha is not None and np.ptp(mask.alpha) > 0:
        return mask.alpha >= mask.peak / 2
    pixels = mask.pixels
    bright = pixels if pixels.ndim == 2 else pixels.astype(np.float32).mean(axis=-1)
    return bright >= mask.peak / 2


def parse_key(text: str) -> tuple[int, int, int]:
    """``#ff00ff`` as three numbers."""
    digits = text.removeprefix("#")
    try:
        value = bytes.fromhex(digits)
    except ValueError:
        value = b""
    if len(value) != 3:
        raise ValueError(f'--key {text!r} is not a colour: write six hexadecimal digits, as in "#ff00ff"')
    return value[0], value[1], value[2]


def coloured(photograph: Photograph, key: tuple[int, int, int], fuzz: float = 0.0) -> NDArray[np.bool_]:
    """Which pixels have this colour, or nearly so.

    Of a pure colour such as magenta these are mixtures with at least 1 − `fuzz` of it, so that grey never is; of others
    all that differ by at most `fuzz` of the full scale in every channel.
    """
    if fuzz > 0 and (tint := _tint(photograph, key)) is not None:
        return tint >= 1 - fuzz
    pixels = photograph.pixels if photograph.pixels.ndim == 3 else np.stack([photograph.pixels] * 3, axis=-1)
    wanted = np.array(key, np.float64) / 255 * photograph.peak
    return np.all(np.abs(pixels - wanted) <= max(fuzz, 1e-6) * photograph.peak, axis=-1)


def _tint(photograph: Photograph, key: tuple[int, int, int]) -> NDArray[np.float64] | None:
    """How much of a pure colour each pixel has: one for itself, at most zero for grey; None if the colour is not pure."""
    lit, dark = np.array(key) == 255, np.array(key) == 0
    if not np.all(lit | dark) or lit.all() or dark.all():
        return None
    if photograph.pixels.ndim == 2:
        return np.zeros(photograph.shape)
    levels = photograph.pixels.astype(np.float64) / photograph.peak
    tint: NDArray[np.float64] = levels[..., lit].min(axis=-1) - levels[..., dark].max(axis=-1)
    return tint


def find_marked(photograph: Photograph, name: Path) -> tuple[NDArray[np.bool_], str]:
    """The missing pixels that a picture marks by itself, and by what; raises when it marks none."""
    if photograph.alpha is not None and (photograph.alpha == 0).any():
        return photograph.alpha == 0, "transparent"
    if photograph.pixels.dtype.kind == "f":
        holes = ~np.isfinite(photograph.pixels)
        if holes.any():
            return holes if holes.ndim == 2 else holes.any(axis=-1), "NaN"
    found = {}
    if photograph.pixels.ndim == 3 and photograph.pixels.dtype.kind == "u":
        found = {key: marks for key in KEYS if np.mean(marks := coloured(photograph, parse_key(key))) > LEAST_MARKED}
    if len(found) == 1:
        key, marks = next(iter(found.items()))
        return marks, key
    if found:
        raise ValueError(f"{name} has pixels of {' and '.join(found)}: say by --key which of them are missing")
    raise ValueError(
        f"{name} marks no pixels as missing: give --mask, or --key COLOUR, or make them transparent or {KEYS[0]} "
        "(in a PNG; JPEG blurs colours)"
    )


def grown(missing: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """Missing pixels and those at most so many rows and columns away."""
    if pixels == 0:
        return missing
    grown: NDArray[np.bool_] = binary_dilation(missing, np.ones((3, 3), bool), iterations=pixels)
    return grown


def fringes(photograph: Photograph, missing: NDArray[np.bool_], key: tuple[int, int, int]) -> int:
    """How many other pixels look like a mixture with the colour of the missing ones, as soft brushes and text leave it."""
    tint = _tint(photograph, key)
    if tint is None:
        return 0
    return int(np.sum((tint > np.where(grown(missing, 2), _TINTED_BESIDE, _TINTED)) & ~missing))


def plain_beside(photograph: Photograph, missing: NDArray[np.bool_]) -> Photograph:
    """The picture as grey where all that was seen is grey, so that coloured marks do not make it a colour photograph."""
    pixels = photograph.pixels
    if pixels.ndim == 2:
        return photograph
    seen = pixels[~missing]
    if len(seen) == 0 or not (np.array_equal(seen[:, 0], seen[:, 1]) and np.array_equal(seen[:, 0], seen[:, 2])):
        return photograph
    return replace(photograph, pixels=np.ascontiguousarray(pixels[..., 0]))
