"""Decoding of one image file into a float array.

Pillow reads everything but TIFF of more than 8 bits, which tifffile reads at full precision. Lists and
folders of files are handled by the loading module.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageOps

from pointillist.data.orientation import upright
from pointillist.data.samples import to_float, to_grey
from pointillist.errors import UnreadableFileError

logger = logging.getLogger(__name__)

_TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_GREY_MODES = {"1", "L", "LA", "La"}
_EXIF_ORIENTATION = 0x0112
_WIDE_GREY_MODES = {"I", "I;16", "I;16B", "I;16L", "I;16N", "F"}


def load_image(
    path: str | os.PathLike[str], *, grey: bool = True, max_pixels: int | None = None
) -> NDArray[np.float32]:
    """Read an image file.

    PNG, JPEG, TIFF (8 and 16 bits, float) and whatever else Pillow decodes, including 1-bit, palette and CMYK
    images. An alpha channel is dropped, not composited. The EXIF orientation is applied. Of an animation or a
    multi-page file the first frame is read, and the log says so. 16-bit colour is kept in TIFF and reduced to
    8 bits elsewhere.

    Parameters
    ----------
    path : str or path
    grey : bool
        Whether to return 0.2989 R + 0.5870 G + 0.1140 B instead of colour.
    max_pixels : int or None
        Refuse larger images before they are decoded; None leaves it to Pillow's own limit of 179 megapixels.

    Returns
    -------
    float32 array (H, W), or (3, H, W) when ``grey`` is false
        Integer samples are scaled to [0, 1]; those of a float TIFF are kept as they are. A grey file read
        with ``grey=False`` has three equal channels.

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> Image.new("RGB", (40, 30), "white").save("white.png")
    >>> pt.load_image("white.png").shape, pt.load_image("white.png", grey=False).shape
    ((30, 40), (3, 30, 40))

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnreadableFileError
        If the file is empty, truncated, not an image, or so large that it looks like a decompression bomb.
    """
    with opened(path) as stream:
        _check_pixels(stream, max_pixels)
        samples = _decode(stream, Path(path))
    if samples.ndim == 2:
        return samples if grey else np.stack([samples] * 3)
    return to_grey(samples) if grey else np.ascontiguousarray(samples)


def image_size(path: str | os.PathLike[str], *, max_pixels: int | None = None) -> tuple[int, int]:
    """Height and width of an image as `load_image` returns it, from the head of the file alone; raises as that does."""
    with opened(path) as stream:
        _check_pixels(stream, max_pixels)
        return _size(stream)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """An image file; whatever goes wrong in reading it says which file it was."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such image file: {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: use load_images to read what is in it")
    with path.open("rb") as stream:
        try:
            yield stream
        except (MemoryError, UnreadableFileError):
            raise
        # Decoders meet a damaged file with exceptions of many kinds (struct.error, SyntaxError, IndexError,
        # ...).
        except Exception as error:
            raise UnreadableFileError(f"cannot read {path} as an image: {_reason(error)}") from error


def _size(stream: BinaryIO) -> tuple[int, int]:
    _check_not_empty(stream)
    # The image is not closed, because that would close the stream too.
    image = Image.open(stream)
    turned = image.getexif().get(_EXIF_ORIENTATION, 1) >= 5
    stream.seek(0)
    return image.size if turned else (image.height, image.width)


def _check_pixels(stream: BinaryIO, limit: int | None) -> None:
    if limit is None:
        return
    height, width = _size(stream)
    if height * width > limit:
        raise ValueError(f"its {height}×{width} pixels are more than the limit of {limit:,}; crop or shrink it first")


def _check_not_empty(stream: BinaryIO) -> bytes:
    magic = stream.read(4)
    stream.seek(0)
    if not magic:
        raise ValueError("the file is empty")
    return magic


def _reason(error: Exception) -> str:
    if isinstance(error, Image.UnidentifiedImageError):
        return "its content is in no known image format"
    if isinstance(error, Image.DecompressionBombError):
        return "it has too many pixels to be opened safely; crop or shrink it first"
    return " ".join(str(error).split()) or type(error).__name__


def _decode(stream: BinaryIO, path: Path) -> NDArray[np.float32]:  # (H, W) or (3, H, W)
    if _check_not_empty(stream) in _TIFF_MAGIC:
        samples = _decode_deep_tiff(stream, path)
        if samples is not None:
            return samples
        stream.seek(0)
    return _decode_with_pillow(stream, path)


def _decode_with_pillow(stream: BinaryIO, path: Path) -> NDArray[np.float32]:
    with Image.open(stream) as image:
        frames = getattr(image, "n_frames", 1)
        if frames > 1:
            logger.info("%s has %d frames; only the first is read", path, frames)
        file_format = image.format
        image.load()
        picture = ImageOps.exif_transpose(image)
    if picture.mode in _WIDE_GREY_MODES:
        return _wide_grey(picture, file_format)
    if picture.mode in _GREY_MODES:
        return _unit(np.asarray(picture.convert("L")))
    if picture.mode == "RGBa":
        picture = picture.convert("RGBA")
    return _unit(np.moveaxis(np.asarray(picture.convert("RGB")), -1, 0))


def _wide_grey(picture: Image.Image, file_format: str | None) -> NDArray[np.float32]:
    raw = np.asarray(picture)
    if picture.mode == "F":
        return raw.astype(np.float32)
    # Mode I: 16 bits widened to 32 in PNG and PGM; in TIFF they are real 32-bit samples of unknown range.
    if picture.mode == "I" and (file_format == "TIFF" or raw.min() < 0 or raw.max() > 65535):
        raise ValueError("its integer samples have no known range; save it as uint8, uint16 or float")
    return _unit(raw.astype(np.uint16))


def _decode_deep_tiff(stream: BinaryIO, path: Path) -> NDArray[np.float32] | None:
    """Read a TIFF of 16-bit or float samples; None leaves the file to Pillow."""
    with tifffile.TiffFile(stream) as tiff:
        page = tiff.pages.first
        plain = page.photometric in (
            tifffile.PHOTOMETRIC.MINISBLACK,
            tifffile.PHOTOMETRIC.MINISWHITE,
            tifffile.PHOTOMETRIC.RGB,
        )
        deep = page.dtype is not None and page.dtype.kind in "uf" and page.dtype.itemsize > 1
        if not (plain and deep):
            return None
        # Pillow checks this for every other file; the limit and the margin are its own.
        if Image.MAX_IMAGE_PIXELS and page.imagewidth * page.imagelength > 2 * Image.MAX_IMAGE_PIXELS:
            raise Image.DecompressionBombError
        if len(tiff.pages) > 1:
            logger.info("%s has %d pages; only the first is read", path, len(tiff.pages))
        try:
            raw = page.asarray()
        except ValueError as error:
            if "imagecodecs" not in str(error):
                raise
            logger.warning("%s: without the imagecodecs package its colour is read with 8 bits", path)
            return None
        tag = page.tags.get("Orientation")
        return _arrange_tiff(raw, page, 1 if tag is None else int(tag.value))


def _arrange_tiff(raw: NDArray[np.generic], page: tifffile.TiffPage, orientation: int) -> NDArray[np.float32]:
    axes = page.axes
    if axes not in ("YX", "YXS", "SYX"):
        raise ValueError(f"its axes are {axes}, not those of an image; save it as .npy")
    samples = _unit(upright(np.moveaxis(raw, 0, -1) if axes == "SYX" else raw, orientation))
    if page.photometric == tifffile.PHOTOMETRIC.MINISWHITE and raw.dtype.kind == "u":
        samples = 1 - samples
    # One or two samples per pixel are grey (with alpha), three or more are colour (with alpha).
    if samples.ndim == 3:
        samples = np.moveaxis(samples, -1, 0)
        samples = samples[:3] if len(samples) >= 3 else samples[0]
    return np.ascontiguousarray(samples)


def _unit(raw: NDArray[np.generic]) -> NDArray[np.float32]:
    return to_float(raw, "it").astype(np.float32, copy=False)
