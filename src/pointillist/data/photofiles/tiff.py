"""TIFF, and EXIF, which is a TIFF structure of its own: samples of any depth through tifffile, and all that is said of them.

EXIF stays as the camera wrote it, maker's notes included: what must be changed is changed in place.
"""

import io
import logging
import operator
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin

from pointillist.data.damage import check_page, check_pages
from pointillist.data.photofiles.photograph import Metadata, Photograph, TiffOrigin
from pointillist.data.samples import upright

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
EXIF_PREFIX = b"Exif\0\0"
ORIENTATION = 0x0112
EXIF_IFD, GPS_IFD = 0x8769, 0x8825
_TEXTS = (270, 271, 272, 305, 306, 315, 33432)
"""ImageDescription, Make, Model, Software, DateTime, Artist, Copyright."""
_PLAIN = (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.MINISWHITE, tifffile.PHOTOMETRIC.RGB)
_XMP, _ICC, _DESCRIPTION = 700, 34675, 270
# Texts, page and document names, host, IPTC, Photoshop's resources, and where on the earth a picture lies.
_KEPT = (*_TEXTS, 269, 285, 316, 33723, 34377, 33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113)
_LAYOUTS = ('{"shape"', "ImageJ=", "<?xml", "<OME")
"""Beginnings of descriptions that are programs' records of axes and pages, which may be others now."""
_NO_COMPRESSION, _DEFLATE = 1, 8
_LOSSLESS = (_NO_COMPRESSION, 5, _DEFLATE, 32773, 32946, 34925, 50000)  # LZW, PackBits, old deflate, LZMA, Zstandard
_LONG = 4  # the type of a tag
_PER_INCH = {2: 1.0, 3: 2.54}  # by unit: inch, centimetre
_LARGEST_CLASSIC = 2**32 - 2**25

logger = logging.getLogger(__name__)


def turned_exif(exif: bytes | None, code: int = 1) -> tuple[bytes | None, int]:
    """EXIF bytes with another orientation, and the one that they had, from 1 to 8.

    The link to the thumbnail, which would show the picture as it was before, is cut. None for what is no TIFF structure; one
    that is cut short stays as it is.
    """
    exif = (exif or b"").removeprefix(EXIF_PREFIX)
    if exif[:4] not in MAGIC[:2]:
        return None, 1
    order = "<" if exif[:2] == b"II" else ">"
    turned, before = bytearray(exif), 1
    try:
        (first,) = struct.unpack_from(order + "I", exif, 4)
        (count,) = struct.unpack_from(order + "H", exif, first)
        last = first + 2 + 12 * count
        struct.pack_into(order + "I", turned, last, 0)
        for at in range(first + 2, last, 12):
            tag, kind, _, found = struct.unpack_from(order + "HHIH", exif, at)
            if (tag, kind) == (ORIENTATION, 3):
                before = found if 1 <= found <= 8 else 1
                struct.pack_into(order + "H", turned, at + 8, code)
    except struct.error:
        return exif, 1
    return bytes(turned), before


def exif_of_structure(stream: BinaryIO) -> bytes | None:
    """EXIF of a file that is itself a TIFF structure (TIFF and most camera raw files): texts, EXIF and GPS directories."""
    stream.seek(0)
    first, inner = directories(stream)
    kept = Image.Exif()
    for code in _TEXTS:
        if code in first:
            kept[code] = first[code]
    for code, directory in inner.items():
        kept.get_ifd(code).update(directory)
    return kept.tobytes().removeprefix(EXIF_PREFIX) if len(kept) > 0 or inner else None


def directories(stream: BinaryIO) -> tuple[Mapping[int, Any], dict[int, Mapping[int, Any]]]:
    """The first directory of EXIF, and its EXIF and GPS directories by their tags."""
    exif = Image.Exif()
    try:
        exif.load_from_fp(stream)
        inner = {code: dict(exif.get_ifd(code)) for code in (EXIF_IFD, GPS_IFD)}
        return dict(exif), {code: directory for code, directory in inner.items() if directory}
    except (SyntaxError, struct.error, OSError, ValueError, LookupError, TypeError) as error:
        logger.warning("EXIF is damaged and cannot be taken over: %s", error)
        return {}, {}


def read(stream: BinaryIO) -> Photograph | None:
    """The first page of a TIFF file; None where its kind of colour is left to Pillow."""
    check_pages(stream)
    with tifffile.TiffFile(stream) as tiff:
        page = tiff.pages.first
        kind = page.dtype
        if page.photometric not in _PLAIN or kind is None or kind.kind not in "uf" or page.bitspersample < 8:
            return None
        if kind.kind == "u" and kind.itemsize > 2:
            raise ValueError("its integer samples have no known range; save it as uint8, uint16 or float")
        if page.axes not in ("YX", "YXS", "SYX"):
            raise ValueError(f"its axes are {page.axes}, not those of an image; save it as .npy")
        check_pixels(*_sides(page), operator.index(page.samplesperpixel))
        check_page(page, stream.seek(0, io.SEEK_END))
        samples = page.asarray()
        if page.axes == "SYX":
            samples = np.moveaxis(samples, 0, -1)
        samples = upright(samples, _value(page, ORIENTATION, 1))
        if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE and kind.kind == "u":
            samples = np.iinfo(kind).max - samples
        notes = (f"only the first of its {len(tiff.pages)} frames is read",) if len(tiff.pages) > 1 else ()
        metadata = _metadata(page, stream)
    native = np.result_type(kind, np.float32) if kind.kind == "f" else kind.newbyteorder("=")
    pixels, alpha, more = split(samples.astype(native))
    return Photograph(pixels, alpha, metadata, notes + more)


def size(stream: BinaryIO) -> tuple[int, int]:
    """Height and width of the first page, upright."""
    with tifffile.TiffFile(stream) as tiff:
        height, width = _sides(tiff.pages.first)
        check_pixels(height, width)
        return (width, height) if _value(tiff.pages.first, ORIENTATION, 1) >= 5 else (height, width)


def check_pixels(height: int, width: int, channels: int = 1) -> None:
    """Refuse an image with more pixels than Pillow decodes; for files that Pillow does not open itself.

    From the fifth on, channels count as further pixels.
    """
    if Image.MAX_IMAGE_PIXELS and height * width * max(channels, 4) > 8 * Image.MAX_IMAGE_PIXELS:
        raise Image.DecompressionBombError


def _sides(page: tifffile.TiffPage) -> tuple[int, int]:
    """Height and width; damaged tags hold several numbers, or bytes."""
    return operator.index(page.imagelength), operator.index(page.imagewidth)


def split(samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[str, ...]]:
    """Pixels, alpha and notes from samples (height, width[, channels])."""
    if samples.ndim == 2:
        return np.ascontiguousarray(samples), None, ()
    channels = samples.shape[-1]
    colours = 3 if channels >= 3 else 1
    pixels = samples[..., :3] if colours == 3 else samples[..., 0]
    alpha = np.ascontiguousarray(samples[..., colours]) if channels > colours else None
    left = channels - colours - 1
    notes = (f"{left} of its {channels} channels are left out",) if left > 0 else ()
    return np.ascontiguousarray(pixels), alpha, notes


def _value(page: tifffile.TiffPage, code: int | str, default: Any) -> Any:
    tag = page.tags.get(code)
    return default if tag is None else tag.value


def _metadata(page: tifffile.TiffPage, stream: BinaryIO) -> Metadata:
    found = [tag for tag in map(page.tags.get, _KEPT) if tag is not None and tag.value is not None]
    tags = tuple(
        (tag.code, int(tag.dtype), tag.count, tag.value)
        for tag in found
        if tag.code != _DESCRIPTION or not str(tag.value).startswith(_LAYOUTS)
    )
    unit = _PER_INCH.get(int(_value(page, "ResolutionUnit", 2)), 0.0)
    sides = [_value(page, name, (0, 1)) for name in ("XResolution", "YResolution")]
    across, down = (unit * one[0] / (one[1] or 1) for one in sides)
    xmp = _value(page, _XMP, None)
    return Metadata(
        format="TIFF",
        exif=exif_of_structure(stream),
        icc=_value(page, _ICC, None),
        dpi=(across, down) if across and down else None,
        xmp=xmp.encode() if isinstance(xmp, str) else xmp,
        tiff=TiffOrigin(int(page.compression), int(page.extrasamples[0]) if page.extrasamples else None, tags),
    )


def write(photograph: Photograph, path: Path) -> tuple[str, ...]:
    """Write a TIFF file with the compression of the one that the photograph came from."""
    metadata, pixels, alpha = photograph.metadata, photograph.pixels, photograph.alpha
    compression, notes = metadata.tiff.compression, []
    if compression not in _LOSSLESS:
        compression = _DEFLATE
        notes.append("its lossy compression is replaced by one without loss")
    samples = pixels if alpha is None else np.dstack([pixels, alpha])
    options: dict[str, Any] = {}
    if compression not in (_NO_COMPRESSION, 32773):  # rows of differences are for what finds repetitions
        options["predictor"] = 3 if pixels.dtype.kind == "f" else 2
    if alpha is not None:
        extra = metadata.tiff.extrasample
        options["extrasamples"] = [extra if extra in (0, 1, 2) else 2]
    if metadata.dpi is not None:
        options |= {"resolution": metadata.dpi, "resolutionunit": 2}
    first, inner = ({}, {}) if metadata.exif is None else directories(io.BytesIO(metadata.exif))
    texts = [(code, 2, 0, str(first[code])) for code in _TEXTS if code in first]
    tags = [_utf_8(tag) for tag in metadata.tiff.tags or texts]
    if metadata.xmp is not None:
        tags.append((_XMP, 1, len(metadata.xmp), metadata.xmp, True))
    large = samples.nbytes > _LARGEST_CLASSIC
    tifffile.imwrite(
        path,
        samples,
        photometric="minisblack" if pixels.ndim == 2 else "rgb",
        planarconfig="contig" if samples.ndim == 3 else None,
        compression=compression,
        iccprofile=metadata.icc,
        software=False,
        metadata=None,
        bigtiff=large,
        extratags=[*tags, *((code - 1, _LONG, 1, 0, True) for code in inner)],  # which are written over
        **options,
    )
    if inner and not large:
        _append_directories(path, inner)
    return tuple(notes)


def _utf_8(tag: tuple[int, int, int, Any]) -> tuple[int, int, int, Any, bool]:
    """A tag for tifffile; text as UTF-8, since that writes no other than plain ASCII from strings."""
    code, kind, count, value = tag
    if isinstance(value, str):
        value = value.encode(errors="replace") + b"\0"
        count = len(value)
    return code, kind, count, value, True


def _append_directories(path: Path, inner: dict[int, Any]) -> None:
    """Put EXIF and GPS directories at the end of a file, and the tags that lead to them where others hold their places."""
    with tifffile.TiffFile(path) as tiff:
        order, places = tiff.byteorder, {code: tiff.pages.first.tags[code - 1].offset for code in inner}
    with path.open("r+b") as stream:
        head = stream.read(8)
        for code, place in places.items():
            directory = TiffImagePlugin.ImageFileDirectory_v2(head)
            directory.update(inner[code])
            begin = stream.seek(0, io.SEEK_END)
            begin += stream.write(bytes(begin % 2))
            stream.write(directory.tobytes(begin))
            stream.seek(place)
            stream.write(struct.pack(order + "HHII", code, _LONG, 1, begin))
