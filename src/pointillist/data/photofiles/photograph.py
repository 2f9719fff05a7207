"""Contents of a photograph's file, as values that readers make and writers take, and the formats that hold them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.reprs import shown
from pointillist.validation import check_arguments

_KINDS = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class TiffOrigin:
    """Layout in which a TIFF file stored a photograph.

    Attributes
    ----------
    compression : int
        The value of this tag.
    extrasample : int or None
        What the alpha channel is: 1 premultiplied, 2 not, 0 unknown; None without one.
    tags : tuple of (code, type, count, value)
        Descriptive tags, as `tifffile.imwrite` takes them.
    """

    compression: int = 8
    extrasample: int | None = None
    tags: tuple[tuple[int, int, int, Any], ...] = ()


@dataclass(frozen=True)
class Metadata:
    """Facts that a file tells about a photograph beside its pixels.

    Attributes
    ----------
    format : str
        "JPEG", "PNG", "TIFF", "WEBP", ... as Pillow names them, "NPY", "RAW" or "HEIF"; empty if it came from no file.
    exif : bytes or None
        A TIFF structure, without the marker that JPEG puts before it; its orientation is 1, and it leads to no thumbnail.
    icc : bytes or None
        Colour profile of the pixels.
    dpi : tuple of two floats or None
        Pixels per inch, horizontally and vertically.
    xmp : bytes or None
    chunks : tuple of (name, content)
        Those of a PNG file about colour and with text.
    jpeg : bytes or None
        The whole JPEG file that the photograph came from, so that its untouched blocks can be written again as they are.
    orientation : int
        EXIF code, 1 to 8, of how the pixels of that file are turned.
    tiff : TiffOrigin
    """

    format: str = ""
    exif: bytes | None = field(default=None, repr=False)
    icc: bytes | None = field(default=None, repr=False)
    dpi: tuple[float, float] | None = None
    xmp: bytes | None = field(default=None, repr=False)
    chunks: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    jpeg: bytes | None = field(default=None, repr=False)
    orientation: int = 1
    tiff: TiffOrigin = field(default=TiffOrigin(), repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Photograph:
    """A photograph with what its file says about it.

    Attributes
    ----------
    pixels : (height, width) or (height, width, 3) array
        uint8, uint16, float32 or float64; upright, whatever orientation the file had.
    alpha : (height, width) array of the same type, or None
        Opacity: zero is transparent, `peak` opaque.
    metadata : Metadata
    notes : tuple of str
        What reading could not keep, for instance "only the first of its 3 frames is read".

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> photo = pt.Photograph(np.zeros((30, 40, 3), np.uint8))
    >>> photo.shape, photo.peak
    ((30, 40), 255.0)
    >>> photo.with_pixels(photo.pixels[:10]).shape
    (10, 40)
    """

    pixels: NDArray[Any]
    alpha: NDArray[Any] | None = None
    metadata: Metadata = Metadata()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        pixels, alpha = self.pixels, self.alpha
        _check_array(pixels, "pixels")
        if not isinstance(self.metadata, Metadata):
            raise TypeError(f"metadata must be Metadata, as read_photograph gives it, got {shown(self.metadata)}")
        if not isinstance(self.notes, tuple):
            raise TypeError(f"notes must be a tuple of texts, got {shown(self.notes)}")
        if pixels.dtype not in _KINDS:
            raise ValueError(f"pixels must be uint8, uint16, float32 or float64, got {pixels.dtype}")
        if pixels.ndim < 2 or pixels.shape[2:] not in ((), (3,)) or pixels.size == 0:
            raise ValueError(f"pixels must be (height, width) or (height, width, 3), got shape {pixels.shape}")
        if alpha is None:
            return
        _check_array(alpha, "alpha")
        if alpha.shape != pixels.shape[:2] or alpha.dtype != pixels.dtype:
            raise ValueError(
                f"alpha must be {pixels.dtype} of shape {pixels.shape[:2]} as the pixels are, "
                f"got {alpha.dtype} of shape {alpha.shape}"
            )

    def __repr__(self) -> str:
        height, width = self.shape
        colours = "colour" if self.pixels.ndim == 3 else "grey"
        form = f", {self.metadata.format}" if self.metadata.format else ""
        return f"Photograph({height}×{width} {colours} {self.pixels.dtype}{', alpha' * (self.alpha is not None)}{form})"

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]

    @property
    def peak(self) -> float:
        """The largest value of the type; floating point is taken to end at 1."""
        return float(np.iinfo(self.pixels.dtype).max) if self.pixels.dtype.kind == "u" else 1.0

    def with_pixels(self, pixels: NDArray[Any], alpha: NDArray[Any] | None = None) -> Self:
        """Return this photograph with other `pixels`, and with its own alpha unless `alpha` is given.

        Its own alpha is left out where it does not fit pixels of another size. Grey pixels (height, width) of a colour
        photograph are repeated for its channels, so that the file keeps its layout.
        """
        _check_array(pixels, "pixels")
        if pixels.ndim == 2 and self.pixels.ndim == 3:
            pixels = np.repeat(pixels[..., None], 3, axis=-1)
        if alpha is None and self.alpha is not None and self.alpha.shape == pixels.shape[:2]:
            alpha = self.alpha.astype(pixels.dtype, copy=False)
        return replace(self, pixels=pixels, alpha=alpha)

    def cropped(self, top: int, left: int, height: int, width: int) -> Self:
        """Cut out `height` rows and `width` columns that begin `top` rows and `left` columns from the upper left corner."""
        check_arguments(top=top, left=left, height=height, width=width)
        if top + height > self.shape[0] or left + width > self.shape[1]:
            raise ValueError(
                f"top={top}, left={left}, height={height} and width={width} reach beyond the photograph, which is "
                f"{self.shape[0]}×{self.shape[1]}"
            )
        box = slice(top, top + height), slice(left, left + width)
        alpha = None if self.alpha is None else np.ascontiguousarray(self.alpha[box])
        return replace(self, pixels=np.ascontiguousarray(self.pixels[box]), alpha=alpha)


def _check_array(given: Any, name: str) -> None:
    """Refuse what is no array, and arrays whose mask says that some of their samples are none."""
    if not isinstance(given, np.ndarray):
        raise TypeError(f"{name} must be an array, got {shown(given)}")
    if given.dtype in _KINDS and np.ma.is_masked(given):
        raise ValueError(f"{name} has masked samples, which a photograph cannot hold: fill them first")


IMAGE_SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp", ".pbm", ".pgm", ".ppm", ".pnm")
)
"""Names of files that a folder of images is searched for."""
_RAW = "3fr arw cr2 cr3 crw dng erf iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl sr2 srf srw x3f"
RAW_SUFFIXES = frozenset(f".{maker}" for maker in _RAW.split(" "))
HEIF_SUFFIXES = frozenset((".heic", ".heif", ".hif", ".avif"))
READABLE_SUFFIXES = IMAGE_SUFFIXES | RAW_SUFFIXES | HEIF_SUFFIXES | {".npy"}
"""Names of files that a folder of photographs is searched for."""


@dataclass(frozen=True)
class Format:
    """A format that is written: its name, what it holds beside pixels, and the types of samples that it can store."""

    name: str
    holds: frozenset[str]
    kinds: tuple[str, ...] = ("uint8",)


_JPEG = Format("JPEG", frozenset(("exif", "icc", "dpi", "xmp")))
_TIFF = Format("TIFF", frozenset(("exif", "icc", "dpi", "xmp", "alpha")), ("uint8", "uint16", "float32", "float64"))
WRITTEN = {
    ".png": Format("PNG", _TIFF.holds, ("uint8", "uint16")),
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".tif": _TIFF,
    ".tiff": _TIFF,
    ".webp": Format("WEBP", frozenset(("exif", "icc", "xmp", "alpha"))),
    ".bmp": Format("BMP", frozenset(("dpi",))),
    ".npy": Format("NPY", frozenset(("alpha",)), _TIFF.kinds),
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
    if lower in (".jpg", ".jpeg", ".jpe", ".jfif"):
        if path.is_file():
            with path.open("rb") as stream:
                if stream.read(2) != b"\xff\xd8":
                    return ".png"
        return path.suffix if lower in WRITTEN else ".jpg"
    if lower in WRITTEN:
        return path.suffix
    return ".tif" if lower in RAW_SUFFIXES | HEIF_SUFFIXES else ".png"
