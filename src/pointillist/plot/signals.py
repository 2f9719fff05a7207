"""Signals beside what their codes make of them: the reconstruction, what is left, and where the codes sit, on Axes.

Solving for codes is done elsewhere. Colours are names ("c0", "ink", ...) that a mapping turns into colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import FigureBase
from matplotlib.gridspec import GridSpecBase
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.metrics import psnr
from pointillist.plot.blocks import Trace
from pointillist.plot.filters import FEW_CHANNELS
from pointillist.plot.pictures import Cut, as_pixels, contrast_limits
from pointillist.plot.style import bare, tidy, title

_PANEL_WIDTH = 3.45
_FAINTNESS = 0.45
"""Opacity of a picture under its codes."""
_SPREAD = 2.6
"""Distance between channels that are drawn one above the other, in units of a large sample."""


def panels_size(shape: Sequence[int], count: int) -> tuple[float, float]:
    """Width and height in inches of a figure with so many pictures (H, W) side by side."""
    height = _PANEL_WIDTH * shape[0] / shape[1]
    return count * _PANEL_WIDTH + 1.0, min(max(height, 1.5), 8.0) + 0.8


def draw_reconstruction(
    panels: Sequence[Axes],
    image: NDArray,
    fit: NDArray,
    codes: SparseCodes | None,
    cut: Cut,
    colours: Mapping[str, str],
) -> None:
    """Draw original, reconstruction and residual of a picture or of one slice of a volume, and codes where there are any."""
    seen, made = cut.of(image), cut.of(fit)
    residual = seen - made
    low, high = contrast_limits(seen)
    half = (high - low) / 2  # the residual keeps the picture's own contrast, so that its faintness is true
    size = f"{seen.shape[-1]} × {seen.shape[-2]} pixels"
    energy = float(np.sum(seen**2))
    left = 100 * float(np.sum(residual**2)) / energy if energy else 0.0
    shown = (
        ("Original", f"{size}, {cut.words}" if cut.words else size, seen, low, high),
        ("Reconstruction", f"PSNR {psnr(image, fit):.1f} dB", made, low, high),
        ("Residual", f"{left:.1f} % of the energy", residual, -half, half),
    )
    for panel, (name, words, picture, black, white) in zip(panels, shown, strict=False):
        draw_picture(panel, picture, black, white, colours)
        title(panel, name, words, ink=colours["ink"], faint=colours["faint"])
    if codes is not None:
        draw_points(panels[3], codes, image.shape[-cut.axes :], cut, colours)
        share = 100 * codes.nnz / prod(image.shape[-cut.axes :])
        words = f"{codes.nnz:,} non-zeros, {share:.1f} % of the number of pixels"
        title(panels[3], "Codes", words, ink=colours["ink"], faint=colours["faint"])


def draw_picture(
    axes: Axes, picture: NDArray, low: float, high: float, colours: Mapping[str, str], *, faint: bool = False
) -> None:
    """Draw a picture (H, W) or (3, H, W) that is black at `low` and white at `high`, in full or faintly below codes."""
    bare(axes, frame=colours["grid"])
    pixels = as_pixels(picture, low, high)
    alpha = _FAINTNESS if faint else None
    axes.imshow(pixels, cmap="gray", vmin=low, vmax=high, interpolation="antialiased", alpha=alpha)


def draw_points(axes: Axes, codes: SparseCodes, space: Sequence[int], cut: Cut, colours: Mapping[str, str]) -> int:
    """Draw the codes as dots on the pixels of a picture, or of one slice of a volume; returns how many.

    Grids larger or smaller than the picture share its centre.
    """
    bare(axes, frame=colours["grid"])
    grid, host = codes.grids[0], codes.on_host()
    place = np.stack(np.unravel_index(host.indices[0] % prod(grid), grid), axis=1)
    place = place + (np.array(space) - np.array(grid)) / 2
    values = np.asarray(host.values[0], np.float64)
    if cut.depth is not None:
        inside = np.floor(place[:, 0]) == cut.depth
        place, values = place[inside, 1:], values[inside]
    order = np.argsort(-np.abs(values))  # small dots last, on top of the large
    place, values = place[order], values[order]
    typical = np.percentile(np.abs(values), 95) if len(values) else 1.0
    # A dot of typical strength covers three pixels, or more where the picture is large.
    height, width = space[-2:]
    wide = max(3.0, max(height, width) / 120) * np.sqrt(np.clip(np.abs(values) / typical, 0.02, 2))
    dots = EllipseCollection(
        wide,
        wide,
        np.zeros(len(wide)),
        units="xy",
        offsets=place[:, ::-1],
        offset_transform=axes.transData,
        facecolors=np.where(values > 0, colours["c1"], colours["c0"]),
        linewidths=0,
        alpha=0.75,
    )
    axes.add_collection(dots, autolim=False)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal")
    return len(values)


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
    few = f"The {len(channels)} strongest of {len(whole):,} channels are shown." if len(channels) < len(whole) else ""
    return Trace(
        title=title,
        first=first,
        signal=whole[channels, shown],
        fit=rows[channels, shown],
        channels=channels.tolist(),
        events=np.stack([centre, events["filter"], events["amplitude"]], axis=1)[seen],
        n_filters=codes.n_filters,
        caption=" ".join(filter(None, (caption, few))),
    )


def trace_size(trace: Trace) -> tuple[float, float]:
    """Width and height in inches of the figure that a trace takes."""
    return 8.6, sum(trace_heights(trace)) + 0.7


def trace_rows(figure: FigureBase, grid: GridSpecBase) -> list[Axes]:
    """Three Axes on a grid of three rows, on one clock."""
    upper = figure.add_subplot(grid[0])
    rows = [upper, *(figure.add_subplot(grid[row], sharex=upper) for row in (1, 2))]
    for axes in rows[:2]:
        axes.tick_params(labelbottom=False)
    return rows


def draw_trace(panels: Sequence[Axes], trace: Trace, colours: Mapping[str, str], *, label_size: float = 8.5) -> None:
    """Draw a signal with its fit over it, its events as spikes in a row for each filter, and what is left, on one clock."""
    signal, fit = np.asarray(trace.signal, float), np.asarray(trace.fit, float)
    upper, middle, lower = panels
    samples = np.arange(trace.first, trace.first + signal.shape[1])
    above = stacked(signal)
    for axes in panels:
        tidy(axes, ink=colours["ink"], faint=colours["faint"], grid=colours["grid"], label_size=label_size)
    upper.plot(samples, (signal + above).T, color=colours["c5"], linewidth=1.1, alpha=0.8)
    upper.plot(samples, (fit + above).T, color=colours["c0"], linewidth=1.3)
    lower.plot(samples, (signal - fit + above).T, color=colours["c2"], linewidth=0.9)
    for axes, name in ((upper, "signal"), (lower, "residual")):
        if len(above) > 1:
            axes.set_yticks(above[:, 0], [str(channel) for channel in trace.channels])
        else:
            axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.set_ylabel(name, fontsize=label_size + 0.5, color=colours["ink"])
    lower.set_ylim(upper.get_ylim())  # so that its faintness is true
    draw_events(middle, trace.events, trace.n_filters, colours)
    middle.set_ylabel("filter", fontsize=label_size + 0.5, color=colours["ink"])
    upper.figure.align_ylabels(panels)
    for axes in panels:
        draw_clock(axes, samples)
    lower.set_xlabel("sample", fontsize=label_size + 0.5, color=colours["ink"])


def draw_clock(axes: Axes, samples: NDArray) -> None:
    """Number the samples of a signal in time, from the first to the last."""
    axes.set_xlim(samples[0], max(samples[-1], samples[0] + 1))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def stacked(signal: NDArray) -> NDArray:
    """Offsets (channels, 1) of the channels of (channels, length) with which one lies below the other."""
    step = _SPREAD * (float(np.percentile(np.abs(signal), 99)) or 1.0)
    return np.asarray(-step * np.arange(len(signal))[:, None])


def strongest(signal: NDArray, most: int = FEW_CHANNELS) -> NDArray:
    """Numbers of the channels of (channels, length) with the most energy, at most so many, ascending."""
    peak = float(np.max(np.abs(signal))) or 1.0  # squares of very large samples would overflow
    energy = np.sum(np.square(signal / peak, dtype=np.float64), axis=1)
    return np.sort(np.argsort(-energy, kind="stable")[:most])


def trace_heights(trace: Trace) -> tuple[float, float, float]:
    """Heights in inches of the signal, its events and its residual."""
    panel = 1.1 + 0.45 * (len(trace.signal) - 1)
    return 1.3 * panel, min(0.4 + 0.24 * trace.n_filters, 4.0), panel


def draw_events(
    axes: Axes, events: Sequence[Sequence[float]] | NDArray, n_filters: int, colours: Mapping[str, str]
) -> None:
    """Draw events (sample, filter, amplitude) as spikes: upwards and orange where positive, downwards and blue elsewhere."""
    sample, which, size = (np.array([event[i] for event in events], float) for i in range(3))
    both = np.any(size > 0) and np.any(size < 0)
    # The weakest can still be seen; spikes of one sign only have the whole row to themselves.
    long = (0.4 if both else 0.75) * (0.25 + 0.75 * np.abs(size) / (np.max(np.abs(size)) if len(size) else 1.0))
    for sign, colour in ((1, "c1"), (-1, "c0")):
        own = sign * size > 0
        foot = which[own] + (0 if both else 0.38 * sign)
        tip = foot - sign * long[own]
        axes.vlines(sample[own], foot, tip, color=colours[colour], linewidth=1.5)
        axes.scatter(sample[own], tip, s=9, color=colours[colour], linewidths=0, zorder=3)
    axes.set_ylim(n_filters - 0.5, -0.5)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 500, 10**4, 10**9) if n_filters <= 12 * step)
    axes.set_yticks(range(0, n_filters, step))
    axes.grid(axis="x", visible=False)
