"""A page of blocks as one HTML file that needs nothing else: no network, no files beside it.

Every string of a block is escaped; the only markup is written here and in ``assets/``.
"""

import os
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from importlib.resources import files
from itertools import count
from math import isfinite
from string import Template

from pointillist.plot import blocks
from pointillist.plot.blocks import Block, Cell
from pointillist.plot.charts import chart_svg, has_marks, key_svg, trace_svg, waveforms_svg
from pointillist.storage import atomic_path


def write_page(page: blocks.Page, path: str | os.PathLike[str]) -> None:
    """Write a page, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(render_page(page), encoding="utf-8", errors="replace")


def render_page(page: blocks.Page) -> str:
    """The whole HTML document."""
    names = Names()
    sections = [_section(section, f"s{i}", names) for i, section in enumerate(page.sections)]
    links = [f'<li><a href="#s{i}">{escape(section.title)}</a></li>' for i, section in enumerate(page.sections)]
    return Template(_asset("page.html")).substitute(
        title=escape(page.title),
        summary=escape(page.summary),
        contents="".join(links),
        sections="\n".join(sections),
        style=_asset("page.css"),
        script=_asset("page.js"),
    )


class Names:
    """Ids that occur once on a page; those of several writers of one page differ in how they begin."""

    def __init__(self, begin: str = "b") -> None:
        self._begin, self._next = begin, count()

    def __call__(self) -> str:
        return f"{self._begin}{next(self._next)}"


def _asset(name: str) -> str:
    return files("pointillist.plot").joinpath("assets", name).read_text(encoding="utf-8")


def _section(section: blocks.Section, anchor: str, names: Names) -> str:
    heading = f"<h2>{escape(section.title)}</h2>"
    body = "\n".join(draw(block, names) for block in section.blocks)
    if section.folded:
        return f'<section id="{anchor}"><details><summary>{heading}</summary>{body}</details></section>'
    return f'<section id="{anchor}">{heading}{body}</section>'


@singledispatch
def draw(block: Block, names: Names) -> str:
    """The markup of one block."""
    raise TypeError(f"cannot draw {type(block).__name__}")


@draw.register
def _(block: blocks.Text, names: Names) -> str:
    return f"<p>{escape(block.text)}</p>"


@draw.register
def _(block: blocks.Chart, names: Names) -> str:
    legend = "".join(_legend(curve, has_marks(block)) for curve in block.curves)
    legend = f'<ul class="legend" aria-hidden="true">{legend}</ul>' if len(block.curves) > 1 else ""
    title = f"<h3>{escape(block.title)}</h3>" if block.title else ""
    return f'<figure class="chart">{title}{legend}{chart_svg(block, names())}{_caption(block.caption)}</figure>'


@draw.register
def _(block: blocks.Waveforms, names: Names) -> str:
    return f'<figure class="chart wide">{waveforms_svg(block, names())}{_caption(block.caption)}</figure>'


@draw.register
def _(block: blocks.Trace, names: Names) -> str:
    colours = {"original": "c5", "reconstruction": "c0", "residual": "c2"}
    legend = "".join(_legend(blocks.Curve(label, [], [], colour), marked=False) for label, colour in colours.items())
    title = f"<h3>{escape(block.title)}</h3>" if block.title else ""
    legend = f'<ul class="legend" aria-hidden="true">{legend}</ul>'
    return f'<figure class="chart wide">{title}{legend}{trace_svg(block, names())}{_caption(block.caption)}</figure>'


def _legend(curve: blocks.Curve, marked: bool) -> str:
    if curve.style in ("line", "dashed"):
        return f"<li>{key_svg(curve, marked)}{escape(curve.label)}</li>"
    look = f'class="{escape(curve.style)}" style="--c: var(--{escape(curve.colour)})"'
    return f"<li><i {look}></i>{escape(curve.label)}</li>"


@draw.register
def _(block: blocks.Table, names: Names) -> str:
    title = f"<caption>{escape(block.title)}</caption>" if block.title else ""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in block.columns)
    rows = "".join(_row(row, block.strong) for row in block.rows)
    note = f'<p class="note">{escape(block.note)}</p>' if block.note else ""
    table = f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    # Wide tables scroll by themselves; the focus lets keys scroll them.
    label = escape(block.title or "table", quote=True)
    return f'<div class="scroll" role="group" tabindex="0" aria-label="{label}">{table}</div>{note}'


def _row(row: Sequence[Cell], strong: Sequence[str]) -> str:
    first, *others = row
    cells = "".join(f"<td>{escape(cell_text(cell))}</td>" for cell in others)
    style = ' class="strong"' if first in strong else ""
    return f'<tr{style}><th scope="row">{escape(cell_text(first))}</th>{cells}</tr>'


def cell_text(cell: Cell) -> str:
    """A cell as people read it: four digits at most after which nobody looks, a dash for what is missing."""
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


@draw.register
def _(block: blocks.Picture, names: Names) -> str:
    title = f"<h3>{escape(block.title)}</h3>" if block.title else ""
    return f'<figure class="picture">{title}{_image(block)}{_caption(block.caption)}</figure>'


def _image(block: blocks.Picture) -> str:
    crisp = ' class="crisp"' if block.crisp else ""
    size = f'width="{int(block.width)}" height="{int(block.height)}"'
    return f'<img{crisp} src="{escape(block.source, quote=True)}" {size} alt="{escape(block.alt, quote=True)}">'


@draw.register
def _(block: blocks.Compare, names: Names) -> str:
    label = escape(f"{block.title}: how much of the {block.label} is uncovered", quote=True)
    return (
        f'<figure class="compare"><h3>{escape(block.title)}</h3>'
        f'<div class="stage" style="aspect-ratio: {int(block.before.width)} / {int(block.before.height)}">'
        f'<div class="after">{_image(block.after)}</div><div class="before">{_image(block.before)}</div>'
        f'<span class="tag left" aria-hidden="true">{escape(block.label)}</span>'
        '<span class="tag right" aria-hidden="true">reconstruction</span>'
        '<span class="handle" aria-hidden="true"></span>'
        f'<input type="range" min="0" max="100" value="50" aria-label="{label}"></div>'
        f"{_caption(block.caption)}</figure>"
    )


@draw.register
def _(block: blocks.Facts, names: Names) -> str:
    tiles = [
        f"<div><dd>{escape(fact.value)}</dd><dt>{escape(fact.name)}"
        + (f"<small>{escape(fact.detail)}</small>" if fact.detail else "")
        + "</dt></div>"
        for fact in block.facts
    ]
    return f'<dl class="facts">{"".join(tiles)}</dl>'


@draw.register
def _(block: blocks.NamedValues, names: Names) -> str:
    pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in block.items.items())
    return f'<dl class="settings">{pairs}</dl>'


@draw.register
def _(block: blocks.Verdicts, names: Names) -> str:
    style = "verdicts brief" if block.brief else "verdicts"
    return f'<ul class="{style}">{"".join(_verdict(verdict, block.brief) for verdict in block.verdicts)}</ul>'


def _verdict(verdict: blocks.Verdict, brief: bool) -> str:
    word, style = ("holds", "yes") if verdict.holds else ("does not hold", "no")
    reason = "" if brief else f"<p>because {escape(verdict.because)}</p>"
    return (
        f'<li class="{style}"><span class="mark">{word}</span><div><h3>{escape(verdict.claim)}</h3>'
        f"<dl><div><dt>paper</dt><dd>{escape(verdict.paper)}</dd></div>"
        f"<div><dt>ours</dt><dd>{escape(verdict.ours)}</dd></div></dl>{reason}</div></li>"
    )


@draw.register
def _(block: blocks.SideBySide, names: Names) -> str:
    return f'<div class="row">{"".join(draw(one, names) for one in block.blocks)}</div>'


def _caption(text: str) -> str:
    return f"<figcaption>{escape(text)}</figcaption>" if text else ""
