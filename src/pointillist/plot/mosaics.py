"""Filters side by side in one picture, whatever their number of dimensions.

Each filter has its own grey scale, symmetric around zero: mid-grey is zero, and no filter outshines another.
"""

import os
from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.plot.charts import FILE_COLOURS
from pointillist.plot.style import new_figure, render, save_image
from pointillist.plot.waveforms import draw_waveforms, waveform_grid, waveform_size

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
        return _waveforms(bank, columns)
    tiles = _grey(np.stack([_tile(one, scale) for one in bank]))
    return _arrange(tiles, columns or near_square(len(tiles), *tiles.shape[1:3]), max(1, round(scale / 3)))


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
    return _arrange(pixels, columns or near_square(len(tiles), *tiles.shape[1:3]), 1, paper=0)


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
    room = [(0, height - cut.shape[1]) for cut in cuts]
    padded = [
        np.pad(cut, [(0, 0), below, (0, 1)], constant_values=np.nan) for cut, below in zip(cuts, room, strict=True)
    ]
    return np.concatenate(padded, axis=2)[..., :-1]


def _arrange(tiles: NDArray[np.uint8], columns: int, gap: int, paper: int = _PAPER) -> NDArray[np.uint8]:
    count, height, width, colours = tiles.shape
    columns = min(columns, count)
    rows = ceil(count / columns)
    page = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, colours), paper, dtype=np.uint8)
    for i, tile in enumerate(tiles):
        top, left = gap + i // columns * (height + gap), gap + i % columns * (width + gap)
        page[top : top + height, left : left + width] = tile
    return page if colours > 1 else page[..., 0]


def _waveforms(filters: NDArray, columns: int | None) -> NDArray[np.uint8]:  # filters: (n_filters, channels, length)
    columns, width, height = waveform_size(len(filters), filters.shape[1], columns)
    larger = max(1.0, 4.2 / min(width, height))
    figure = new_figure(larger * width, larger * height)
    draw_waveforms(figure, waveform_grid(figure, len(filters), columns), filters, FILE_COLOURS)
    return render(figure)
