"""Heat maps of the benchmarks' records as SVG in the colours of the page, drawn as the reports' charts are.

A map is a mapping with ``title``, ``x``, ``columns``, ``rows``, ``values`` (rows of numbers, None where there is none) and
``note``, as `heat_map` of the benchmarks makes it. Its values are ratios: one means even.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from pointillist.plot.figures import PAGE_COLOURS, new_figure, themed_svg

_AHEAD, _BEHIND = "c0", "c1"
_FAINTEST, _STRONGEST = 0.08, 0.62
"""Opacities of a ratio of one and of the most extreme ones: the text on them stays readable, on light pages and on dark."""
_EXTREME = 100.0
_WIDTH, _ROW, _MARGIN = 6.6, 0.45, 0.7
"""Of the picture, of a row and below the rows, in inches."""


def heat(content: Mapping[str, Any], name: str) -> str:
    """A figure of one line; `name` keeps its ids apart from those of others on the page."""
    drawn = heat_svg(content, name).replace("\n", " ")
    caption = f"<figcaption>{escape(content['note'])}</figcaption>" if content.get("note") else ""
    return f'<figure class="chart"><h3>{escape(content["title"])}</h3>{drawn}{caption}</figure>'


def heat_svg(content: Mapping[str, Any], name: str) -> str:
    """An inline ``<svg>``: a cell for each value, stronger the further it is from one, with the value written in it."""
    rows, columns = content["rows"], content["columns"]
    figure = new_figure(_WIDTH, _MARGIN + _ROW * len(rows), w_pad=0.04, h_pad=0.03)  # the page leaves space around it
    axes = figure.subplots()
    for down, values in enumerate(content["values"]):
        for across, value in enumerate(values):
            if value is not None:
                cell = Rectangle((across + 0.02, down + 0.03), 0.96, 0.94, linewidth=0)
                cell.set_facecolor(PAGE_COLOURS[_AHEAD if value >= 1 else _BEHIND])
                cell.set_alpha(opacity(value))
                axes.add_patch(cell)
            text = "–" if value is None else times(value)
            place = (across + 0.5, down + 0.5)
            axes.text(*place, text, ha="center", va="center", fontsize=10.5, color=PAGE_COLOURS["ink"])
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.tick_params(length=0, labelsize=10.5, labelcolor=PAGE_COLOURS["ink"])
    axes.set_xlabel(content["x"], fontsize=11, color=PAGE_COLOURS["ink"])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return themed_svg(figure, name, describe(content))


def opacity(value: float) -> float:
    """How strong the colour of a ratio is: by its logarithm, whichever side is ahead."""
    share = min(abs(np.log(value)) / np.log(_EXTREME), 1.0)
    return float(_FAINTEST + (_STRONGEST - _FAINTEST) * share)


def times(value: float) -> str:
    """A ratio as it is written in a cell."""
    return f"{value:.0f}×" if value >= 10 else f"{value:.2g}×"


def describe(content: Mapping[str, Any]) -> str:
    """A map in words, for those who cannot see it."""
    parts = [f"{content['title']}:"]
    for row, values in zip(content["rows"], content["values"], strict=True):
        cells = (f"{'none' if v is None else times(v)} at {c}" for c, v in zip(content["columns"], values, strict=True))
        parts.append(f"{row}, by {content['x']}: {', '.join(cells)}.")
    return " ".join(parts)
