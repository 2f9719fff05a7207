"""Contents of a photograph's file: pixels, transparency and metadata, as values that readers make and writers take."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.reprs import shown
from pointillist.validation import check_arguments

_KINDS = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class JpegOrigin:
    """The JPEG file that a photograph came from, so that its untouched blocks can be written again as they are.

    Attributes
    ----------
    data : bytes
        The whole file.
    orientation : int
        EXIF code, 1 to 8, of how its pixels are turned; those of the photograph are upright.
    """

    data: bytes = field(repr=False)
    orientation: int = 1


@dataclass(frozen=True)
class TiffOrigin:
    """Layout in which a TIFF file stored a photograph.

    Attributes
    ----------
    compression, predictor : int
        The values of these tags.
    extrasample : int or None
        What the alpha channel is: 1 premultiplied, 2 not, 0 unknown; None without one.
    tags : tuple of (code, type, count, value)
        Descriptive tags, as `tifffile.imwrite` takes them.
    """

    compression: int = 1
    predictor: int = 1
    extrasample: int | None = None
    tags: tuple[tuple[int, int, int, Any], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Metadata:
    """Facts that a file tells about a photograph beside its pixels.

    Attributes
    ----------
    format : str
        "JPEG", "PNG", "TIFF", "WEBP", ... as Pillow names them, "NPY", "RAW" or "HEIF"; empty if it came from no file.
    exif : bytes or None
        A TIFF structure, without the marker that JPEG puts before it; its orientation is 1.
    icc : bytes or None
        Colour profile of the pixels.
    dpi : tuple of two floats or None
        Pixels per inch, horizontally and vertically.
    xmp : bytes or None
    chunks : tuple of (name, content)
        Those of a PNG file about colour and with text.
    jpeg : JpegOrigin or None
    tiff : TiffOrigin or None
    """

    format: str = ""
    exif: bytes | None = field(default=None, repr=False)
    icc: bytes | None = field(default=None, repr=False)
    dpi: tuple[float, float] | None = None
    xmp: bytes | None = field(default=None, repr=False)
    chunks: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    jpeg: JpegOrigin | None = field(default=None, repr=False)
    tiff: TiffOrigin | None = field(default=None, repr=False)


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
        if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3) or pixels.size == 0:
            raise ValueError(f"pixels must be (height, width) or (height, width, 3), got shape {pixels.shape}")
        if alpha is not None:
            _check_array(alpha, "alpha")
        if alpha is not None and (alpha.shape != pixels.shape[:2] or alpha.dtype != pixels.dtype):
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
