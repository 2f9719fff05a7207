"""PNG: samples of 8 and 16 bits through libpng, and the chunks about colour, size and text around them.

Pillow reads and writes 16-bit colour with 8 bits only; therefore encoding is imagecodecs' here, and chunks are put into
the file that it makes.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.photofiles.photograph import Metadata

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEPT_CHUNKS = (b"gAMA", b"cHRM", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"tEXt", b"zTXt", b"iTXt")
"""Chunks that are written again as they are: those about colour and those with text."""
_XMP = b"XML:com.adobe.xmp"
_METRES_PER_INCH = 0.0254
# Runs of equal bytes alone are looked for, after the best of all filters: for photographs as small as the usual settings
# make them, in a sixth of the time.
_FAST = {"level": 1, "strategy": 3, "filter": 0xF8}


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of the chunks of a PNG file, up to where it is cut short."""
    at = len(SIGNATURE)
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        yield name, b"" if name == b"IDAT" else data[at + 8 : at + 8 + length]
        at += 12 + length


def decode_deep(data: bytes) -> NDArray[np.uint16]:  # (height, width[, channels])
    """Samples of a PNG file of 16 bits, with an alpha channel where one colour is declared transparent."""
    import imagecodecs  # large, and only for files of 16 bits and for writing

    samples = np.asarray(imagecodecs.png_decode(data))
    key = next((content for name, content in chunks(data) if name == b"tRNS"), None)
    channels = 1 if samples.ndim == 2 else samples.shape[-1]
    if key is not None and len(key) == 2 * channels:
        planes = samples if samples.ndim == 3 else samples[..., None]
        seen = np.any(planes != np.frombuffer(key, ">u2"), axis=-1)
        samples = np.dstack([planes, np.where(seen, np.uint16(65535), np.uint16(0))])
    return samples


def encode(samples: NDArray[Any], metadata: Metadata) -> bytes:
    """A PNG file of samples (height, width[, 2, 3 or 4 channels]) of 8 or 16 bits."""
    import imagecodecs

    plain = imagecodecs.png_encode(np.ascontiguousarray(samples), **_FAST)
    header = len(SIGNATURE) + 12 + 13
    said = [
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in _metadata_chunks(metadata)
    ]
    return b"".join((plain[:header], *said, plain[header:]))


def _metadata_chunks(metadata: Metadata) -> Iterator[tuple[bytes, bytes]]:
    """Chunks that say what the metadata say, in an order that the format allows."""
    yield from (
        (n, c) for n, c in metadata.chunks if n not in (b"iTXt", b"iCCP") and not (metadata.icc and n == b"sRGB")
    )
    if metadata.icc is not None:
        yield b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.icc)
    if metadata.dpi is not None:
        across, down = (round(value / _METRES_PER_INCH) for value in metadata.dpi)
        yield b"pHYs", struct.pack(">IIB", across, down, 1)
    if metadata.exif is not None:
        yield b"eXIf", metadata.exif
    if metadata.xmp is not None:
        yield b"iTXt", _XMP + b"\0\0\0\0\0" + metadata.xmp
    yield from ((n, c) for n, c in metadata.chunks if n == b"iTXt" and not c.startswith(_XMP + b"\0"))
