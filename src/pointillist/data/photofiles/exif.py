"""EXIF as bytes, changed in place where it must be: maker's notes and all else stay as the camera wrote them."""

import logging
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from PIL import Image

PREFIX = b"Exif\0\0"
MAGIC = (b"II*\0", b"MM\0*")
ORIENTATION = 0x0112
EXIF_IFD, GPS_IFD = 0x8769, 0x8825
TEXT_TAGS = (270, 271, 272, 305, 306, 315, 33432)
"""ImageDescription, Make, Model, Software, DateTime, Artist, Copyright."""
_DAMAGED = (SyntaxError, struct.error, OSError, ValueError, KeyError, TypeError, IndexError)

logger = logging.getLogger(__name__)


def without_prefix(exif: bytes | None) -> bytes | None:
    """The TIFF structure itself, or None if that is not what the bytes are."""
    if not exif:
        return None
    exif = exif.removeprefix(PREFIX)
    return exif if exif[:4] in MAGIC else None


def orientation(exif: bytes | None) -> int:
    """The orientation as a code from 1 to 8; 1 where none is given."""
    for order, at in [] if exif is None else _orientations(exif):
        (code,) = struct.unpack_from(order + "H", exif or b"", at)
        return code if 1 <= code <= 8 else 1
    return 1


def with_orientation(exif: bytes, code: int) -> bytes:
    """Return EXIF bytes with another orientation, where they have one."""
    changed = bytearray(exif)
    for order, at in _orientations(exif):
        struct.pack_into(order + "H", changed, at, code)
    return bytes(changed)


def _orientations(exif: bytes) -> list[tuple[str, int]]:
    """Byte order and place of the code of orientation."""
    found = _entries(exif)
    return [(order, at + 8) for order, at in found if struct.unpack_from(order + "HH", exif, at) == (ORIENTATION, 3)]


def without_thumbnail(exif: bytes) -> bytes:
    """Return EXIF bytes whose link to the thumbnail, which would show the picture as it was before, is cut."""
    changed = bytearray(exif)
    for order, at in _entries(exif, end=True):
        struct.pack_into(order + "I", changed, at, 0)
    return bytes(changed)


def _entries(exif: bytes, *, end: bool = False) -> Iterator[tuple[str, int]]:
    """Yield byte order and place of every entry of the first directory, or only of the link at its end."""
    order = "<" if exif[:2] == b"II" else ">"
    try:
        (first,) = struct.unpack_from(order + "I", exif, 4)
        (count,) = struct.unpack_from(order + "H", exif, first)
    except struct.error:
        return  # cut short: there is nothing to be found in it
    last = first + 2 + 12 * count
    if last + 4 > len(exif):
        return
    yield from ((order, last),) if end else ((order, at) for at in range(first + 2, last, 12))


def from_tiff_structure(stream: BinaryIO) -> bytes | None:
    """EXIF of a file that is itself a TIFF structure (TIFF and most camera raw files): texts, EXIF and GPS directories."""
    stream.seek(0)
    first, inner = directories(stream)
    kept = Image.Exif()
    for code in TEXT_TAGS:
        if code in first:
            kept[code] = first[code]
    for code, directory in inner.items():
        kept.get_ifd(code).update(directory)
    return without_prefix(kept.tobytes()) if len(kept) > 0 or inner else None


def directories(stream: BinaryIO) -> tuple[Mapping[int, Any], dict[int, Mapping[int, Any]]]:
    """The first directory of EXIF, and its EXIF and GPS directories by their tags."""
    exif = Image.Exif()
    try:
        exif.load_from_fp(stream)
        inner = {code: dict(exif.get_ifd(code)) for code in (EXIF_IFD, GPS_IFD)}
        return dict(exif), {code: directory for code, directory in inner.items() if directory}
    except _DAMAGED as error:
        logger.warning("EXIF is damaged and cannot be taken over: %s", error)
        return {}, {}
