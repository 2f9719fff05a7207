"""Charts, waveforms and signals in time, drawn by matplotlib into Axes, or as SVG in the colours and font of a page.

Colours are names ("c0", "ink", ...) that a mapping turns into those of a figure. For a page, they are placeholders for
which the page's own variables are put in afterwards, so that they follow light and dark. The legend is left to the page,
where it wraps on a phone.
"""

import io
import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.gridspec import GridSpecBase
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.plot.blocks import Chart, Curve, Trace, Waveforms
from pointillist.plot.style import BLUE, COLOURS, FILE_COLOURS, ORANGE, PAGE_COLOURS, new_figure, tidy

STYLES = ("line", "dashed", "dots", "bars")
# Curves differ in colour, and for those who see few colours in their marks and dashes as well; each colour has its own.
_DASHES = (
    (4, 2),
    (7, 2),
    (1.5, 1.5),
    (7, 2, 1.5, 2),
    (4, 1.5, 1, 1.5, 1, 1.5),
    (10, 3),
    (2.5, 2.5),
    (7, 1.5, 2.5, 1.5),
)
_MARKS = "os^DvPX*"
_LINE_WIDTH = 2
_SVG = "http://www.w3.org/2000/svg"
_MOST_MARKERS = 40
_MARKS_APART = 0.06  # of the diagonal of the axes
FEW_CHANNELS = 4
"""Channels that are drawn as lines over each other; more become a heat map, or fewer of them are shown."""
_RANK_ONE = 0.9
"""Share of a filter's energy from which on a pattern of channels times a shape stands for it."""
_TILE = (1.75, 1.15)
_SPREAD = 2.6
"""Distance between channels that are drawn one above the other, in units of a large sample."""
History = Sequence[Mapping[str, Any]]
HELD_OUT = "validation_objective"
_CLOCKS = {"seconds": "seconds of learning", "iteration": "step"}
_NAMES = {
    "objective": "objective",
    HELD_OUT: "objective of held-out signals",
    "gap": "relative duality gap",
    "nnz": "codes that are not zero",
    "outliers": "windows left out",
    "replaced": "filters replaced",
}


def chart_svg(chart: Chart, name: str) -> str:
    """An inline ``<svg>`` of a chart; `name` keeps its ids apart from those of other charts on the page."""
    figure = new_figure(5.4, 3.2, w_pad=0.04, h_pad=0.03)  # the page leaves space around it already
    with rc_context({"text.parse_math": False}):  # a dollar sign in a label is no formula
        draw_chart(figure.subplots(), chart, PAGE_COLOURS, label_size=10.5)
    return themed_svg(figure, name, describe(chart))


def draw_chart(axes: Axes, chart: Chart, colours: Mapping[str, str] = FILE_COLOURS, label_size: float = 8.5) -> None:
    """Draw a chart into axes of matplotlib, without its title, caption and legend.

    Parameters
    ----------
    axes : matplotlib Axes
    chart : Chart
    colours : mapping of str to str
        What matplotlib takes for the curves' names of colours, and for "ink", "faint" and "grid".
    label_size : float
        Size of the numbers at the axes, in points.
    """
    for curve in chart.curves:
        if curve.colour not in COLOURS or curve.style not in STYLES:
            raise ValueError(f"curve {curve.label!r} has colour {curve.colour!r} and style {curve.style!r}")
    ink, faint = colours["ink"], colours["faint"]
    tidy(axes, colours, label_size)
    axes.set_xlabel(chart.x, fontsize=label_size + 0.5, color=ink)
    axes.set_ylabel(chart.y, fontsize=label_size + 0.5, color=ink)
    bars = [curve for curve in chart.curves if curve.style == "bars"]
    marked = has_marks(chart)
    for curve in chart.curves:
        if curve.style == "bars":
            left = np.asarray(curve.x, float) - 0.4 + 0.8 * (bars.index(curve) + 0.5) / len(bars)
            axes.bar(left, curve.y, width=0.92 * 0.8 / len(bars), color=colours[curve.colour], linewidth=0)
        else:
            _line(axes, curve, colours[curve.colour], marked)
    for label, level in chart.levels.items():
        axes.axhline(level, color=faint, linewidth=1.1, linestyle=(0, (2, 2)))
        axes.annotate(label, (1, level), (-2, 2), ("axes fraction", "data"), "offset points", color=faint, ha="right")
    _scales(axes, chart)


def describe(chart: Chart) -> str:
    """A chart in words, for those who cannot see it."""
    parts = [f"{chart.title or 'Chart'}: {chart.y} against {chart.x}."]
    for curve in chart.curves:
        if len(curve.x):
            ends = f"from {curve.y[0]:.4g} at {curve.x[0]:.3g} to {curve.y[-1]:.4g} at {curve.x[-1]:.3g}"
            parts.append(f"{curve.label}: {ends}.")
    return " ".join(parts)


def has_marks(chart: Chart) -> bool:
    """True if the lines of a chart carry marks: not those through dots, nor one long line alone."""
    if any(curve.style == "dots" for curve in chart.curves):
        return False
    return len(chart.curves) > 1 or all(len(curve.x) <= _MOST_MARKERS for curve in chart.curves)


def _line(axes: Axes, curve: Curve, colour: str, marked: bool) -> None:
    dots, place = curve.style == "dots", int(curve.colour[1:]) % len(_MARKS)
    axes.plot(
        curve.x,
        curve.y,
        color=colour,
        linestyle={"dots": "none", "dashed": (0, _DASHES[place])}.get(curve.style, "-"),
        linewidth=_LINE_WIDTH,
        marker="o" if dots else _MARKS[place] if marked else "",
        markersize=4 if dots else 5,
        markevery=_MARKS_APART if marked and len(curve.x) > 2 else None,
        markeredgewidth=0,
        alpha=0.35 if dots else 1,
        solid_capstyle="round",
    )


def _scales(axes: Axes, chart: Chart) -> None:
    bars = any(curve.style == "bars" for curve in chart.curves)
    for log, axis, setter in ((chart.log_x, axes.xaxis, axes.set_xscale), (chart.log_y, axes.yaxis, axes.set_yscale)):
        if log:
            setter("log")
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=_steps(low, high, across=axis is axes.xaxis), numticks=8))
            axis.set_minor_locator(NullLocator())
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_tick))
    if not chart.log_x and all(float(x).is_integer() for curve in chart.curves for x in curve.x):
        axes.xaxis.set_major_locator(MaxNLocator(10 if bars else 7, integer=True))
    if chart.rows:
        axes.set_yticks(list(chart.rows.values()), list(chart.rows))
    if bars:
        axes.grid(axis="x", visible=False)


def _steps(low: float, high: float, *, across: bool) -> tuple[int, ...]:
    """Multiples of a power of ten that have their number at a logarithmic axis."""
    if high < 6 * low:
        return (1, 2, 3, 4, 5, 6, 8)
    long = across and high >= 1e5 and high > 50 * low  # numbers of six digits beside each other would touch
    return (1, 2, 5) if high < 500 * low and not long else (1,)


def _tick(value: float, _: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def convergence_chart(histories: Mapping[str, History], quantity: str = "objective", clock: str = "seconds") -> Chart:
    """One quantity of one or several histories over "seconds" or "iteration", which scatter or not.

    Parameters
    ----------
    histories : mapping of str to history
        `history_` of learners, by what their curves are called.
    quantity : str
        What of a history's records is drawn; those that lack it are passed over.
    clock : {"seconds", "iteration"}
    """
    curves: list[Curve] = []
    smoothed = False
    for number, (name, history) in enumerate(histories.items()):
        rows = [info for info in history if info.get(quantity) is not None]
        if not rows:
            known = sorted({one for info in history for one in info if one in _NAMES})
            words = ", ".join(f'"{one}"' for one in known) or "nothing"
            raise ValueError(f"quantity must be something that was recorded, {words}, got {quantity!r} ({name})")
        across, values = [info[clock] for info in rows], np.array([info[quantity] for info in rows], np.float64)
        colour, style = f"c{number % 8}", "line" if number < 8 else "dashed"
        scatters = quantity == "objective" and len(values) >= 8 and np.mean(np.diff(values) > 0) > 0.25
        if not scatters:
            curves.append(Curve(name, across, values, colour, style))
            continue
        if len(histories) == 1:
            curves.append(Curve("each mini-batch", across, values, colour, "dots"))
            name = "running mean"
        smoothed = True
        curves.append(Curve(name, across, _running_mean(values), colour, style))
    label = _NAMES.get(quantity, quantity) + (", running mean" if smoothed and len(histories) > 1 else "")
    return Chart("", _CLOCKS[clock], label, curves, log_y=quantity == "gap")


def _running_mean(values: NDArray) -> NDArray:
    """Means over a sixth of the values around each."""
    half = max(2, len(values) // 12)
    starts = np.maximum(np.arange(len(values)) - half, 0)
    ends = np.minimum(np.arange(len(values)) + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[ends] - sums[starts]) / (ends - starts)


def waveforms_svg(block: Waveforms, name: str) -> str:
    """An inline ``<svg>`` of filters of one dimension, as `chart_svg` makes one of a chart."""
    filters = np.asarray(block.filters, float)
    figure = waveform_figure(filters, PAGE_COLOURS)
    return themed_svg(figure, name, f"{len(filters)} filters as waveforms. {waveform_words(filters)}")


def waveform_size(count: int, channels: int, columns: int | None = None) -> tuple[int, float, float]:
    """Columns of waveforms beside each other, and the width and height in inches of the figure that they take."""
    # Few enough to be read, and so that the last row is not nearly empty.
    usual = (6 if count <= 48 else 8) if count > 16 else 3 if count in (3, 5, 6, 9) else 4
    columns = min(count, columns or usual)
    tall = _TILE[1] + (0.45 if channels > 1 else 0)
    return columns, max(3.2, _TILE[0] * columns + 0.3), max(1.6, tall * ceil(count / columns) + 0.5)


def waveform_figure(
    filters: NDArray, colours: Mapping[str, str], columns: int | None = None, least: float = 0
) -> Figure:
    """A figure of filters (n_filters, channels, length), enlarged until its shorter side has `least` inches."""
    columns, width, height = waveform_size(len(filters), filters.shape[1], columns)
    larger = max(1.0, least / min(width, height))
    figure = new_figure(larger * width, larger * height, h_pad=0.045)
    draw_waveforms(figure, figure.add_gridspec(ceil(len(filters) / columns), columns), filters, colours)
    return figure


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
    made: list[list[Axes]] = []
    for k, one in enumerate(filters):
        place, lowest = grid[k // grid.ncols, k % grid.ncols], k // grid.ncols == (count - 1) // grid.ncols
        if parts is not None:
            halves = place.subgridspec(2, 1, height_ratios=(3, 1.3), hspace=0)
            axes, below = (figure.add_subplot(halves[half]) for half in (0, 1))
            _lines(axes, parts[1][k : k + 1], colours)
            below.bar(np.arange(channels), parts[0][k], width=0.8, color=colours["c2"], linewidth=0)
            below.set(xlim=(-0.6, channels - 0.4), xticks=[])
            _own_scale(below, 1.05 * np.max(np.abs(parts[0][k])), colours)
            below.set_xlabel("channel" if lowest else "", fontsize=7, color=colours["faint"], labelpad=2)
            made.append([axes, below])
        else:
            axes = figure.add_subplot(place)
            if channels <= FEW_CHANNELS:
                _lines(axes, one, colours)
            else:  # a heat map whose zero is see-through, so that it suits any paper
                value = one / (float(np.max(np.abs(one))) or 1.0)
                tint = np.where((value < 0)[..., None], to_rgb(BLUE), to_rgb(ORANGE))
                axes.imshow(np.dstack([tint, np.abs(value)]), aspect="auto", interpolation="nearest")
                axes.set(yticks=[])
                axes.set_ylabel("channel", fontsize=7, color=colours["faint"], labelpad=2)
            made.append([axes])
        for panel in made[-1]:
            panel.set_facecolor("none")
            panel.spines[:].set_visible(False)
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
    _own_scale(axes, 1.1 * np.max(np.abs(one)), colours)
    for c, channel in enumerate(one):
        axes.plot(channel, color=colours[f"c{c}"], linewidth=1.5, solid_joinstyle="round", clip_on=False)
    axes.set(xlim=(0, one.shape[1] - 1))


def _own_scale(axes: Axes, reach: float, colours: Mapping[str, str]) -> None:
    axes.axhline(0, color=colours["grid"], linewidth=1, zorder=0)
    axes.set(ylim=(-reach or -1, reach or 1), yticks=[])


def trace_svg(block: Trace, name: str) -> str:
    """An inline ``<svg>`` of a signal in time with its events, as `chart_svg` makes one of a chart."""
    figure = new_figure(*trace_size(block))
    draw_trace(figure.subplots(3, sharex=True, height_ratios=trace_heights(block)), block, PAGE_COLOURS)
    length = len(block.signal[0])
    words = f"{block.title}: {length} samples with their reconstruction, {len(block.events)} events, and the residual."
    return themed_svg(figure, name, words)


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


def trace_heights(trace: Trace) -> tuple[float, float, float]:
    """Heights in inches of the signal, its events and its residual."""
    panel = 1.1 + 0.45 * (len(trace.signal) - 1)
    return 1.3 * panel, min(0.4 + 0.24 * trace.n_filters, 4.0), panel


def draw_trace(panels: Sequence[Axes], trace: Trace, colours: Mapping[str, str], label_size: float = 8.5) -> None:
    """Draw a signal with its fit over it, its events as spikes in a row for each filter, and what is left, on one clock."""
    signal, fit = np.asarray(trace.signal, float), np.asarray(trace.fit, float)
    upper, middle, lower = panels
    samples = np.arange(trace.first, trace.first + signal.shape[1])
    above = stacked(signal)
    for axes in panels:
        tidy(axes, colours, label_size)
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


def themed_svg(figure: Figure, name: str, words: str) -> str:
    """A figure drawn in placeholder colours as inline SVG, with `words` for a description."""
    buffer = io.StringIO()
    # Text stays text: it is sharp, small, selectable, and set in the page's font.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root, name)
    root.set("role", "img")
    root.set("aria-label", words)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    text = ElementTree.tostring(root, encoding="unicode")
    for variable, colour in PAGE_COLOURS.items():
        text = text.replace(colour, f"var(--{variable})")
    return text


def _clean(root: ElementTree.Element, name: str) -> None:
    """Drop metadata and unused ids, make the others unique on the page, and leave fonts to the page."""
    for child in [one for one in root if one.tag.endswith("metadata")]:
        root.remove(child)
    markup = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r"url\(#([^)]+)\)", markup)) | set(re.findall(r'href="#([^"]+)"', markup))
    for element in root.iter():
        label = element.attrib.pop("id", None)
        if label in used:
            element.set("id", f"{name}-{label}")
        for key, value in element.attrib.items():
            if key.endswith("href") and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))
            elif key == "style" and "font" in value:
                size = re.search(r"([\d.]+)px", value)
                rest = re.sub(r"font(-family)?:[^;]*;?", "", value)
                element.set(key, f"{rest}; font-size: {size[1] if size else 10}px")
