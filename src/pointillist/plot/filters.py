"""Filters side by side, whatever their number of dimensions: pictures of slices and pixels, and waveforms on Axes.

Each filter has its own scale, symmetric around zero: mid-grey is zero, and no filter outshines another. Colours are names
("c0", "ink", ...) that a mapping turns into colours of a file or of a page.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import ceil, log

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.gridspec import GridSpec, GridSpecBase
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike, NDArray

from pointillist.plot.style import FILE_COLOURS, new_figure, render, save_image

_PAPER = 255
_LEAST_SIDE = 600
_RANK_ONE = 0.9
"""Share of a filter's energy from which on a pattern of channels times a shape stands for it."""
FEW_CHANNELS = 4
"""Channels that are drawn as lines over each other; more become a heat map, or fewer of them are shown."""
_TILE = (1.75, 1.15)
_HEAT = ("#2f5d8a", "#d9772b")  # of negative and positive samples, on a light and on a dark page


def waveform_size(count: int, channels: int, columns: int | None = None) -> tuple[int, float, float]:
    """Columns of waveforms beside each other, and the width and height in inches of the figure that they take."""
    # Few enough to be read, and so that the last row is not nearly empty.
    usual = (6 if count <= 48 else 8) if count > 16 else 3 if count in (3, 5, 6, 9) else 4
    columns = min(count, columns or usual)
    tall = _TILE[1] + (0.45 if channels > 1 else 0)
    return columns, max(3.2, _TILE[0] * columns + 0.3), max(1.6, tall * ceil(count / columns) + 0.5)


def waveform_grid(figure: Figure, count: int, columns: int) -> GridSpec:
    """A grid for so many waveforms over all of a figure, with little space between the rows."""
    layout = figure.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(h_pad=0.045)
    return figure.add_gridspec(ceil(count / columns), columns)


def draw_waveforms(
    figure: FigureBase, grid: GridSpecBase, filters: NDArray, colours: Mapping[str, str]
) -> NDArray[np.object_]:
    """Draw filters (n_filters, channels, length) as small multiples, numbered from 0, each on its own scale.

    Filters that are a pattern of channels times a shape are drawn as the shape, with the pattern as bars below it. Others
    are lines over each other where they have few channels, and heat maps, channel by channel from the top, where many.

    Returns
    -------
    array of Axes (n_filters,), or (n_filters, 2) where shapes have patterns below them
    """
    count, channels, length = filters.shape
    parts = _parts(filters) if channels > 1 else None
    made = []
    for k, one in enumerate(filters):
        place, lowest = grid[k // grid.ncols, k % grid.ncols], k // grid.ncols == (count - 1) // grid.ncols
        if parts is not None:
            halves = place.subgridspec(2, 1, height_ratios=(3, 1.3), hspace=0)
            axes, below = (figure.add_subplot(halves[half]) for half in (0, 1))
            _lines(axes, parts[1][k : k + 1], colours)
            _bars(below, parts[0][k], colours)
            below.set_xlabel("channel" if lowest else "", fontsize=7, color=colours["faint"], labelpad=2)
            made.append([axes, below])
        else:
            axes = figure.add_subplot(place)
            _lines(axes, one, colours) if channels <= FEW_CHANNELS else _heat(axes, one, colours)
            made.append([axes])
        axes.set_title(str(k), loc="left", fontsize=8, color=colours["faint"], pad=2)
        axes.set_xticks([0, length - 1] if lowest else [])
        axes.tick_params(colors=colours["faint"], labelcolor=colours["faint"], labelsize=7, length=2, pad=2)
        if lowest:  # the word lies between the first number and the last
            labels = axes.get_xticklabels()
            labels[0].set_horizontalalignment("left")
            labels[-1].set_horizontalalignment("right")
            axes.set_xlabel("sample", fontsize=7, color=colours["faint"], labelpad=-6.5)
    return np.array(made, object)[:, 0] if parts is None else np.array(made, object)


def waveform_words(filters: NDArray) -> str:
    """Caption that says in a sentence or two how `draw_waveforms` draws these filters."""
    channels, length = filters.shape[1:]
    words = f"Each filter has {length:,} samples and its own scale; their numbers are those of the events."
    if channels == 1:
        return words
    if _parts(filters) is not None:
        share = f"{100 * _RANK_ONE:.0f} % of its energy at least"
        return f"{words} Below each shape are its weights in the {channels:,} channels; both together are {share}."
    if channels <= FEW_CHANNELS:
        return f"{words} The {channels} channels are drawn over each other."
    return f"{words} Time goes to the right and channels go down; orange is positive, blue negative."


def _parts(filters: NDArray) -> tuple[NDArray, NDArray] | None:
    """Patterns of norm one and shapes whose largest peak is positive, None where filters are no such products."""
    left, scales, right = np.linalg.svd(filters.astype(np.float64), full_matrices=False)
    energy = np.sum(scales**2, axis=1)
    if np.any(scales[:, 0] ** 2 < _RANK_ONE * energy):
        return None
    patterns, shapes = left[:, :, 0], right[:, 0] * scales[:, :1]
    peaks = np.take_along_axis(shapes, np.argmax(np.abs(shapes), axis=1)[:, None], axis=1)
    signs = np.where(peaks < 0, -1.0, 1.0)
    return patterns * signs, shapes * signs


def _lines(axes: Axes, one: NDArray, colours: Mapping[str, str]) -> None:  # one: (channels, length)
    reach = 1.1 * (float(np.max(np.abs(one))) or 1.0)
    axes.axhline(0, color=colours["grid"], linewidth=1, zorder=0)
    for c, channel in enumerate(one):
        axes.plot(channel, color=colours[f"c{c}"], linewidth=1.5, solid_joinstyle="round", clip_on=False)
    axes.set(ylim=(-reach, reach), xlim=(0, one.shape[1] - 1), yticks=[])
    _bare(axes)


def _bars(axes: Axes, pattern: NDArray, colours: Mapping[str, str]) -> None:
    reach = 1.05 * (float(np.max(np.abs(pattern))) or 1.0)
    axes.axhline(0, color=colours["grid"], linewidth=1, zorder=0)
    axes.bar(np.arange(len(pattern)), pattern, width=0.8, color=colours["c2"], linewidth=0)
    axes.set(ylim=(-reach, reach), xlim=(-0.6, len(pattern) - 0.4), xticks=[], yticks=[])
    _bare(axes)


def _heat(axes: Axes, one: NDArray, colours: Mapping[str, str]) -> None:
    """A heat map whose zero is see-through, so that it suits any paper."""
    value = one / (float(np.max(np.abs(one))) or 1.0)
    pixels = np.empty((*one.shape, 4))
    pixels[..., :3] = np.where((value < 0)[..., None], to_rgb(_HEAT[0]), to_rgb(_HEAT[1]))
    pixels[..., 3] = np.abs(value)
    axes.imshow(pixels, aspect="auto", interpolation="nearest")
    axes.set(yticks=[])
    axes.set_ylabel("channel", fontsize=7, color=colours["faint"], labelpad=2)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.spines[:].set_visible(False)


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
