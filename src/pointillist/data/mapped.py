"""Large images left in their files: ``.npy`` and TIFF as mapped signals, read where and when they are used.

Whatever is not large, or cannot be mapped, is left to the loading module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.data.samples import to_float, to_grey
from pointillist.model.large import LARGE, bands, scratch

_TIFF_SUFFIXES = (".tif", ".tiff")
_PHOTOMETRICS = (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.RGB)


def open_mapped(path: Path, ndim: int = 2) -> NDArray[np.floating] | None:
    """One large signal of `ndim` axes as a float array in a file; None for everything else.

    ``.npy`` arrays of floating-point samples are mapped themselves. Integers are scaled to [0, 1] and colour turned to
    grey, as in `load_image`, into a temporary file in the folder that TMPDIR names; so are compressed TIFF files.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return _map_array(path, ndim)
        if suffix in _TIFF_SUFFIXES and ndim == 2:
            return _map_tiff(path)
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, tifffile.TiffFileError):
        return None  # the loading module says what is wrong with it
    return None


def _map_array(path: Path, ndim: int) -> NDArray[np.floating] | None:
    array = np.lib.format.open_memmap(path, mode="r")
    if array.ndim != ndim or array.size < LARGE:
        return None
    return _as_signal(array, colour=False)


def _map_tiff(path: Path) -> NDArray[np.floating] | None:
    with tifffile.TiffFile(path) as tiff:
        page = tiff.pages.first
        tag = page.tags.get("Orientation")
        upright = tag is None or int(tag.value) == 1
        plain = page.photometric in _PHOTOMETRICS and page.axes in ("YX", "YXS") and page.sampleformat in (1, 3)
        if not (upright and plain) or page.imagewidth * page.imagelength < LARGE:
            return None
        raw = tifffile.memmap(path, page=0, mode="r") if page.is_memmappable else page.asarray(out="memmap")
    if page.axes == "YXS" and raw.shape[-1] < 3:  # grey with alpha
        raw = raw[..., 0]
    return _as_signal(raw, colour=raw.ndim == 3)


def _as_signal(raw: NDArray[Any], *, colour: bool) -> NDArray[np.floating]:
    """Samples (*space), or (height, width, channels) of colour, as a grey signal of floats."""
    dtype = to_float(raw[:0], "it").dtype
    if not colour and raw.dtype == dtype and raw.flags.c_contiguous:
        return raw
    out = scratch(raw, raw.shape[:2] if colour else raw.shape, dtype)
    for _, rows in bands((1, *raw.shape)):
        samples = to_float(raw[rows], "it")
        out[rows] = to_grey(np.moveaxis(samples[..., :3], -1, 0)) if colour else samples
    return out
