"""One image or signal in time with what its codes make of it: the reconstruction, what is left, and where the codes sit.

Solving for codes is done elsewhere.
"""

import os
from dataclasses import replace
from math import prod

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from pointillist.model.codes import SparseCodes
from pointillist.model.metrics import psnr
from pointillist.report.blocks import Trace
from pointillist.report.charts import FILE_COLOURS
from pointillist.report.style import BLUE, ORANGE, bare, new_figure, save_figure, title
from pointillist.report.waveforms import draw_trace, strongest, trace_size, trace_words

_PANEL_WIDTH = 3.45


def plot_reconstruction(
    original: ArrayLike, reconstruction: ArrayLike, codes: SparseCodes, path: str | os.PathLike[str]
) -> None:
    """Draw original, reconstruction, residual and codes: side by side of an image, one below the other of a signal in time.

    Each code of an image is a dot at its position, of an area that grows with its size; blue ones are negative, orange ones
    positive. Those of a signal in time are spikes, in a row for each filter; of many channels the strongest four are drawn.

    Parameters
    ----------
    original, reconstruction : (H, W) arrays, or ([channels,] samples) arrays
        Of one shape, on the scale on which the codes were solved for.
    codes : SparseCodes
        Of this one image or signal.
    path : str or path
        Ends in .png, .pdf or .svg.
    """
    image, fit = np.asarray(original, np.float64), np.asarray(reconstruction, np.float64)
    if len(codes) == 1 and len(codes.grids[0]) == 1:
        trace = signal_trace("", image, fit, codes)
        figure = new_figure(*trace_size(trace))
        draw_trace(figure, trace, FILE_COLOURS)
        save_figure(figure, path)
        return
    if image.ndim != 2 or image.shape != fit.shape:
        raise ValueError(f"original and reconstruction must be images of one shape, got {image.shape} and {fit.shape}")
    if len(codes) != 1:
        raise ValueError(f"codes must be those of one image, got {len(codes)}: index them, codes[0]")
    panels, figure = _panels(image.shape)
    residual = image - fit
    low, high = np.percentile(image, [0.5, 99.5])
    _picture(panels[0], image, low, high)
    title(panels[0], "Original", f"{image.shape[1]} × {image.shape[0]} pixels")
    _picture(panels[1], fit, low, high)
    title(panels[1], "Reconstruction", f"PSNR {psnr(image, fit):.1f} dB")
    # The residual keeps the picture's own contrast, so that its faintness is true.
    _picture(panels[2], residual, -(high - low) / 2, (high - low) / 2)
    title(panels[2], "Residual", f"{100 * np.sum(residual**2) / np.sum(image**2):.1f} % of the energy")
    _points(panels[3], image.shape, codes)
    share = 100 * codes.nnz / image.size
    title(panels[3], "Codes", f"{codes.nnz:,} non-zeros, {share:.1f} % of the number of pixels")
    save_figure(figure, path, crop=True)  # the panels' fixed aspect leaves blank strips


def signal_trace(
    title: str,
    signal: NDArray,
    fit: NDArray,
    codes: SparseCodes,
    *,
    first: int = 0,
    last: int | None = None,
    caption: str = "",
) -> Trace:
    """A signal in time as a page shows it.

    Parameters
    ----------
    title : str
    signal, fit : ([channels,] samples) arrays
        Of one shape; of many channels the strongest are shown.
    codes : SparseCodes
        Of this one signal.
    first, last : int
        The samples to show, from the first up to the last, which is not shown; by default all.
    caption : str
    """
    if signal.shape != fit.shape or signal.ndim > 2:
        raise ValueError(
            f"original and reconstruction must be signals of one shape, got {signal.shape} and {fit.shape}"
        )
    shown = slice(first, signal.shape[-1] if last is None else last)
    whole, rows = np.atleast_2d(signal), np.atleast_2d(fit)
    channels = strongest(whole[:, shown])
    events = codes.events()
    centre = events["sample"] + (signal.shape[-1] - codes.grids[0][0]) / 2
    seen = (centre >= shown.start) & (centre < shown.stop)
    trace = Trace(
        title=title,
        first=first,
        signal=whole[channels, shown],
        fit=rows[channels, shown],
        channels=channels.tolist(),
        events=np.stack([centre, events["filter"], events["amplitude"]], axis=1)[seen],
        n_filters=codes.n_filters,
    )
    return replace(trace, caption=" ".join(words for words in (caption, trace_words(trace, len(whole))) if words))


def _panels(shape: tuple[int, ...]) -> tuple[list[Axes], Figure]:
    height = _PANEL_WIDTH * shape[0] / shape[1]
    figure = new_figure(4 * _PANEL_WIDTH + 1.0, min(max(height, 1.5), 8.0) + 0.8)
    return list(figure.subplots(1, 4)), figure


def _picture(axes: Axes, pixels: NDArray, low: float, high: float) -> None:
    bare(axes)
    axes.imshow(pixels, cmap="gray", vmin=low, vmax=high, interpolation="antialiased")


def _points(axes: Axes, shape: tuple[int, ...], codes: SparseCodes) -> None:
    """Dots on the image's own pixels; grids larger or smaller than the image share its centre."""
    bare(axes)
    grid = codes.grids[0]
    place = np.stack(np.unravel_index(codes.indices[0] % prod(grid), grid), axis=1)
    place = place + (np.array(shape) - np.array(grid)) / 2
    values = np.asarray(codes.values[0], np.float64)
    order = np.argsort(-np.abs(values))  # small dots last, on top of the large
    place, values = place[order], values[order]
    typical = np.percentile(np.abs(values), 95) if len(values) else 1.0
    # A dot of typical strength covers about three pixels of the panel, whatever the size of the image.
    area = (72 * _PANEL_WIDTH / shape[1] * 3.0) ** 2 * np.clip(np.abs(values) / typical, 0.02, 2)
    colours = np.where(values > 0, ORANGE, BLUE)
    axes.scatter(place[:, 1], place[:, 0], s=area, c=colours, linewidths=0, alpha=0.75)
    axes.set(xlim=(-0.5, shape[1] - 0.5), ylim=(shape[0] - 0.5, -0.5), aspect="equal")
