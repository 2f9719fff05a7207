"""Writing of photographs: everything that a format can hold goes in, and what it cannot hold is said."""

from __future__ import annotations

import logging
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pointillist.data.photofiles import exif, jpeg, png, tiff
from pointillist.data.photofiles.formats import Format, check_format
from pointillist.data.photofiles.photograph import Photograph
from pointillist.reprs import shown
from pointillist.storage import atomic_path
from pointillist.validation import as_path

logger = logging.getLogger(__name__)

_WORDS = {"exif": "EXIF", "icc": "the colour profile", "dpi": "the resolution", "xmp": "XMP", "alpha": "transparency"}


def write_photograph(photograph: Photograph, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a photograph with its metadata in the format that the name asks for, completely or not at all.

    Pixels, alpha, EXIF, colour profile, resolution and XMP survive wherever the format can hold them. PNG, TIFF, WebP, BMP
    and ``.npy`` keep every pixel. A photograph that came from a JPEG file and becomes one again keeps that file's tables and
    subsampling and, with the extra ``jpeg``, the coefficients of all blocks that were not changed; without it, pixels of
    these blocks differ a little, most by no more than two levels, and are stored upright. Other photographs become JPEG
    of quality 95 without subsampling. TIFF keeps the compression that it had.

    Parameters
    ----------
    photograph : Photograph
    path : str or path
        Ends in .png, .jpg, .jpeg, .tif, .tiff, .webp, .bmp or .npy.

    Returns
    -------
    tuple of str
        What the format could not hold; the log has these lines too, as warnings.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> photo = pt.Photograph(np.zeros((30, 40, 3), np.uint16), alpha=np.full((30, 40), 65535, np.uint16))
    >>> pt.write_photograph(photo, "deep.png")
    ()
    >>> pt.read_photograph("deep.png").pixels.dtype.name
    'uint16'

    Raises
    ------
    ValueError
        If the name asks for no known format, or for one that cannot hold samples of this type.
    OSError
        If the file cannot be written.
    """
    path = as_path(path)
    if not isinstance(photograph, Photograph):
        raise TypeError(f"photograph must be a Photograph, got {shown(photograph)}")
    form = check_format(path, photograph.pixels.dtype)
    kept, notes = _fitted(photograph, form)
    with atomic_path(path) as temporary:
        notes += _write(kept, temporary, form)
    for note in notes:
        logger.warning("%s: %s", path, note)
    return notes


def _fitted(photograph: Photograph, form: Format) -> tuple[Photograph, tuple[str, ...]]:
    """The photograph without what a format cannot hold, and the words for what is missing then."""
    metadata, notes = photograph.metadata, []
    # A profile's head names its own colours. Grey files with a profile for colour are common and stay as they are.
    own = b"" if metadata.icc is None else metadata.icc[16:20]
    if len(own) == 4 and own != b"RGB " and not (own == b"GRAY" and photograph.pixels.ndim == 2):
        metadata = replace(metadata, icc=None)
        notes.append("the colour profile is for other colours than these pixels have: left out")
    present = [name for name in ("exif", "icc", "dpi", "xmp") if getattr(metadata, name) is not None]
    if photograph.alpha is not None:
        present.append("alpha")
    missing = [name for name in present if name not in form.holds]
    if missing:
        name = "a .npy array" if form.name == "NPY" else form.name
        notes.append(f"{name} cannot hold {' and '.join(_WORDS[one] for one in missing)}: left out")
    for name in ("exif", "xmp"):
        if form.name == "JPEG" and len(getattr(metadata, name) or b"") > jpeg.LONGEST:
            left_out: dict[str, Any] = {name: None}
            metadata = replace(metadata, **left_out)
            notes.append(f"{_WORDS[name]} is too long for JPEG: left out")
    if metadata.exif is not None:
        metadata = replace(metadata, exif=exif.without_thumbnail(metadata.exif))
    if metadata.xmp is not None and (metadata.jpeg is None or form.name != "JPEG"):
        upright = re.sub(rb"(tiff:Orientation\s*=\s*[\"'])[2-8]", rb"\g<1>1", metadata.xmp)
        metadata = replace(metadata, xmp=re.sub(rb"(<tiff:Orientation>\s*)[2-8]", rb"\g<1>1", upright))
    alpha = photograph.alpha if "alpha" in form.holds else None
    return replace(photograph, alpha=alpha, metadata=metadata), tuple(notes)


def _write(photograph: Photograph, path: Path, form: Format) -> tuple[str, ...]:
    metadata, pixels, alpha = photograph.metadata, photograph.pixels, photograph.alpha
    if form.name == "TIFF":
        return tiff.write(photograph, path)
    if form.name == "JPEG":
        content, notes = jpeg.encode(pixels, metadata)
        path.write_bytes(content)
        return notes
    samples = pixels if alpha is None else np.dstack([pixels, alpha])
    if form.name == "PNG":
        path.write_bytes(png.encode(samples, metadata))
        return ()
    if form.name == "NPY":
        with path.open("wb") as stream:
            np.save(stream, samples)
        return ()
    options: dict[str, Any] = {} if metadata.dpi is None else {"dpi": metadata.dpi}
    if form.name == "WEBP":
        given = {"exif": metadata.exif, "icc_profile": metadata.icc, "xmp": metadata.xmp}
        # Without loss; quality is effort then, and more of it takes eight times as long for one percent.
        options = {"lossless": True, "quality": 0, "method": 0, "exact": True} | {k: v for k, v in given.items() if v}
    image = Image.fromarray(np.ascontiguousarray(samples[..., 0] if samples.shape[2:] == (2,) else samples))
    if samples.shape[2:] == (2,):  # grey with alpha
        image = image.convert("RGB")
        image.putalpha(Image.fromarray(np.ascontiguousarray(samples[..., 1])))
    image.save(path, form.name, **options)
    return ()
