"""Opening of image files: every complaint names the file, and one limit says how many pixels are decoded."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from pointillist.errors import UnreadableFileError
from pointillist.storage import check_regular

_LARGEST_PIXEL = 8
"""Bytes of a pixel with four channels of 16 bits."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """An image file, open; whatever goes wrong while it is read becomes an `UnreadableFileError` with its name."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: use load_images to read what is in it")
    check_regular(path, "image file")
    with path.open("rb") as stream:
        try:
            yield stream
        except (MemoryError, UnreadableFileError):
            raise
        # Decoders meet a damaged file with exceptions of many kinds (struct.error, SyntaxError, IndexError, ...).
        except Exception as error:
            raise UnreadableFileError(f"cannot read {path} as an image: {_reason(error)}") from error


def check_pixels(height: int, width: int, channels: int = 1) -> None:
    """Refuse an image with more pixels than Pillow decodes; for files that Pillow does not open itself.

    From the fifth on, channels count as further pixels.
    """
    if Image.MAX_IMAGE_PIXELS and height * width * max(channels, 4) > 8 * Image.MAX_IMAGE_PIXELS:
        raise Image.DecompressionBombError


def check_bytes(stream: BinaryIO) -> None:
    """Refuse a file that is larger than what `check_pixels` allows would be without compression, with 16 bits and alpha."""
    size = os.fstat(stream.fileno()).st_size
    if Image.MAX_IMAGE_PIXELS and size > 2 * Image.MAX_IMAGE_PIXELS * _LARGEST_PIXEL:
        raise ValueError(f"it has {size:,} bytes, more than an image with as many pixels as are decoded")


def _reason(error: Exception) -> str:
    if isinstance(error, Image.UnidentifiedImageError):
        return "its content is in no known image format"
    if isinstance(error, Image.DecompressionBombError):
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0) / 1e6
        return (
            f"it has too many pixels, the limit is {limit:.3g} megapixels; "
            "crop or shrink it, or set PIL.Image.MAX_IMAGE_PIXELS to half of what you allow"
        )
    return " ".join(str(error).split()) or type(error).__name__
