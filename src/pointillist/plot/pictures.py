"""Pictures of signals: a slice of a volume or a channel of several, its contrast, and pixels as PNG inside a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from pointillist.plot.blocks import Picture
from pointillist.plot.filters import mosaic, see_through
from pointillist.validation import check_arguments


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
    """Values of black and white with which a few extreme samples do not make an image flat."""
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


@dataclass(frozen=True)
class Cut:
    """Part of a signal that is shown as a picture.

    Attributes
    ----------
    axes : int
        Axes of the signal but for channels: 2 for pictures, 3 for volumes.
    channel : int or None
        The channel that is shown; None where there are none, or where three are shown as colour.
    depth : int or None
        The slice that is shown, None for pictures.
    words : str
        What is shown, where it is not everything: ``slice 4 of 0 to 9``.
    """

    axes: int
    channel: int | None
    depth: int | None
    words: str

    def of(self, signal: NDArray) -> NDArray:
        """The picture, (H, W), or (3, H, W) in colour, of a signal ([channels,] [depth,] H, W)."""
        if self.depth is not None:
            signal = signal[..., self.depth, :, :]
        return signal if self.channel is None else signal[self.channel]


def cut_of(signal: NDArray, axes: int, depth: int | None = None) -> Cut:
    """Choose what is shown of a signal that has so many axes beside channels: the middle, unless `depth` says otherwise.

    Parameters
    ----------
    signal : array ([channels,] *space)
    axes : {2, 3}
    depth : int, optional
        The slice of a volume.
    """
    check_arguments(depth=depth)
    if axes not in (2, 3) or signal.ndim not in (axes, axes + 1):
        raise ValueError(f"signal must be a picture or a volume, perhaps with channels first, got shape {signal.shape}")
    if depth is not None and axes != 3:
        raise ValueError("depth is for volumes, and signal is a picture: leave it out")
    words, channel = [], None
    if signal.ndim > axes and len(signal) != 3:
        channel = len(signal) // 2
        words += [f"channel {channel} of 0 to {len(signal) - 1}"] if len(signal) > 1 else []
    if axes == 3:
        last = signal.shape[-3] - 1
        if depth is not None and depth > last:
            raise ValueError(f"depth must be the number of a slice, from 0 to {last}, got {depth}")
        depth = signal.shape[-3] // 2 if depth is None else int(depth)
        words.append(f"slice {depth} of 0 to {last}")
    return Cut(axes, channel, depth, ", ".join(words))


def as_pixels(picture: NDArray, low: float, high: float) -> NDArray:
    """A picture as matplotlib takes it: (H, W) as it is, (3, H, W) as (H, W, 3) with `low` at 0 and `high` at 1."""
    if picture.ndim == 2:
        return picture
    return np.moveaxis(np.clip((picture - low) / max(high - low, 1e-12), 0, 1), 0, -1)
