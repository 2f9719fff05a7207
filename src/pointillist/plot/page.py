"""Pages of text, charts, tables, pictures, sliders and verdicts, each one HTML file that needs nothing else.

Blocks hold numbers and encoded pictures, never markup. Every string of a block is escaped by the templates in ``assets/``,
where all markup is but that of charts.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from itertools import count
from math import isfinite
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context

from pointillist.parallel import effective_jobs
from pointillist.plot.figures import (
    PAGE_COLOURS,
    Chart,
    Trace,
    Waveforms,
    describe,
    draw_chart,
    draw_trace,
    has_marks,
    new_figure,
    themed_svg,
    waveform_figure,
    waveform_words,
)
from pointillist.storage import atomic_path
from pointillist.system import load, memory_peak, processor

PACKAGES = ("pointillist", "numpy", "scipy", "numba", "scikit-learn")
Cell = str | float | int | None


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows under named columns; a missing cell (None) shows as a dash. Rows whose first cell is in `strong` stand out."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    strong: Sequence[str] = ()


@dataclass(frozen=True)
class Picture:
    """An encoded picture; `source` is a data URI, `crisp` keeps its samples square when it is enlarged."""

    source: str
    width: int
    height: int
    alt: str
    caption: str = ""
    crisp: bool = False
    title: str = ""


@dataclass(frozen=True)
class Compare:
    """Two pictures of one size under a slider that uncovers either; `label` is what the first one is called."""

    before: Picture
    after: Picture
    title: str
    caption: str = ""
    label: str = "original"


@dataclass(frozen=True)
class Fact:
    """A number that leads: its value, what it is, and a little more."""

    value: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class Facts:
    """The numbers at the top of a page."""

    facts: Sequence[Fact]


@dataclass(frozen=True)
class NamedValues:
    """Names and values in two columns."""

    items: Mapping[str, str]


@dataclass(frozen=True)
class Verdict:
    """A claim, what was claimed and found, and whether it holds; `because` gives the numbers that decided."""

    claim: str
    paper: str
    ours: str
    holds: bool
    because: str


@dataclass(frozen=True)
class Verdicts:
    """Claims, one after the other; `brief` leaves out the reasons."""

    verdicts: Sequence[Verdict]
    brief: bool = False


@dataclass(frozen=True)
class SideBySide:
    """Blocks beside each other where there is room, one under the other on a phone."""

    blocks: Sequence[Block]


Block = Text | Chart | Waveforms | Trace | Table | Picture | Compare | Facts | NamedValues | Verdicts | SideBySide


@dataclass(frozen=True)
class Section:
    """A heading with blocks under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    summary: str
    sections: Sequence[Section]


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(render_page(page), encoding="utf-8", errors="replace")


def render_page(page: Page) -> str:
    """The whole HTML document."""
    assets = files("pointillist.plot").joinpath("assets")
    style, script = (Markup(assets.joinpath(name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    return _templates().get_template("page.html").render(page=page, names=new_names(), style=style, script=script)


def new_names(begin: str = "b") -> Callable[[], str]:
    """A source of ids that occur once on a page; those of several writers of one page differ in how they `begin`."""
    return map(f"{begin}{{}}".format, count()).__next__


def draw(block: Block, names: Callable[[], str]) -> str:
    """The markup of one block; `names` is what `new_names` gives."""
    macros: Any = _templates().get_template("blocks.html").module
    return str(macros.draw(block, names))


def svg(block: Chart | Waveforms | Trace, name: str) -> Markup:
    """An inline ``<svg>`` of what matplotlib draws; `name` keeps its ids apart from those of others on the page."""
    size = 10.5 if isinstance(block, Chart) else 8.5  # charts are shown smaller, two beside each other
    with rc_context({"font.size": size, "text.parse_math": False}):  # a dollar sign in a label is no formula
        if isinstance(block, Chart):
            figure = new_figure(5.4, 3.2, w_pad=0.04, h_pad=0.03)  # the page leaves space around it already
            draw_chart(figure.subplots(), block, PAGE_COLOURS)
            words = describe(block)
        elif isinstance(block, Waveforms):
            figure = waveform_figure(block.filters, PAGE_COLOURS)
            words = f"{len(block.filters)} filters as waveforms. {waveform_words(block.filters)}"
        else:
            figure = new_figure(8.6, sum(block.heights) + 0.7)
            draw_trace(figure.subplots(3, sharex=True, height_ratios=block.heights), block, PAGE_COLOURS)
            words = f"{block.signal.title}: a signal, its reconstruction, {len(block.events)} events, and the residual."
    return Markup(themed_svg(figure, name, words))


def cell_text(cell: Cell) -> str:
    """A cell as people read it: four digits at most after which nobody looks, a dash for what is missing."""
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return "–"
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 1000 else f"{cell:.3g}"


@cache
def _templates() -> Environment:
    loader = PackageLoader("pointillist.plot", "assets")
    found = Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    found.filters |= {"kind": lambda block: type(block).__name__, "cell": cell_text}
    found.globals |= {"svg": svg, "has_marks": has_marks}
    return found


def facts(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Versions and machine, for the record; None where a package is not installed."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "platform": platform.platform(),
        "processor": processor(),
        "threads": effective_jobs(-1),
        "load": load(),
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in packages},
    }


def fact_items(known: dict[str, Any]) -> dict[str, str]:
    """`facts` as a page shows them."""
    return {
        "when": known["when"],
        "machine": f"{known['processor']}, {known['threads']} threads",
        "system": f"{known['platform']}, Python {known['python']}",
        "versions": ", ".join(f"{name} {number}" for name, number in known["versions"].items() if number is not None),
    }


def peak_mb(process: int | None = None) -> float | None:
    """Largest resident memory so far in MiB of this process, or on Linux of another; None where the system does not tell."""
    return memory_peak(process) / 2**20 or None


def installed(name: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
