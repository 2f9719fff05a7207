"""Charts as SVG that takes its colours and its font from the page around it, so that they follow light and dark.

Matplotlib draws with placeholder colours; the page's own variables are put in their place. The legend is left to the page,
where it wraps on a phone.
"""

import io
import re
from xml.etree import ElementTree

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from pointillist.report.blocks import Chart, Curve
from pointillist.report.style import new_figure

COLOURS = (*(f"c{i}" for i in range(6)), *(f"r{i}" for i in range(5)))
_NAMES = ("ink", "faint", "grid", *COLOURS)
_PLACEHOLDERS = {name: f"#0102{i:02x}" for i, name in enumerate(_NAMES)}
_DASHES = {"line": "-", "dashed": (0, (4, 2)), "dots": "none"}
_SVG = "http://www.w3.org/2000/svg"
_LINK = "http://www.w3.org/1999/xlink"
_MOST_MARKERS = 40


def chart_svg(chart: Chart, name: str) -> str:
    """An inline ``<svg>`` of a chart; `name` keeps its ids apart from those of other charts on the page."""
    for curve in chart.curves:
        if curve.colour not in COLOURS or curve.style not in (*_DASHES, "bars"):
            raise ValueError(f"curve {curve.label!r} has colour {curve.colour!r} and style {curve.style!r}")
    with rc_context({"text.parse_math": False}):  # a dollar sign in a label is no formula
        return _drawn(chart, name)


def _drawn(chart: Chart, name: str) -> str:
    figure = new_figure(5.4, 3.2)
    figure.set_layout_engine("constrained", w_pad=0.04, h_pad=0.03)  # the page leaves room around it already
    axes = figure.subplots()
    _frame(axes, chart)
    bars = [curve for curve in chart.curves if curve.style == "bars"]
    scattered = any(curve.style == "dots" for curve in chart.curves)  # a line through dots has none of its own
    for curve in chart.curves:
        if curve.style == "bars":
            _bars(axes, curve, bars.index(curve), len(bars))
        else:
            _line(axes, curve, plain=scattered)
    for label, level in chart.levels.items():
        axes.axhline(level, color=_PLACEHOLDERS["faint"], linewidth=1.1, linestyle=(0, (2, 2)))
        place = ("axes fraction", "data")
        axes.annotate(label, (1, level), (-2, 2), place, "offset points", color=_PLACEHOLDERS["faint"], ha="right")
    _scales(axes, chart)
    return themed_svg(figure, name, describe(chart))


def describe(chart: Chart) -> str:
    """A chart in words, for those who cannot see it."""
    parts = [f"{chart.title or 'Chart'}: {chart.y} against {chart.x}."]
    for curve in chart.curves:
        if len(curve.x):
            ends = f"from {curve.y[0]:.4g} at {curve.x[0]:.3g} to {curve.y[-1]:.4g} at {curve.x[-1]:.3g}"
            parts.append(f"{curve.label}: {ends}.")
    return " ".join(parts)


def themed_svg(figure: Figure, name: str, words: str) -> str:
    """A figure, drawn in placeholder or named colours, as inline SVG with `words` for a description."""
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
    for variable, colour in _PLACEHOLDERS.items():
        text = text.replace(colour, f"var(--{variable})")
    return text


def placeholder(name: str) -> str:
    """The colour to draw with where the page's colour `name` is meant."""
    return _PLACEHOLDERS[name]


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


def _frame(axes: Axes, chart: Chart) -> None:
    ink, faint, grid = (_PLACEHOLDERS[name] for name in ("ink", "faint", "grid"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(faint)
    axes.tick_params(which="both", colors=faint, labelcolor=ink, labelsize=10.5, length=3)
    axes.grid(color=grid, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.set_xlabel(chart.x, fontsize=11, color=ink)
    axes.set_ylabel(chart.y, fontsize=11, color=ink)


def _line(axes: Axes, curve: Curve, plain: bool) -> None:
    colour = _PLACEHOLDERS[curve.colour]
    dots = curve.style == "dots"
    marked = dots or not (plain or len(curve.x) > _MOST_MARKERS)
    axes.plot(
        curve.x,
        curve.y,
        color=colour,
        linestyle=_DASHES[curve.style],
        linewidth=2,
        marker="o" if marked else "",
        markersize=4 if dots else 4.5,
        markeredgewidth=0,
        alpha=0.35 if dots else 1,
        solid_capstyle="round",
    )


def _bars(axes: Axes, curve: Curve, place: int, count: int) -> None:
    width = 0.8 / count
    left = np.asarray(curve.x, float) - 0.4 + width * (place + 0.5)
    axes.bar(left, curve.y, width=0.92 * width, color=_PLACEHOLDERS[curve.colour], linewidth=0)


def _scales(axes: Axes, chart: Chart) -> None:
    bars = any(curve.style == "bars" for curve in chart.curves)
    for log, axis, setter in ((chart.log_x, axes.xaxis, axes.set_xscale), (chart.log_y, axes.yaxis, axes.set_yscale)):
        if log:
            setter("log")
            axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
            axis.set_minor_locator(NullLocator())
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_tick))
    if not chart.log_x and all(float(x).is_integer() for curve in chart.curves for x in curve.x):
        axes.xaxis.set_major_locator(MaxNLocator(10 if bars else 7, integer=True))
    if bars:
        axes.grid(axis="x", visible=False)


def _tick(value: float, _: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
