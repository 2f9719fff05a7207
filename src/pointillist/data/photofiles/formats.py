"""Formats of photographs: names of files that are read and written, and what each is able to hold."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pointillist.errors import UnreadableFileError
from pointillist.storage import check_regular

IMAGE_SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp", ".pbm", ".pgm", ".ppm", ".pnm")
)
"""Names of files that a folder of images is searched for."""
_RAW = "3fr arw cr2 cr3 crw dng erf iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl sr2 srf srw x3f"
RAW_SUFFIXES = frozenset(f".{maker}" for maker in _RAW.split(" "))
_JPEG_SUFFIXES = (".jpg", ".jpeg")
HEIF_SUFFIXES = frozenset((".heic", ".heif", ".hif", ".avif"))
READABLE_SUFFIXES = IMAGE_SUFFIXES | RAW_SUFFIXES | HEIF_SUFFIXES | {".npy"}
"""Names of files that a folder of photographs is searched for."""


@dataclass(frozen=True)
class Format:
    """A format that is written: its name, what it holds beside pixels, and the types of samples that it can store."""

    name: str
    holds: frozenset[str]
    kinds: tuple[str, ...] = ("uint8",)


_PNG = Format("PNG", frozenset(("exif", "icc", "dpi", "xmp", "chunks", "alpha")), ("uint8", "uint16"))
_JPEG = Format("JPEG", frozenset(("exif", "icc", "dpi", "xmp")))
_TIFF = Format("TIFF", frozenset(("exif", "icc", "dpi", "xmp", "alpha")), ("uint8", "uint16", "float32", "float64"))
_NPY = Format("NPY", frozenset(("alpha",)), ("uint8", "uint16", "float32", "float64"))
WRITTEN = {
    ".png": _PNG,
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".tif": _TIFF,
    ".tiff": _TIFF,
    ".webp": Format("WEBP", frozenset(("exif", "icc", "xmp", "alpha"))),
    ".bmp": Format("BMP", frozenset(("dpi",))),
    ".npy": _NPY,
}
"""Formats by the ends of file names; all but JPEG keep every pixel."""


def check_format(path: str | os.PathLike[str], kind: np.dtype | None = None) -> Format:
    """The format that a name asks for; raises if there is none that can be written, or not with samples of this type."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITTEN:
        choice = f"{', '.join(list(WRITTEN)[:-1])} or .npy"
        raise ValueError(
            f"cannot write {path}: {suffix or 'no suffix'} is no format for photographs; end it in {choice}"
        )
    form = WRITTEN[suffix]
    if kind is not None and kind.name not in form.kinds:
        better = ".tif or .npy" if kind.kind == "f" else ".png, .tif or .npy"
        raise ValueError(f"cannot write {path}: {form.name} cannot hold {kind.name} samples; end it in {better}")
    return form


def answer_suffix(path: str | os.PathLike[str]) -> str:
    """Suffix for the answer to a file: the file's own where that keeps the pixels or is JPEG.

    Camera raw and HEIC become TIFF, everything else that cannot be written PNG, and so does what is called JPEG but is not.
    """
    path = Path(path)
    lower = path.suffix.lower()
    if lower in (*_JPEG_SUFFIXES, ".jpe", ".jfif"):
        if not _is_jpeg(path):
            return ".png"
        return path.suffix if lower in _JPEG_SUFFIXES else ".jpg"
    if lower in WRITTEN:
        return path.suffix
    return ".tif" if lower in RAW_SUFFIXES | HEIF_SUFFIXES else ".png"


def _is_jpeg(path: Path) -> bool:
    """True if a file begins as JPEG does; one that cannot be opened is left to its reader."""
    try:
        check_regular(path)
        with path.open("rb") as stream:
            return stream.read(2) == b"\xff\xd8"
    except (OSError, UnreadableFileError):
        return True
