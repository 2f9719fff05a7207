"""JPEG: blocks that nobody touched keep their coefficients, the others are quantised by the file's own tables.

With the package jpeglib a photograph that came from a JPEG file is not encoded again as a whole: its coefficients are read,
those of blocks with changed pixels computed anew, and all of them written. Where it has no wheels all is encoded again with
the file's own tables and subsampling. Segments (EXIF, ICC profile, XMP, ...) are put around the stream here.
"""

import io
import logging
import re
import struct
import tempfile
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin
from scipy.fft import dctn, idctn

from pointillist.data.photofiles.photograph import Metadata
from pointillist.data.photofiles.tiff import EXIF_PREFIX, turned_exif
from pointillist.data.samples import turned_back

log = logging.getLogger(__name__)

_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_ICC = b"ICC_PROFILE\0"
_SEGMENT = 65533  # bytes that a segment holds at most
LONGEST = _SEGMENT - len(_XMP)
"""Bytes of EXIF or XMP that a file holds at most."""
_APP0, _APP1, _APP2, _COMMENT = 0xE0, 0xE1, 0xE2, 0xFE
_FRAMES, _SCAN = (0xC0, 0xC1, 0xC2), 0xDA
_PLAIN, _PROGRESSIVE = "6b", "mozjpeg403"
_TO_YCC = np.array([[0.299, 0.587, 0.114], [-0.168735892, -0.331264108, 0.5], [0.5, -0.418687589, -0.081312411]])

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_one_at_a_time = threading.Lock()


class UnusualJpegError(ValueError):
    """The file's coefficients cannot be taken over; the message is the end of a sentence that says why."""


def encode(pixels: Pixels, metadata: Metadata) -> tuple[bytes, tuple[str, ...]]:
    """A JPEG file of pixels, with its source's own blocks where these can be kept, and what could not be kept.

    Without jpeglib pixels are stored upright, and untouched ones differ a little, most by no more than two levels.
    """
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = {"quality": 95, "subsampling": 0}
    if metadata.jpeg is not None:
        stored = np.ascontiguousarray(turned_back(pixels, metadata.orientation))
        with Image.open(io.BytesIO(metadata.jpeg)) as image:
            options = _options(image)
            before = np.asarray(image)
        if before.shape == stored.shape:
            changed = before != stored
            if changed.ndim == 3:  # much quicker than any() over so short an axis
                changed = changed[..., 0] | changed[..., 1] | changed[..., 2]
            if not changed.any():
                return metadata.jpeg, ()
            try:
                return _keep_blocks(import_module("jpeglib"), metadata.jpeg, stored, changed, metadata), ()
            except ImportError:
                log.info("JPEG files are encoded again as a whole: jpeglib, which keeps their blocks, is not installed")
            except UnusualJpegError as error:
                notes = (f"all its blocks are encoded again, because {error}",)
    exif = None if metadata.exif is None else EXIF_PREFIX + metadata.exif
    given = {"exif": exif, "icc_profile": metadata.icc, "xmp": metadata.xmp, "dpi": metadata.dpi}
    options |= {name: value for name, value in given.items() if value is not None}
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", optimize=True, **options)
    return buffer.getvalue(), notes


def _options(image: Any) -> dict[str, Any]:
    """Options by which Pillow encodes as an open JPEG file was: its tables, subsampling and order."""
    tables = list(image.quantization.values())
    return {
        "qtables": (2 * tables if image.mode == "RGB" else tables)[:2],
        "subsampling": max(JpegImagePlugin.get_sampling(image), 0),
        "progressive": bool(image.info.get("progressive")),
        "keep_rgb": image.info.get("adobe_transform") == 0,
    }


def _keep_blocks(jpeglib: Any, source: bytes, pixels: Pixels, changed: Mask, metadata: Metadata) -> bytes:
    """The source's file with new coefficients for the blocks of changed pixels."""
    with JpegImagePlugin.JpegImageFile(io.BytesIO(source)) as image:
        names = [name for name, *_ in image.layer]
        rgb = image.info.get("adobe_transform") == 0
    if names not in ([1], [1, 2, 3]) and not rgb:
        raise UnusualJpegError("its channels have unusual names")
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.jpg", Path(folder) / "after.jpg"
        before.write_bytes(source)
        try:
            jpeg = jpeglib.read_dct(str(before))
        except OSError:
            raise UnusualJpegError("its coefficients cannot be read") from None
        sampling = np.array(jpeg.samp_factor, int)[: len(names)].reshape(-1, 2)
        factors, rest = np.divmod(sampling.max(axis=0), sampling)
        if rest.any():
            raise UnusualJpegError("its chroma subsampling is unusual")
        for i, plane in enumerate((jpeg.Y, jpeg.Cb, jpeg.Cr)[: len(names)]):
            table = np.asarray(jpeg.qt[jpeg.quant_tbl_no[i]], float)
            weights = None if len(names) == 1 else np.eye(3)[i] if rgb else _TO_YCC[i]
            _renew(plane, table, pixels, changed, weights, factors[i].tolist(), 0 if rgb or i == 0 else 128)
        # The library's choice of a version is global, and only this one writes progressive files.
        with _one_at_a_time, jpeglib.version(_PROGRESSIVE if jpeg.progressive_mode else _PLAIN):
            jpeg.write_dct(str(after), flags=["+OPTIMIZE_CODING"])
        return _assembled(_named(after.read_bytes()), metadata)


def _renew(
    plane: NDArray[np.int16],  # (block rows, block columns, 8, 8)
    table: NDArray[np.float64],
    pixels: Pixels,
    changed: Mask,
    weights: NDArray[np.float64] | None,  # of the channels in this component
    factor: list[int],  # pixels in a sample, downwards and across
    centre: int,  # what is added to the weighted sum
) -> None:
    """Coefficients of the blocks with changed pixels, in place; samples without a changed pixel stay as they were."""
    down, across = 8 * factor[0], 8 * factor[1]
    rows, columns = plane.shape[:2]
    height, width = changed.shape
    padded = np.zeros((rows * down, columns * across), bool)
    padded[:height, :width] = changed[: rows * down, : columns * across]
    touched = np.argwhere(padded.reshape(rows, down, columns, across).any(axis=(1, 3)))
    for begin in range(0, len(touched), 4096):
        row, column = touched[begin : begin + 4096].T
        # (blocks, down, across): every pixel of these blocks; those beyond the border repeat it and count as unchanged.
        y = (row[:, None] * down + np.arange(down))[:, :, None]
        x = (column[:, None] * across + np.arange(across))[:, None, :]
        seen = pixels[np.minimum(y, height - 1), np.minimum(x, width - 1)].astype(float)
        values = (seen if weights is None else seen @ weights) + centre - 128
        cells = (len(row), 8, factor[0], 8, factor[1])
        means = values.reshape(cells).mean(axis=(2, 4))
        new = padded[y, x].reshape(cells).any(axis=(2, 4))
        old = idctn(plane[row, column] * table, axes=(1, 2), norm="ortho")
        fresh = dctn(np.where(new, means, old), axes=(1, 2), norm="ortho")
        plane[row, column] = np.rint(fresh / table).astype(np.int16)


def _named(stream: bytes) -> bytes:
    """A stream whose components are called 1, 2 and 3, as decoders expect, and not 0, 1 and 2."""
    data = bytearray(stream)
    for frame in [begin for marker, begin, _ in segments(stream) if marker in _FRAMES]:
        for place in range(frame + 10, frame + 10 + 3 * stream[frame + 9], 3):
            data[place] += 1
    for scan in re.finditer(rb"\xff\xda\x00.(.)", stream, re.DOTALL):  # neither codes nor tables hold these bytes
        for place in range(scan.end(), scan.end() + 2 * scan[1][0], 2):
            data[place] += 1
    return bytes(data)


def segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Markers of the segments before the first scan, and where these begin and end."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != _SCAN:
        if data[at + 1] == 0xFF:  # a filling byte
            at += 1
            continue
        end = at + 2 + struct.unpack_from(">H", data, at + 2)[0]
        yield data[at + 1], at, end
        at = end


def _assembled(stream: bytes, metadata: Metadata) -> bytes:
    """A stream with the segments that say what the metadata say, and with the other ones of the file that they came from."""
    source, at = metadata.jpeg or b"", 2
    others = [(marker, source[begin:end]) for marker, begin, end in segments(source) if _is_told(marker)]
    parts = [stream[:2], *(whole for marker, whole in others if marker == _APP0)]
    exif, _ = turned_exif(metadata.exif, metadata.orientation)
    if exif is not None:
        parts.append(_segment(_APP1, EXIF_PREFIX + exif))
    if metadata.xmp is not None:
        parts.append(_segment(_APP1, _XMP + metadata.xmp))
    if metadata.icc is not None:
        step = _SEGMENT - len(_ICC) - 2
        pieces = [metadata.icc[first : first + step] for first in range(0, len(metadata.icc), step)]
        parts += [_segment(_APP2, _ICC + bytes((i, len(pieces))) + one) for i, one in enumerate(pieces, 1)]
    # What the metadata do not speak of, but for an index of pictures that follow the first.
    spoken = (EXIF_PREFIX, _XMP, _ICC, b"MPF\0")
    parts += [whole for marker, whole in others if marker != _APP0 and not whole[4:].startswith(spoken)]
    for marker, begin, at in segments(stream):
        if not _is_told(marker):
            parts.append(stream[begin:at])
    return b"".join((*parts, stream[at:]))


def _is_told(marker: int) -> bool:
    """True for the segments of applications and comments, which say something about the picture."""
    return _APP0 <= marker <= 0xEF or marker == _COMMENT


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content
