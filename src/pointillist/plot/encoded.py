"""Pixels as pictures inside the page: PNG in a data URI, no files beside the report."""

import base64
import io

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from pointillist.plot.blocks import Picture
from pointillist.plot.mosaics import mosaic, see_through


def picture(pixels: NDArray[np.uint8], alt: str, *, caption: str = "", crisp: bool = False, title: str = "") -> Picture:
    """A picture of uint8 pixels: (H, W) grey, or (H, W, 2 | 3 | 4) grey with alpha, colour, colour with alpha."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(source, pixels.shape[1], pixels.shape[0], alt, caption, crisp, title)


def image_picture(
    image: ArrayLike, alt: str, *, limits: tuple[float, float], caption: str = "", title: str = ""
) -> Picture:
    """A picture of an (H, W) or colour (3, H, W) array, black and white at `limits`."""
    array = np.asarray(image, np.float64)
    if array.ndim != 2 and not (array.ndim == 3 and len(array) == 3):
        raise ValueError(f"image must have shape (H, W) or (3, H, W), got {array.shape}")
    low, high = limits
    unit = np.clip((array - low) / max(high - low, 1e-12), 0, 1)
    pixels = np.round(255 * unit).astype(np.uint8)
    return picture(pixels if array.ndim == 2 else np.moveaxis(pixels, 0, -1), alt, caption=caption, title=title)


def contrast_limits(image: ArrayLike) -> tuple[float, float]:
    """Where black and white go so that a few extreme samples do not make an image flat."""
    low, high = np.percentile(np.asarray(image, np.float64), [0.5, 99.5])
    return float(low), float(high)


def mosaic_picture(filters: ArrayLike, *, channels: bool = False, caption: str = "") -> Picture:
    """The filters side by side on whatever the page's colour is."""
    array = np.asarray(filters)
    size = "×".join(str(side) for side in array.shape[1 + channels :])
    alt = f"{len(array)} filters of {size} side by side, each on its own grey scale"
    if array.ndim - channels == 2:
        return picture(mosaic(array, channels=channels), alt, caption=caption)
    return picture(see_through(array, channels=channels), alt, caption=caption, crisp=True)
