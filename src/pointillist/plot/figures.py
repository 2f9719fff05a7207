"""Figures of matplotlib: the look that all share, charts, filters as waveforms, and signals in time with their events.

Figures for files are made without pyplot, so that drawing leaves no global state behind in a user's session, and no setting
of matplotlib is changed. Colours are names ("c0", "ink", ...) that a mapping turns into those of a figure. For a page they
are placeholders for which the page's own variables are put in afterwards, so that they follow light and dark.
"""

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, sqrt
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from pointillist.codes import SparseCodes
from pointillist.storage import atomic_path

INK = "#2b2b2b"
FAINT = "#8c8c8c"
GRID = "#e6e4df"
BLUE = "#2f5d8a"
ORANGE = "#d9772b"
_NAMES = (*(f"c{i}" for i in range(8)), "ink", "faint", "grid")
PAGE_COLOURS = {name: f"#0102{i:02x}" for i, name in enumerate(_NAMES)}
_PRINTED = (BLUE, ORANGE, "#2a7f72", "#8a4a86", "#8c7320", "#70757c", "#4aa3b5", "#7a5ea8")
FILE_COLOURS = dict(zip(_NAMES, (*_PRINTED, INK, FAINT, GRID), strict=True))
_ON_DARK = ("#7fb2e5", "#f0a061", "#6cc9b9", "#d49bd0", "#d6bd62", "#a2a6ad", "#74cfe0", "#b39be0")
DARK_COLOURS = dict(zip(_NAMES, (*_ON_DARK, GRID, "#a2a6ad", "#3a3f45"), strict=True))

_MARKS = "os^DvPX*"
"""Curves differ in colour, and for those who see few colours in their marks as well; each colour has its own."""
FEW_CHANNELS = 4
"""Channels that are drawn as lines over each other; more become a heat map, or fewer of them are shown."""
History = Sequence[Mapping[str, Any]]
HELD_OUT = "validation_objective"
_CLOCKS = {"seconds": "seconds of learning", "iteration": "step"}
_QUANTITIES = {
    "objective": "objective",
    HELD_OUT: "objective of held-out signals",
    "gap": "relative duality gap",
    "nnz": "codes that are not zero",
    "outliers": "windows left out",
    "replaced": "filters replaced",
}


def new_figure(width: float, height: float, **pads: Any) -> Figure:
    """An empty figure of that size in inches, laid out so that nothing overlaps; `pads` are those of the layout."""
    layout = ConstrainedLayoutEngine(**{"w_pad": 0.12, "h_pad": 0.12, "wspace": 0.02, "hspace": 0.04} | pads)
    return Figure(figsize=(width, height), dpi=150, facecolor="white", layout=layout)


def save_figure(figure: Figure, path: str | os.PathLike[str], *, crop: bool = False) -> None:
    """Write a figure as .png, .pdf or .svg, completely or not at all; `crop` trims it to what is drawn."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"cannot write {path}: figures end in .png, .pdf, .svg")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], bbox_inches="tight" if crop else None, pad_inches=0.15)


def render(figure: Figure) -> NDArray[np.uint8]:
    """The pixels (H, W, 3) of a figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def themed_svg(figure: Figure, name: str, words: str) -> str:
    """A figure drawn in placeholder colours as an inline ``<svg>`` in the colours and the font of a page.

    Parameters
    ----------
    figure : Figure
    name : str
        Begins all ids, which keeps them apart from those of other figures on the page.
    words : str
        A description for those who cannot see it.
    """
    buffer = io.StringIO()
    plain = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # Text stays text: it is sharp, small, selectable, and set in the page's font.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=plain)
    _, _, drawn = buffer.getvalue().partition("<svg ")
    root, _, inside = drawn.partition(">")
    root = re.sub(r'(width|height)="[^"]*" ', "", root)
    inside = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", inside)
    inside = re.sub(r'font: [^;"]*?([\d.]+px)[^;"]*', r"font-size: \1", inside)
    inside = re.sub(r'font-family: [^;"]*;?', "", inside)
    for variable, colour in PAGE_COLOURS.items():
        inside = inside.replace(colour, f"var(--{variable})")
    return f'<svg role="img" aria-label={quoteattr(words)} {root}>{inside}'


def title(axes: Axes, text: str, detail: str = "", colours: Mapping[str, str] = FILE_COLOURS) -> None:
    """A plain heading above a panel, with a fainter line of figures under it."""
    axes.set_title(text, loc="left", fontsize=11, color=colours["ink"], pad=20 if detail else 6)
    if detail:
        axes.text(0, 1.02, detail, transform=axes.transAxes, fontsize=8.5, color=colours["faint"], va="bottom")


def tidy(axes: Axes, colours: Mapping[str, str] = FILE_COLOURS) -> None:
    """Axes of a chart: two spines, a faint grid behind the data."""
    axes.xaxis.label.set_color(colours["ink"])
    axes.yaxis.label.set_color(colours["ink"])
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(colours["faint"])
    axes.tick_params(which="both", colors=colours["faint"], labelcolor=colours["ink"], length=3)
    axes.grid(color=colours["grid"], linewidth=0.9)
    axes.set_axisbelow(True)


def bare(axes: Axes, frame: str = GRID) -> None:
    """Axes of a picture: a thin frame and nothing else."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=frame, linewidth=0.8)


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Parameters
    ----------
    label : str
        Its name in the legend.
    x, y : sequences of float
    colour : str
        "c0" to "c7".
    style : {"line", "dashed", "dots", "bars"}
    """

    label: str
    x: Sequence[float] | NDArray
    y: Sequence[float] | NDArray
    colour: str = "c0"
    style: str = "line"


@dataclass(frozen=True)
class Chart:
    """Curves over one pair of axes; `levels` are labelled horizontal lines, `rows` names on the y axis."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    levels: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    caption: str = ""
    rows: Mapping[str, float] = field(default_factory=dict)


def draw_chart(axes: Axes, chart: Chart, colours: Mapping[str, str] = FILE_COLOURS) -> None:
    """Draw a chart into axes of matplotlib, without its title, caption and legend.

    Parameters
    ----------
    axes : matplotlib Axes
    chart : Chart
    colours : mapping of str to str
        What matplotlib takes for the curves' names of colours, and for "ink", "faint" and "grid".
    """
    tidy(axes, colours)
    axes.set(xlabel=chart.x, ylabel=chart.y)
    bars = [curve for curve in chart.curves if curve.style == "bars"]
    marked = has_marks(chart)
    for curve in chart.curves:
        look: dict[str, Any] = {"color": colours[curve.colour], "label": curve.label}
        if curve.style == "bars":
            left = np.asarray(curve.x, float) - 0.4 + 0.8 * (bars.index(curve) + 0.5) / len(bars)
            axes.bar(left, curve.y, width=0.74 / len(bars), **look)
            axes.grid(axis="x", visible=False)
        elif curve.style == "dots":
            axes.plot(curve.x, curve.y, "o", markersize=4, alpha=0.35, **look)
        else:
            mark = _MARKS[int(curve.colour[1:])] if marked else ""
            dashes = "--" if curve.style == "dashed" else "-"
            wide = 1.6 if len(curve.x) < 200 else 0.9
            axes.plot(curve.x, curve.y, dashes, linewidth=wide, marker=mark, markersize=5, **look)
    across, faint = axes.get_yaxis_transform(), colours["faint"]
    for label, level in chart.levels.items():
        axes.axhline(level, color=faint, linewidth=1.1, linestyle=":")
        axes.text(1, level, label, transform=across, color=faint, ha="right", va="bottom")
    for log, axis, scale in ((chart.log_x, axes.xaxis, axes.set_xscale), (chart.log_y, axes.yaxis, axes.set_yscale)):
        if log:
            scale("log")
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,), numticks=8))
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    if not chart.log_x and all(np.all(np.mod(curve.x, 1) == 0) for curve in chart.curves):
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    if chart.rows:
        axes.set_yticks(list(chart.rows.values()), list(chart.rows))


def describe(chart: Chart) -> str:
    """A chart in words, for those who cannot see it."""
    parts = [f"{chart.title or 'Chart'}: {chart.y} against {chart.x}."]
    for curve in chart.curves:
        if len(curve.x):
            ends = f"from {curve.y[0]:.4g} at {curve.x[0]:.3g} to {curve.y[-1]:.4g} at {curve.x[-1]:.3g}"
            parts.append(f"{curve.label}: {ends}.")
    return " ".join(parts)


def has_marks(chart: Chart) -> bool:
    """True if the lines of a chart carry marks: where there are several of few points, and none goes through dots."""
    return len(chart.curves) > 1 and all(len(one.x) <= 40 and one.style != "dots" for one in chart.curves)


def convergence_chart(histories: Mapping[str, History], quantity: str = "objective", clock: str = "seconds") -> Chart:
    """One quantity of one or several histories over "seconds" or "iteration"; of what scatters, the mean around each step.

    Parameters
    ----------
    histories : mapping of str to history
        `history_` of learners, by what their curves are called.
    quantity : str
        What of a history's records is drawn; those that lack it are passed over.
    clock : {"seconds", "iteration"}
    """
    curves: list[Curve] = []
    label = _QUANTITIES.get(quantity, quantity)
    for number, (name, history) in enumerate(histories.items()):
        rows = [info for info in history if info.get(quantity) is not None]
        if not rows:
            known = sorted({one for info in history for one in info if one in _QUANTITIES})
            words = ", ".join(f'"{one}"' for one in known) or "nothing"
            raise ValueError(f"quantity must be something that was recorded, {words}, got {quantity!r} ({name})")
        across, values = [info[clock] for info in rows], np.array([info[quantity] for info in rows], np.float64)
        colour, style = f"c{number % 8}", "line" if number < 8 else "dashed"
        if quantity == "objective" and len(values) >= 8 and np.mean(np.diff(values) > 0) > 0.25:
            if len(histories) == 1:
                curves.append(Curve("each mini-batch", across, values, colour, "dots"))
                name = "running mean"
            else:
                label = "objective, running mean"
            values = uniform_filter1d(values, max(5, len(values) // 5))
        curves.append(Curve(name, across, values, colour, style))
    return Chart("", _CLOCKS[clock], label, curves, log_y=quantity == "gap")


@dataclass(frozen=True)
class Waveforms:
    """Filters of one dimension as small multiples; `filters` is (n_filters, channels, length)."""

    filters: NDArray
    caption: str = ""


def waveform_grid(count: int, columns: int | None = None) -> tuple[int, int, tuple[float, float]]:
    """Rows and columns of waveforms below and beside each other, and the size in inches of the figure that they take."""
    columns = min(count, columns or min(ceil(sqrt(1.5 * count)), 8))
    rows = ceil(count / columns)
    return rows, columns, (max(3.2, 1.75 * columns + 0.3), max(1.6, 1.15 * rows + 0.5))


def waveform_figure(
    filters: NDArray, colours: Mapping[str, str], columns: int | None = None, least: float = 0
) -> Figure:
    """A figure of filters (n_filters, channels, length), enlarged until its shorter side has `least` inches."""
    rows, columns, size = waveform_grid(len(filters), columns)
    larger = max(1.0, least / min(size))
    figure = new_figure(larger * size[0], larger * size[1], h_pad=0.045)
    draw_waveforms(figure.subplots(rows, columns, sharex=True, squeeze=False), filters, colours)
    return figure


def draw_waveforms(panels: Any, filters: NDArray, colours: Mapping[str, str]) -> None:
    """Draw filters (n_filters, channels, length) as small multiples, numbered from 0, each on its own scale.

    Those of few channels are lines over each other, those of many heat maps, channel by channel from the top. `panels`
    is an array of Axes (rows, columns).
    """
    count, channels, length = filters.shape
    words: dict[str, Any] = {"fontsize": 7, "color": colours["faint"], "labelpad": 2}
    for k, (axes, one) in enumerate(zip(panels.flat, filters, strict=False)):
        peak = float(np.max(np.abs(one))) or 1.0
        if channels <= FEW_CHANNELS:
            axes.axhline(0, color=colours["grid"], linewidth=1, zorder=0)
            for c, line in enumerate(one):
                axes.plot(line, color=colours[f"c{c}"], linewidth=1.5, clip_on=False)
            axes.set(xlim=(0, length - 1), ylim=(-1.1 * peak, 1.1 * peak))
        else:  # zero is see-through, so that it suits any paper
            tint = np.where((one < 0)[..., None], to_rgb(BLUE), to_rgb(ORANGE))
            axes.imshow(np.dstack([tint, np.abs(one) / peak]), aspect="auto", interpolation="nearest")
            axes.set_ylabel("channel", **words)
        axes.set(facecolor="none", yticks=[], xticks=[0, length - 1])
        axes.spines[:].set_visible(False)
        axes.set_title(str(k), loc="left", fontsize=8, color=colours["faint"], pad=2)
        axes.tick_params(colors=colours["faint"], labelsize=7, length=2, pad=2)
    for axes in panels[-1]:
        axes.set_xlabel("sample", **words)
    for axes in panels.flat[count:]:
        axes.set_axis_off()


def waveform_words(filters: NDArray) -> str:
    """Caption that says in a sentence or two how `draw_waveforms` draws these filters."""
    channels, length = filters.shape[1:]
    words = f"Each filter has {length:,} samples and its own scale; their numbers are those of the events."
    if channels == 1:
        return words
    if channels <= FEW_CHANNELS:
        return f"{words} The {channels} channels are drawn over each other."
    return f"{words} Time goes to the right and channels go down; orange is positive, blue negative."


def series_chart(
    title: str, lines: Mapping[tuple[str, str], NDArray], first: int = 0, most: int = FEW_CHANNELS, caption: str = ""
) -> Chart:
    """Courses in time over each other, their strongest channels one below the other.

    Parameters
    ----------
    title : str
    lines : mapping of (label, colour) to ([channels,] length) array
        The first decides which channels are the strongest; NaN is not drawn.
    first : int
        Number of the first sample.
    most : int
        Channels to show.
    caption : str
    """
    signal = np.nan_to_num(np.atleast_2d(next(iter(lines.values()))))
    peak = float(np.max(np.abs(signal))) or 1.0  # squares of very large samples would overflow
    energy = np.sum(np.square(signal / peak, dtype=np.float64), axis=1)
    channels = np.sort(np.argsort(-energy, kind="stable")[:most])
    step = 2.6 * (float(np.percentile(np.abs(signal[channels]), 99)) or 1.0)
    above = -step * np.arange(len(channels))[:, None]
    samples = np.tile(np.arange(first, first + signal.shape[1] + 1), len(channels))[:-1]
    curves = []
    for (label, colour), line in lines.items():  # one curve with a gap after each channel
        drawn = np.pad(np.atleast_2d(line)[channels] + above, [(0, 0), (0, 1)], constant_values=np.nan)
        curves.append(Curve(label, samples, drawn.ravel()[:-1], colour))
    if len(channels) < len(signal):
        caption = f"{caption} The {len(channels)} strongest of {len(signal):,} channels are shown.".lstrip()
    rows = dict(zip(map(str, channels), above[:, 0].tolist(), strict=True)) if len(signal) > 1 else {}
    return Chart(title, "sample", "channel" if rows else "value", curves, caption=caption, rows=rows)


@dataclass(frozen=True)
class Trace:
    """A signal in time with what its codes make of it, events (sample, filter, amplitude), and what is left."""

    signal: Chart
    events: NDArray
    n_filters: int
    residual: Chart

    @property
    def heights(self) -> tuple[float, float, float]:
        """Heights in inches of the signal, its events and its residual, in a figure of 8.6 inches."""
        panel = 1.1 + 0.45 * max(len(self.signal.rows) - 1, 0)
        return 1.3 * panel, min(0.4 + 0.24 * self.n_filters, 4.0), panel


def signal_trace(
    title: str, signal: NDArray, fit: NDArray, codes: SparseCodes, shown: slice = slice(None), caption: str = ""
) -> Trace:
    """A signal in time as it is drawn.

    Parameters
    ----------
    title : str
    signal, fit : ([channels,] samples) arrays
        Of one shape; of many channels the strongest are shown.
    codes : SparseCodes
        Of this one signal.
    shown : slice
        The samples to show.
    caption : str
    """
    first, last, _ = shown.indices(signal.shape[-1])
    signal, fit, events = signal[..., shown], fit[..., shown], centred_events(codes, signal.shape[-1])
    left = series_chart("", {("signal", ""): signal, ("residual", "c2"): signal - fit}, first)
    return Trace(
        series_chart(title, {("original", "c5"): signal, ("reconstruction", "c0"): fit}, first, caption=caption),
        events[(events[:, 0] >= first) & (events[:, 0] < last)],
        codes.n_filters,
        replace(left, y="residual", curves=left.curves[1:]),
    )


def centred_events(codes: SparseCodes, length: int) -> NDArray:
    """Events (n_events, 3) of the codes of one signal of so many samples: the filter's centre, its number, the amplitude."""
    events = codes.events()
    centre = events["sample"] + (length - codes.grids[0][0]) / 2
    return np.stack([centre, events["filter"], events["amplitude"]], axis=1)


def draw_trace(panels: Sequence[Axes], trace: Trace, colours: Mapping[str, str]) -> None:
    """Draw a signal with its fit over it, its events, and what is left, one below the other on one clock."""
    upper, middle, lower = panels
    draw_chart(upper, trace.signal, colours)
    draw_chart(lower, trace.residual, colours)
    lower.set_ylim(upper.get_ylim())  # so that its faintness is true
    draw_events(middle, trace.events, trace.n_filters, colours)
    upper.set(xlabel="", ylabel="signal")
    upper.figure.align_ylabels(panels)
    upper.margins(x=0)
    for axes in panels:
        axes.set_xlim(upper.get_xlim())


def draw_events(axes: Axes, events: NDArray, n_filters: int, colours: Mapping[str, str]) -> None:
    """Draw events (sample, filter, amplitude) as spikes: upwards and orange where positive, downwards and blue elsewhere."""
    tidy(axes, colours)
    axes.set_ylabel("filter")
    sample, row, size = events.T
    # The weakest can still be seen.
    tall = 0.11 + 0.33 * np.abs(size) / np.max(np.abs(size), initial=1e-300)
    tip = row - np.sign(size) * tall
    shade = np.where(size > 0, colours["c1"], colours["c0"])
    axes.vlines(sample, row, tip, color=shade, linewidth=1.5)
    axes.scatter(sample, tip, s=9, color=shade, linewidths=0, zorder=3)
    axes.set_ylim(n_filters - 0.5, -0.5)
    ticks = MaxNLocator(12, integer=True).tick_values(0, n_filters - 1)
    axes.set_yticks([int(tick) for tick in ticks if 0 <= tick < n_filters])
    axes.grid(axis="x", visible=False)
