"""A page of blocks as one HTML file that needs nothing else, and the facts of the machine that a report owes its reader.

Every string of a block is escaped by the templates in ``assets/``, where all markup is but that of charts.
"""

import os
import platform
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from itertools import count
from math import isfinite
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pointillist.parallel import effective_jobs
from pointillist.plot.blocks import Block, Cell, Curve, Page
from pointillist.plot.charts import chart_svg, has_marks, trace_svg, waveforms_svg
from pointillist.storage import atomic_path
from pointillist.system import load, memory_peak, processor

PACKAGES = ("pointillist", "numpy", "scipy", "numba", "scikit-learn")

_TRACE = [Curve("original", [], [], "c5"), Curve("reconstruction", [], [], "c0"), Curve("residual", [], [], "c2")]


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(render_page(page), encoding="utf-8", errors="replace")


def render_page(page: Page) -> str:
    """The whole HTML document."""
    assets = files("pointillist.plot").joinpath("assets")
    style, script = (Markup(assets.joinpath(name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    return _templates().get_template("page.html").render(page=page, names=Names(), style=style, script=script)


class Names:
    """Ids that occur once on a page; those of several writers of one page differ in how they begin."""

    def __init__(self, begin: str = "b") -> None:
        self._begin, self._next = begin, count()

    def __call__(self) -> str:
        return f"{self._begin}{next(self._next)}"


def draw(block: Block, names: Names) -> str:
    """The markup of one block."""
    macros: Any = _templates().get_template("blocks.html").module
    return str(macros.draw(block, names))


def cell_text(cell: Cell) -> str:
    """A cell as people read it: four digits at most after which nobody looks, a dash for what is missing."""
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


@cache
def _templates() -> Environment:
    def markup(write: Callable[..., str]) -> Callable[..., Markup]:
        return lambda *given: Markup(write(*given))

    loader = PackageLoader("pointillist.plot", "assets")
    found = Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    found.filters |= {"kind": lambda block: type(block).__name__, "cell": cell_text}
    found.globals |= {one.__name__: markup(one) for one in (chart_svg, waveforms_svg, trace_svg)}
    found.globals |= {"has_marks": has_marks, "trace_legend": _TRACE}
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
    versions = [f"{name} {number}" for name, number in known["versions"].items() if number is not None]
    busy = ", ".join(f"{value:.1f}" for value in known["load"])
    return {
        "when": known["when"],
        "machine": f"{known['processor']}, {known['threads']} threads"
        + (f" (load before the start {busy})" if busy else ""),
        "system": f"{known['platform']}, Python {known['python']}",
        "versions": ", ".join(versions),
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
