"""Filters of one dimension as waveforms, and signals in time with their events: drawn into figures of matplotlib.

Colours are names ("c0", "ink", ...) that a mapping turns into colours of a file or of a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.gridspec import GridSpec, GridSpecBase
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from pointillist.plot.blocks import Trace
from pointillist.plot.style import tidy

_RANK_ONE = 0.9
"""Share of a filter's energy from which on a pattern of channels times a shape stands for it."""
_FEW_CHANNELS = 4
"""Channels that are drawn as lines over each other; more become a heat map, or fewer of them are shown."""
_TILE = (1.75, 1.15)
_HEAT = ("#2f5d8a", "#d9772b")  # of negative and positive samples, on a light and on a dark page
_SPREAD = 2.6
"""Distance between channels that are drawn one above the other, in units of a large sample."""


@dataclass(frozen=True)
class _Parts:
    """Patterns (n_filters, channels) and shapes (n_filters, length) that filters of rank one are products of."""

    patterns: NDArray
    shapes: NDArray


def waveform_size(count: int, channels: int, columns: int | None = None) -> tuple[int, float, float]:
    """Columns of waveforms beside each other, and the width and height in inches of the figure that they take."""
    columns = min(count, columns or _columns(count))
    tall = _TILE[1] + (0.45 if channels > 1 else 0)
    return columns, max(3.2, _TILE[0] * columns + 0.3), max(1.6, tall * ceil(count / columns) + 0.5)


def _columns(count: int) -> int:
    """Waveforms in a row: few enough to be read, and so that the last row is not nearly empty."""
    if count > 16:
        return 6 if count <= 48 else 8
    return 3 if count in (3, 5, 6, 9) else 4


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
            _lines(axes, parts.shapes[k : k + 1], colours)
            _bars(below, parts.patterns[k], colours)
            below.set_xlabel("channel" if lowest else "", fontsize=7, color=colours["faint"], labelpad=2)
            made.append([axes, below])
        else:
            axes = figure.add_subplot(place)
            _lines(axes, one, colours) if channels <= _FEW_CHANNELS else _heat(axes, one, colours)
            made.append([axes])
        axes.set_title(str(k), loc="left", fontsize=8, color=colours["faint"], pad=2)
        _clock(axes, length if lowest else None, colours)
    return np.array(made, object)[:, 0] if parts is None else np.array(made, object)


def _clock(axes: Axes, length: int | None, colours: Mapping[str, str]) -> None:
    """Number the first and the last sample, with the word between them; None is for waveforms above others."""
    axes.set_xticks([] if length is None else [0, length - 1])
    axes.tick_params(colors=colours["faint"], labelcolor=colours["faint"], labelsize=7, length=2, pad=2)
    if length is not None:
        labels = axes.get_xticklabels()
        labels[0].set_horizontalalignment("left")
        labels[-1].set_horizontalalignment("right")
        axes.set_xlabel("sample", fontsize=7, color=colours["faint"], labelpad=-6.5)


def waveform_words(filters: NDArray) -> str:
    """How `draw_waveforms` draws these filters, as a sentence or two for a caption."""
    channels, length = filters.shape[1:]
    words = f"Each filter has {length:,} samples and its own scale; their numbers are those of the events."
    if channels == 1:
        return words
    if _parts(filters) is not None:
        share = f"{100 * _RANK_ONE:.0f} % of its energy at least"
        return f"{words} Below each shape are its weights in the {channels:,} channels; both together are {share}."
    if channels <= _FEW_CHANNELS:
        return f"{words} The {channels} channels are drawn over each other."
    return f"{words} Time goes to the right and channels go down; orange is positive, blue negative."


def trace_size(trace: Trace) -> tuple[float, float]:
    """Width and height in inches of the figure that a trace takes."""
    return 8.6, sum(trace_heights(trace)) + 0.7


def trace_panels(figure: Figure, trace: Trace) -> list[Axes]:
    """Three Axes one below the other over all of a figure, as high as a trace needs them."""
    return trace_rows(figure, figure.add_gridspec(3, 1, height_ratios=trace_heights(trace)))


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
        _channels(axes, trace, above[:, 0])
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
    """What to add to the channels of (channels, length), as (channels, 1), so that one lies below the other."""
    step = _SPREAD * (float(np.percentile(np.abs(signal), 99)) or 1.0)
    return np.asarray(-step * np.arange(len(signal))[:, None])


def strongest(signal: NDArray, most: int = _FEW_CHANNELS) -> NDArray:
    """Numbers of the channels of (channels, length) with the most energy, at most so many, ascending."""
    peak = float(np.max(np.abs(signal))) or 1.0  # squares of very large samples would overflow
    energy = np.sum(np.square(signal / peak, dtype=np.float64), axis=1)
    return np.sort(np.argsort(-energy, kind="stable")[:most])


def trace_heights(trace: Trace) -> tuple[float, float, float]:
    """Heights in inches of the signal, its events and its residual."""
    panel = 1.1 + 0.45 * (len(trace.signal) - 1)
    return 1.3 * panel, min(0.4 + 0.24 * trace.n_filters, 4.0), panel


def _channels(axes: Axes, trace: Trace, above: NDArray) -> None:
    """Label channels that are drawn one above the other by their numbers; a single one keeps its scale."""
    if len(above) > 1:
        axes.set_yticks(above, [str(channel) for channel in trace.channels])
    else:
        axes.yaxis.set_major_locator(MaxNLocator(4))


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
    axes.set_yticks(_numbers(n_filters))
    axes.grid(axis="x", visible=False)


def _numbers(n_filters: int) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 500, 10**4, 10**9) if n_filters <= 12 * step)
    return list(range(0, n_filters, step))


def _parts(filters: NDArray) -> _Parts | None:
    """Patterns of norm one and shapes whose largest peak is positive, None where filters are no such products."""
    left, scales, right = np.linalg.svd(filters.astype(np.float64), full_matrices=False)
    energy = np.sum(scales**2, axis=1)
    if np.any(scales[:, 0] ** 2 < _RANK_ONE * energy):
        return None
    patterns, shapes = left[:, :, 0], right[:, 0] * scales[:, :1]
    peaks = np.take_along_axis(shapes, np.argmax(np.abs(shapes), axis=1)[:, None], axis=1)
    signs = np.where(peaks < 0, -1.0, 1.0)
    return _Parts(patterns * signs, shapes * signs)


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


def trace_words(trace: Trace, all_channels: int) -> str:
    """Which of the channels a trace shows, where it does not show all; empty otherwise."""
    shown: Sequence[int] = trace.channels
    return "" if len(shown) == all_channels else f"The {len(shown)} strongest of {all_channels:,} channels are shown."
