"""Filters side by side as pixels, and pictures of signals: a slice of a volume, a channel of several, its contrast.

Each filter has its own scale, symmetric around zero: mid-grey is zero, and no filter outshines another.
"""

from __future__ import annotations

import base64
import io
import os
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from pointillist.plot.figures import FILE_COLOURS, render, waveform_figure
from pointillist.plot.page import Picture
from pointillist.storage import atomic_path
from pointillist.validation import check_arguments


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
        show all channels: as lines over each other where there are few, and as a heat map where there are many.
    columns : int, optional
        Filters in a row; by default as many as make the picture nearly square.
    scale : int
        Pixels for each sample.

    Returns
    -------
    uint8 array (H, W), or (H, W, 3) for colour and line plots
    """
    check_arguments(columns=columns, scale=scale)
    bank = as_bank(filters, channels)
    if bank.ndim == 3:
        return render(waveform_figure(bank, FILE_COLOURS, columns, least=4.2))
    pixels = see_through(bank, columns, scale)
    solid = np.where(pixels[..., -1:] == 0, np.uint8(255), pixels[..., :-1])
    return solid if solid.shape[-1] == 3 else solid[..., 0]


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
    if scale is None:
        scale = ceil(600 / min(mosaic(filters, channels=channels, columns=columns).shape[:2]))
    save_image(mosaic(filters, channels=channels, columns=columns, scale=scale), path)


def save_image(pixels: NDArray[np.uint8], path: str | os.PathLike[str]) -> None:
    """Write pixels (H, W) or (H, W, 3) in the format that the file name asks for, completely or not at all."""
    suffix = Path(path).suffix.lower()
    if Image.registered_extensions().get(suffix) not in Image.SAVE:
        raise ValueError(f"cannot write {path}: {suffix or 'no suffix'} is no image format; end it in .png")
    with atomic_path(path) as temporary:
        Image.fromarray(pixels).save(temporary)


def see_through(bank: NDArray, columns: int | None = None, scale: int = 1) -> NDArray[np.uint8]:
    """Pixels of filters (n_filters, channels, *size) of two or three dimensions, with nothing between them.

    Returns
    -------
    uint8 array (H, W, 2), or (H, W, 4) for colour
        The last channel is opaque at the filters and transparent between them.
    """
    tiles = np.stack([_tile(one) for one in bank]).repeat(scale, axis=1).repeat(scale, axis=2)
    gap = max(1, round(scale / 3))
    number, height, width, _ = tiles.shape
    columns = min(columns or max(1, round(sqrt(number * height / width))), number)
    room = [(0, -number % columns), (gap, 0), (gap, 0), (0, 0)]
    padded = np.pad(tiles, room, constant_values=np.nan)  # NaN is where nothing is shown
    rows = padded.reshape(-1, columns, *padded.shape[1:]).swapaxes(1, 2)
    sheet = rows.reshape(rows.shape[0] * rows.shape[1], -1, rows.shape[4])
    sheet = np.pad(sheet, [(0, gap), (0, gap), (0, 0)], constant_values=np.nan)
    shades = np.concatenate([127.5 + 127.5 * sheet, np.full((*sheet.shape[:2], 1), 255.0)], axis=2)
    return np.where(np.isfinite(sheet[..., :1]), np.round(np.nan_to_num(shades)), 0).astype(np.uint8)


def as_bank(filters: ArrayLike, channels: bool, name: str = "filters") -> NDArray:
    """Filters as (n_filters, channels, *size) in float64; errors call them by `name`."""
    array = np.asarray(filters, np.float64)
    bank = array if channels or not array.ndim else array[:, None]
    if not 3 <= bank.ndim <= 5 or bank.size == 0:
        axes = "(n_filters, channels, *size)" if channels else "(n_filters, *size)"
        raise ValueError(f"{name} must have shape {axes} with one to three dimensions, got {np.shape(filters)}")
    if not np.all(np.isfinite(bank)):
        raise ValueError(f"{name} must not hold NaN or infinity")
    return bank


def _tile(one: NDArray) -> NDArray:  # (channels, *size) -> (h, w, 1 or 3)
    """A filter between -1 and 1; of a volume the three slices through its middle side by side, NaN between them."""
    if one.ndim == 4:
        cuts = [one.take(one.shape[axis] // 2, axis=axis) for axis in (1, 2, 3)]
        height = max(cut.shape[1] for cut in cuts)
        room = [[(0, 0), (0, height - cut.shape[1]), (0, 1)] for cut in cuts]
        padded = [np.pad(cut, around, constant_values=np.nan) for cut, around in zip(cuts, room, strict=True)]
        one = np.concatenate(padded, axis=2)[..., :-1]
    colours = one if len(one) == 3 else one.mean(axis=0, keepdims=True)
    return np.moveaxis(colours / (np.nanmax(np.abs(colours)) or 1.0), 0, -1)


def picture(pixels: NDArray[np.uint8], alt: str, *, caption: str = "", crisp: bool = False, title: str = "") -> Picture:
    """A picture of uint8 pixels: (H, W) grey, or (H, W, 2 | 3 | 4) grey with alpha, colour, colour with alpha."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(source, pixels.shape[1], pixels.shape[0], alt, caption, crisp, title)


def image_picture(
    image: NDArray, alt: str, *, limits: tuple[float, float], caption: str = "", title: str = ""
) -> Picture:
    """A picture of an (H, W) or colour (3, H, W) array, black and white at `limits`."""
    pixels = np.round(255 * between(image, *limits)).astype(np.uint8)
    return picture(pixels, alt, caption=caption, title=title)


def between(image: NDArray, low: float, high: float) -> NDArray:
    """Samples of (H, W), or of (3, H, W) as (H, W, 3), with `low` and what is below at 0 and `high` at 1."""
    unit = np.clip((image - low) / max(high - low, 1e-12), 0, 1)
    return unit if image.ndim == 2 else np.moveaxis(unit, 0, -1)


def contrast_limits(image: NDArray) -> tuple[float, float]:
    """Values of black and white with which a few extreme samples do not make an image flat."""
    low, high = np.percentile(image, [0.5, 99.5])
    return float(low), float(high)


def mosaic_picture(filters: NDArray, *, channels: bool = False, caption: str = "") -> Picture:
    """Filters of two or three dimensions side by side on whatever the page's colour is."""
    size = "×".join(str(side) for side in filters.shape[1 + channels :])
    alt = f"{len(filters)} filters of {size} side by side, each on its own grey scale"
    return picture(see_through(as_bank(filters, channels)), alt, caption=caption, crisp=True)


def cut_of(signal: NDArray, axes: int, depth: int | None = None) -> tuple[tuple[int | slice, ...], str]:
    """Part of a signal that is shown as a picture: the middle, unless `depth` says otherwise.

    Parameters
    ----------
    signal : array ([channels,] *space)
    axes : {1, 2, 3}
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
    if axes > 3 or signal.ndim not in (axes, axes + 1):
        raise ValueError(
            f"signal must have {axes} axes, 3 at most, and perhaps channels first, got shape {signal.shape}"
        )
    if depth is not None and axes != 3:
        raise ValueError("depth is for volumes: leave it out")
    words: list[str] = []
    place: tuple[int | slice, ...] = () if signal.ndim == axes else (slice(None),)
    if place and len(signal) != 3:
        place = (len(signal) // 2,)
        words += [f"channel {place[0]} of 0 to {len(signal) - 1}"] * (len(signal) > 1)
    if axes == 3:
        last = signal.shape[-3] - 1
        if depth is not None and depth > last:
            raise ValueError(f"depth must be the number of a slice, from 0 to {last}, got {depth}")
        depth = (last + 1) // 2 if depth is None else int(depth)
        place, words = (*place, depth), [*words, f"slice {depth} of 0 to {last}"]
    return place, ", ".join(words)
