"""TIFF: samples of any depth through tifffile, with resolution, texts, colour profile, alpha, EXIF and GPS directories."""

import io
import operator
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin

from pointillist.data.damage import check_page, check_pages
from pointillist.data.photofiles import exif
from pointillist.data.photofiles.photograph import Metadata, Photograph, TiffOrigin
from pointillist.data.samples import upright

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_PLAIN = (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.MINISWHITE, tifffile.PHOTOMETRIC.RGB)
_XMP, _ICC, _DESCRIPTION = 700, 34675, 270
# Texts, page and document names, host, IPTC, Photoshop's resources, and where on the earth a picture lies.
_KEPT = (*exif.TEXT_TAGS, 269, 285, 316, 33723, 34377, 33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113)
_LAYOUTS = ('{"shape"', "ImageJ=", "<?xml", "<OME")
"""Beginnings of descriptions that are programs' records of axes and pages, which may be others now."""
_LOSSLESS = (1, 5, 8, 32773, 32946, 34925, 50000)  # none, LZW, deflate, PackBits, deflate's old code, LZMA, Zstandard
_DEFLATE = 8
_LONG = 4  # the type of a tag
_PER_INCH = {2: 1.0, 3: 2.54}  # by unit: inch, centimetre
_LARGEST_CLASSIC = 2**32 - 2**25


def read(stream: BinaryIO) -> Photograph | None:
    """The first page of a TIFF file; None where its kind of colour is left to Pillow."""
    check_pages(stream)
    with tifffile.TiffFile(stream) as tiff:
        page = tiff.pages.first
        if page.photometric not in _PLAIN or page.dtype is None:
            return None
        if page.dtype.kind not in "uf" or page.bitspersample < 8:
            return None
        if page.dtype.kind == "u" and page.dtype.itemsize > 2:
            raise ValueError("its integer samples have no known range; save it as uint8, uint16 or float")
        if page.axes not in ("YX", "YXS", "SYX"):
            raise ValueError(f"its axes are {page.axes}, not those of an image; save it as .npy")
        check_pixels(*_sides(page), operator.index(page.samplesperpixel))
        check_page(page, stream.seek(0, io.SEEK_END))
        samples = page.asarray()
        if page.axes == "SYX":
            samples = np.moveaxis(samples, 0, -1)
        samples = upright(samples, _value(page, "Orientation", 1))
        if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE and samples.dtype.kind == "u":
            samples = np.iinfo(samples.dtype).max - samples
        notes = (f"only the first of its {len(tiff.pages)} frames is read",) if len(tiff.pages) > 1 else ()
        extra = page.extrasamples[0] if page.extrasamples else None
        metadata = _metadata(page, None if extra is None else int(extra), stream)
    kind = np.result_type(samples.dtype, np.float32) if samples.dtype.kind == "f" else samples.dtype.newbyteorder("=")
    pixels, alpha, more = split(np.asarray(samples, kind))
    return Photograph(pixels, alpha, metadata, notes + more)


def size(stream: BinaryIO) -> tuple[int, int]:
    """Height and width of the first page, upright."""
    with tifffile.TiffFile(stream) as tiff:
        page = tiff.pages.first
        height, width = _sides(page)
        check_pixels(height, width)
        turned = _value(page, "Orientation", 1) >= 5
        return (width, height) if turned else (height, width)


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
    left = channels - colours - (alpha is not None)
    notes = (f"{left} of its {channels} channels are left out",) if left else ()
    return np.ascontiguousarray(pixels), alpha, notes


def _value(page: tifffile.TiffPage, name: str | int, default: Any) -> Any:
    tag = page.tags.get(name)
    return default if tag is None else tag.value


def _metadata(page: tifffile.TiffPage, extrasample: int | None, stream: BinaryIO) -> Metadata:
    found = [tag for tag in (page.tags.get(code) for code in _KEPT) if tag is not None and tag.value is not None]
    tags = tuple(
        (tag.code, int(tag.dtype), tag.count, tag.value)
        for tag in found
        if tag.code != _DESCRIPTION or not str(tag.value).startswith(_LAYOUTS)
    )
    predictor = int(_value(page, "Predictor", 1))
    unit = int(_value(page, "ResolutionUnit", 2))
    dpi = None
    if unit in _PER_INCH and "XResolution" in page.tags and "YResolution" in page.tags:
        across, down = (page.tags[name].value for name in ("XResolution", "YResolution"))
        if across[1] and down[1] and across[0] and down[0]:
            dpi = (across[0] / across[1] * _PER_INCH[unit], down[0] / down[1] * _PER_INCH[unit])
    xmp = _value(page, _XMP, None)
    return Metadata(
        format="TIFF",
        exif=exif.from_tiff_structure(stream),
        icc=_value(page, _ICC, None),
        dpi=dpi,
        xmp=xmp.encode() if isinstance(xmp, str) else xmp,
        tiff=TiffOrigin(int(page.compression), predictor, extrasample, tags),
    )


def write(photograph: Photograph, path: Path) -> tuple[str, ...]:
    """Write a TIFF file with the compression of the one that the photograph came from."""
    metadata, pixels, alpha = photograph.metadata, photograph.pixels, photograph.alpha
    source = metadata.tiff or TiffOrigin(_DEFLATE, 2)
    notes: tuple[str, ...] = ()
    if source.compression not in _LOSSLESS:
        source = TiffOrigin(_DEFLATE, 2, source.extrasample, source.tags)
        notes = ("its lossy compression is replaced by one without loss",)
    samples = pixels if alpha is None else np.dstack([pixels, alpha])
    predictor = source.predictor if source.compression != 1 else 1
    if predictor != 1:
        predictor = 3 if pixels.dtype.kind == "f" else 2
    options: dict[str, Any] = {}
    if alpha is not None:
        options["extrasamples"] = [source.extrasample if source.extrasample in (0, 1, 2) else 2]
    if metadata.dpi is not None:
        options.update(resolution=metadata.dpi, resolutionunit=2)
    inner = {} if metadata.exif is None else exif.directories(io.BytesIO(metadata.exif))[1]
    tifffile.imwrite(
        path,
        samples,
        photometric="minisblack" if pixels.ndim == 2 else "rgb",
        planarconfig="contig" if samples.ndim == 3 else None,
        compression=source.compression,
        predictor=predictor if predictor != 1 else None,
        iccprofile=metadata.icc,
        software=False,
        metadata=None,
        bigtiff=samples.nbytes > _LARGEST_CLASSIC,
        extratags=[*_extra_tags(metadata, source), *((code - 1, _LONG, 1, 0, True) for code in inner)],
        **options,
    )
    if inner and samples.nbytes <= _LARGEST_CLASSIC:
        _append_directories(path, inner)
    return notes


def _extra_tags(metadata: Metadata, source: TiffOrigin) -> list[tuple[int, int, int, Any, bool]]:
    """Descriptive tags of a TIFF source, or the texts of EXIF that came from elsewhere, and XMP."""
    tags = [(code, kind, *_counted(count, value), True) for code, kind, count, value in source.tags]
    if metadata.tiff is None and metadata.exif is not None:
        first = exif.directories(io.BytesIO(metadata.exif))[0]
        texts = {code: str(first[code]) for code in exif.TEXT_TAGS if code in first}
        tags += [(code, 2, *_counted(len(text), text), True) for code, text in texts.items()]
    if metadata.xmp is not None:
        tags.append((_XMP, 1, len(metadata.xmp), metadata.xmp, True))
    return tags


def _counted(count: int, value: Any) -> tuple[int, Any]:
    """The value of a tag with its length; text as UTF-8, since tifffile writes no other than plain ASCII from strings."""
    if not isinstance(value, str):
        return count, value
    text = value.encode(errors="replace") + b"\0"
    return len(text), text


def _append_directories(path: Path, inner: dict[int, Any]) -> None:
    """Put EXIF and GPS directories at the end of a file, and the tags that lead to them where others hold their places."""
    places = {code - 1: code for code in inner}  # private tags that hold them, so that all stay in order
    with path.open("r+b") as stream:
        head = stream.read(8)
        order = "<" if head[:2] == b"II" else ">"
        (first,) = struct.unpack(order + "I", head[4:])
        stream.seek(first)
        (count,) = struct.unpack(order + "H", stream.read(2))
        entries = struct.iter_unpack(order + "HHII", stream.read(12 * count))
        end = stream.seek(0, io.SEEK_END)
        for place, (code, *_) in enumerate(entries):
            if code not in places:
                continue
            directory = TiffImagePlugin.ImageFileDirectory_v2(head)
            for tag, value in inner[places[code]].items():
                directory[tag] = value
            begin = end + end % 2
            stream.seek(begin)
            stream.write(directory.tobytes(begin))
            end = stream.tell()
            stream.seek(first + 2 + 12 * place)
            stream.write(struct.pack(order + "HHII", places[code], _LONG, 1, begin))
