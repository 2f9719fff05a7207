"""Charts drawn by matplotlib, into axes of a figure or as SVG that takes its colours and font from the page around it.

For a page, charts are drawn in placeholder colours, for which the page's own variables are put in afterwards, so that they
follow light and dark. The legend is left to the page, where it wraps on a phone.
"""

import io
import re
from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from pointillist.plot.blocks import Chart, Curve, Trace, Waveforms
from pointillist.plot.filters import draw_waveforms, waveform_grid, waveform_size, waveform_words
from pointillist.plot.signals import draw_trace, trace_heights, trace_rows, trace_size
from pointillist.plot.style import COLOURS, FILE_COLOURS, PAGE_COLOURS, new_figure, tidy

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
_LINK = "http://www.w3.org/1999/xlink"
_MOST_MARKERS = 40
_MARKS_APART = 0.06  # of the diagonal of the axes


def chart_svg(chart: Chart, name: str) -> str:
    """An inline ``<svg>`` of a chart; `name` keeps its ids apart from those of other charts on the page."""
    figure = new_figure(5.4, 3.2)
    figure.set_layout_engine("constrained", w_pad=0.04, h_pad=0.03)  # the page leaves space around it already
    with rc_context({"text.parse_math": False}):  # a dollar sign in a label is no formula
        draw_chart(figure.subplots(), chart, PAGE_COLOURS, label_size=10.5)
    return themed_svg(figure, name, describe(chart))


def draw_chart(axes: Axes, chart: Chart, colours: Mapping[str, str] = FILE_COLOURS, *, label_size: float = 8.5) -> None:
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
    ink, faint, grid = (colours[name] for name in ("ink", "faint", "grid"))
    tidy(axes, ink=ink, faint=faint, grid=grid, label_size=label_size)
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


def waveforms_svg(block: Waveforms, name: str) -> str:
    """An inline ``<svg>`` of filters of one dimension, as `chart_svg` makes one of a chart."""
    filters = np.asarray(block.filters, float)
    columns, width, height = waveform_size(len(filters), filters.shape[1])
    figure = new_figure(width, height)
    draw_waveforms(figure, waveform_grid(figure, len(filters), columns), filters, PAGE_COLOURS)
    return themed_svg(figure, name, f"{len(filters)} filters as waveforms. {waveform_words(filters)}")


def trace_svg(block: Trace, name: str) -> str:
    """An inline ``<svg>`` of a signal in time with its events, as `chart_svg` makes one of a chart."""
    figure = new_figure(*trace_size(block))
    rows = trace_rows(figure, figure.add_gridspec(3, 1, height_ratios=trace_heights(block)))
    draw_trace(rows, block, PAGE_COLOURS)
    length = len(block.signal[0])
    words = f"{block.title}: {length} samples with their reconstruction, {len(block.events)} events, and the residual."
    return themed_svg(figure, name, words)


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
    ElementTree.register_namespace("xlink", _LINK)
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
