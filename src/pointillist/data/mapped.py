"""Large signals left in their files: mapped, and read where and when they are used.

Integers are scaled and colour turned to grey band by band, into temporary files in the folder that TMPDIR names.
"""

import operator
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.data.damage import check_page
from pointillist.data.samples import to_float, to_grey
from pointillist.large import LARGE, scratch, walked
from pointillist.storage import check_regular

_TIFF_SUFFIXES = (".tif", ".tiff")
ONE_FILE: dict[str, Any] = {"is_ome": False, "is_mmstack": False, "is_ndtiff": False}
"""How tifffile opens files: formats that name further files are read as plain TIFF, which knows of one file only."""
_PHOTOMETRICS = (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.RGB)


def map_tiff(path: Path) -> NDArray[np.floating] | None:
    """The large image of a TIFF file as a grey signal in a file; None for everything else, to be read as it is."""
    if path.suffix.lower() not in _TIFF_SUFFIXES:
        return None
    try:
        check_regular(path)
        with tifffile.TiffFile(path) as tiff:
            page = tiff.pages.first
            tag = page.tags.get("Orientation")
            upright = tag is None or int(tag.value) == 1
            plain = page.photometric in _PHOTOMETRICS and page.axes in ("YX", "YXS") and page.sampleformat in (1, 3)
            if not (upright and plain) or operator.index(page.imagewidth) * operator.index(page.imagelength) < LARGE:
                return None
            check_page(page, path.stat().st_size)
            raw = tifffile.memmap(path, page=0, mode="r") if page.is_memmappable else page.asarray(out="memmap")
        if page.axes == "YXS" and raw.shape[-1] < 3:  # grey with alpha
            raw = raw[..., 0]
        return floats(raw, "it", colour=raw.ndim == 3)
    except Exception:  # of many kinds, as damaged files have them
        return None  # the reader of images says what is wrong with it


def floats(raw: NDArray[Any], name: str, *, colour: bool = False, channels: bool = False) -> NDArray[np.floating]:
    """Samples as a signal of floats, in a file where they are.

    Samples are (*space); or (channels, *space) with `channels`; or (height, width, channels) with `colour`, and become grey.
    """
    dtype = to_float(raw[:0], name).dtype
    if not colour and raw.dtype == dtype and raw.flags.c_contiguous:
        return raw
    if not colour and raw.size < LARGE:
        return to_float(raw, name)
    out = scratch(raw, raw.shape[:2] if colour else raw.shape, dtype)
    if channels:
        for band in walked(raw, out):
            out[band] = to_float(raw[band], name)
        return out
    for _, rows in walked(raw[None], out):
        samples = to_float(raw[rows], name)
        out[rows] = to_grey(samples[..., :3]) if colour else samples
    return out
