"""Filters side by side as pixels, and pictures of signals: a slice of a volume, a channel of several, its contrast.

Each filter has its own scale, symmetric around zero: mid-grey is zero, and no filter outshines another.
"""

from __future__ import annotations

import base64
import io
import os
from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from pointillist.plot.blocks import Picture
from pointillist.plot.charts import waveform_figure
from pointillist.plot.style import FILE_COLOURS, render, save_image
from pointillist.validation import check_arguments

_PAPER = 255
_LEAST_SIDE = 600


def mosaic(
    filters: ArrayLike, *, channels: bool = False, columns: int | None = None, scale: int = 1
) -> NDArray[np.uint8]:
    """Draw all filters in rows and columns.

    Parameters
    ----------
    filters : (n_filters, [channels,] *size) array
        Of one, two or three dimensions. Those of one dimension become waveforms, those of three the three slices through
        their middle.
    channels : bool
        Whether the axis after the first holds channels. Three are drawn as colour, other numbers by their mean. Waveforms
        show all channels: as a shape above bars for the channels where filters are such products, as lines over each
        other where there are few, and as a heat map where there are many.
    columns : int, optional
        Filters in a row; by default as many as make the picture nearly square.
    scale : int
        Pixels for each sample.

    Returns
    -------
    uint8 array (H, W), or (H, W, 3) for colour and line plots
    """
    bank = as_bank(filters, channels)
    if scale < 1:
        raise ValueError(f"scale must be at least 1, got {scale}")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    if bank.ndim == 3:
        return render(waveform_figure(bank, FILE_COLOURS, columns, least=4.2))
    tiles = _grey(np.stack([_tile(one, scale) for one in bank]))
    return _arrange(tiles, columns, max(1, round(scale / 3)))


def save_mosaic(
    path: str | os.PathLike[str],
    filters: ArrayLike,
    *,
    channels: bool = False,
    columns: int | None = None,
    scale: int | None = None,
) -> None:
    """Write `mosaic` to an image file, by default enlarged until its shorter side has about 600 pixels.

    Parameters
    ----------
    path : str or path
    filters, channels, columns, scale
        As for `mosaic`.
    """
    picture = mosaic(filters, channels=channels, columns=columns, scale=scale or 1)
    plain = np.ndim(filters) - int(channels) == 2  # line plots have their own size
    if scale is None and not plain:
        # Separators grow less than the filters, so the first guess is low.
        scale = 1 + _LEAST_SIDE // (2 * min(picture.shape[:2]))
        while min(picture.shape[:2]) < _LEAST_SIDE:
            picture = mosaic(filters, channels=channels, columns=columns, scale=scale)
            scale += 1
    save_image(picture, path)


def see_through(filters: ArrayLike, *, channels: bool = False, columns: int | None = None) -> NDArray[np.uint8]:
    """`mosaic` of filters with two or three dimensions, one pixel for each sample, with nothing between them.

    Returns
    -------
    uint8 array (H, W, 2), or (H, W, 4) for colour
        The last channel is opaque at the filters and transparent between them.
    """
    bank = as_bank(filters, channels)
    if bank.ndim == 3:
        raise ValueError("filters of one dimension are line plots and have no gaps: use mosaic")
    tiles = np.stack([_tile(one, 1) for one in bank])
    there = np.isfinite(tiles[..., :1])
    pixels = np.concatenate([_grey(tiles), np.uint8(255) * there], axis=-1) * there
    return _arrange(pixels, columns, 1, paper=0)


def near_square(count: int, height: int, width: int) -> int:
    """Columns for a picture that is nearly square and has few empty places."""

    def badness(columns: int) -> float:
        rows = ceil(count / columns)
        empty = rows * columns / count - 1
        return abs(log(rows * height / (columns * width))) + empty

    return min(range(1, count + 1), key=badness)


def as_bank(filters: ArrayLike, channels: bool, name: str = "filters") -> NDArray:
    """Filters as (n_filters, channels, *size) in float64; errors call them by `name`."""
    array = np.asarray(filters, np.float64)
    bank = array if channels else array[:, None] if array.ndim else array
    if not 3 <= bank.ndim <= 5 or bank.size == 0:
        axes = "(n_filters, channels, *size)" if channels else "(n_filters, *size)"
        raise ValueError(f"{name} must have shape {axes} with one to three dimensions, got {np.shape(filters)}")
    if not np.all(np.isfinite(bank)):
        raise ValueError(f"{name} must not hold NaN or infinity")
    return bank


def _tile(one: NDArray, scale: int) -> NDArray:  # (channels, *size) -> (h, w, 1 or 3)
    """A filter between -1 and 1, NaN where it shows nothing."""
    picture = _slices(one) if one.ndim == 4 else one
    colours = picture if len(picture) == 3 else picture.mean(axis=0, keepdims=True)
    peak = np.nanmax(np.abs(colours))
    return np.moveaxis(colours / peak if peak > 0 else colours, 0, -1).repeat(scale, axis=0).repeat(scale, axis=1)


def _grey(tiles: NDArray) -> NDArray[np.uint8]:
    """Tiles as pixels: mid-grey is zero, and paper where they show nothing."""
    return np.where(np.isfinite(tiles), np.round(127.5 + 127.5 * np.nan_to_num(tiles)), _PAPER).astype(np.uint8)


def _slices(volume: NDArray) -> NDArray:
    """The three slices through the middle of (channels, d, h, w), side by side, with a column of NaN between them."""
    cuts = [volume.take(volume.shape[axis] // 2, axis=axis) for axis in (1, 2, 3)]
    height = max(cut.shape[1] for cut in cuts)
    room = [[(0, 0), (0, height - cut.shape[1]), (0, 1)] for cut in cuts]
    padded = [np.pad(cut, around, constant_values=np.nan) for cut, around in zip(cuts, room, strict=True)]
    return np.concatenate(padded, axis=2)[..., :-1]


def _arrange(tiles: NDArray[np.uint8], columns: int | None, gap: int, paper: int = _PAPER) -> NDArray[np.uint8]:
    count, height, width, colours = tiles.shape
    columns = min(columns or near_square(count, height, width), count)
    rows = ceil(count / columns)
    page = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, colours), paper, dtype=np.uint8)
    for i, tile in enumerate(tiles):
        top, left = gap + i // columns * (height + gap), gap + i % columns * (width + gap)
        page[top : top + height, left : left + width] = tile
    return page if colours > 1 else page[..., 0]


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
    pixels = np.round(255 * between(array, *limits)).astype(np.uint8)
    return picture(pixels, alt, caption=caption, title=title)


def between(image: NDArray, low: float, high: float) -> NDArray:
    """Samples of (H, W), or of (3, H, W) as (H, W, 3), with `low` and what is below at 0 and `high` at 1."""
    unit = np.clip((image - low) / max(high - low, 1e-12), 0, 1)
    return unit if image.ndim == 2 else np.moveaxis(unit, 0, -1)


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


def cut_of(signal: NDArray, axes: int, depth: int | None = None) -> tuple[tuple[int | slice, ...], str]:
    """Part of a signal that is shown as a picture: the middle, unless `depth` says otherwise.

    Parameters
    ----------
    signal : array ([channels,] *space)
    axes : {2, 3}
        Axes of the signal but for channels: 2 for pictures, 3 for volumes.
    depth : int, optional
        The slice of a volume.

    Returns
    -------
    tuple of int or slice
        Index of the picture, (H, W), or (3, H, W) in colour, in the signal; of a volume it ends with the slice.
    str
        What is shown, where it is not everything: ``slice 4 of 0 to 9``.
    """
    check_arguments(depth=depth)
    if axes not in (2, 3) or signal.ndim not in (axes, axes + 1):
        raise ValueError(f"signal must be a picture or a volume, perhaps with channels first, got shape {signal.shape}")
    if depth is not None and axes != 3:
        raise ValueError("depth is for volumes, and signal is a picture: leave it out")
    words: list[str] = []
    place: tuple[int | slice, ...] = () if signal.ndim == axes else (slice(None),)
    if place and len(signal) != 3:
        channel = len(signal) // 2
        place = (channel,)
        words += [f"channel {channel} of 0 to {len(signal) - 1}"] if len(signal) > 1 else []
    if axes == 3:
        last = signal.shape[-3] - 1
        if depth is not None and depth > last:
            raise ValueError(f"depth must be the number of a slice, from 0 to {last}, got {depth}")
        depth = signal.shape[-3] // 2 if depth is None else int(depth)
        words.append(f"slice {depth} of 0 to {last}")
        place = (*place, depth)
    return place, ", ".join(words)
