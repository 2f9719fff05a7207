"""Turn the JSON that `make bench` writes into the documentation's pages of benchmarks.

The pages in ``docs/benchmarks`` name the records that they show, and the site's build calls `show` for each;
`headlines` makes the table of the first page. By hand: ``python scripts/benchmark_page.py 1-encode > page.md``. A
record is either that of ``python -m benchmarks`` (facts, then tables and charts by experiment) or any object with
``title`` and ``tables``, and with ``maps`` where it has some. Charts are those of the package's reports, in the colours
of the site.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from docs_heat import heat

from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import cell_text, draw, new_names

RECORDS = Path(__file__).parents[1] / "docs" / "benchmarks"

_TITLES = {
    "encode": "Beside SPORCO",
    "online": "Online learning",
    "batch": "Batch learning",
    "sampling": "Sampling",
    "overcomplete": "Under- and over-complete dictionaries",
    "scaling": "One size after the other",
    "sizes": "Filters of several sizes",
    "profile": "Where the time goes",
    "study": "Studies",
    "map": "The map: our lead over SPORCO",
    "certificate": "What certainty costs",
    "patches": "Online learning from natural patches",
}


_AXES = {"s": "seconds", "MB": "peak memory, MB", "sampling": "sampling, p"}


class Headline(NamedTuple):
    """Where a row of the first page's table comes from: one or two cells of one table."""

    task: str
    record: str
    table: str
    ours: tuple[str, str]
    theirs: tuple[str, str]
    unit: str
    rival: str
    page: str


_FIRST, _MANY = "100 filters, 100×100, one at a time", "400 filters, 100×100, one at a time"
_NOISE, _SCRATCHES = "Gaussian noise, σ = 25", "2 megapixels, 26 pictures: means"
_MEG, _BEATS = "10 rank-one filters", "area under the precision-recall curve"
HEADLINES = (
    Headline("code an image with 100 filters to 0.1 % of the optimum", "1-encode", "Encoding to 0.1%",
             (_FIRST, "ours"), (_FIRST, "SPORCO"), "ms", "SPORCO, tuned ADMM", "encoding"),
    Headline("the same with a certified gap of 0.1 %", "1-encode", "One image to a relative duality gap",
             ("ours", "ms"), ("SPORCO ADMM, ρ = 7", "ms"), "ms", "SPORCO, 300 iterations", "encoding"),
    Headline("code an image with 400 filters to 0.1 % of the optimum", "1-encode", "Encoding to 0.1%",
             (_MANY, "ours"), (_MANY, "SPORCO"), "ms", "SPORCO, tuned ADMM", "encoding"),
    Headline("learn online to the level of SPORCO's first pass", "2-online", "Online learning",
             ("SPORCO its default steps", "ours s, defaults"), ("SPORCO its default steps", "SPORCO s"), "s",
             "SPORCO, its default steps", "learning"),
    Headline("the same, its steps tuned by us, both on the circular problem", "2-online", "Online learning",
             ("SPORCO tuned", "ours s, circular, long ridge"), ("SPORCO tuned", "SPORCO s"), "s",
             "SPORCO, tuned", "learning"),
    Headline("find ten patterns in 204 noisy channels", "92-signals", _MEG,
             ("OnlineCSC, 1 pass", "s"), ("alphacsc BatchCDL, 20 iterations", "s"), "s", "alphacsc", "signals"),
    Headline("abnormal heartbeats, area under precision and recall", "92-signals", _BEATS,
             ("mba_805", "least"), ("mba_805", "NormA"), "", "NormA, the best published", "signals"),
    Headline("fill in scratches of 2 megapixels", "91-photographs", _SCRATCHES,
             ("scratches", "pointillist dB"), ("scratches", "biharmonic dB"), "dB", "biharmonic", "photographs"),
    Headline("remove Gaussian noise, σ = 25", "5-restoration", _NOISE,
             ("pointillist", "mean dB"), ("bm3d", "mean dB"), "dB", "BM3D: use that for noise", "photographs"),
)  # fmt: skip


def show(name: str) -> str:
    """Markdown of one record, or of one experiment of it: ``4-others`` or ``4-others.scaling``."""
    stem, _, experiment = name.partition(".")
    content = read(stem)
    if experiment:
        content["experiments"] = {experiment: content["experiments"][experiment]}
    return record(content, new_names(stem + experiment))


def read(stem: str) -> dict[str, Any]:
    """One record by its name."""
    content: dict[str, Any] = json.loads((RECORDS / f"{stem}.json").read_text(encoding="utf-8"))
    return content


def record(content: dict[str, Any], names: Callable[[], str]) -> str:
    """Markdown of one record: its tables and charts, then what was measured on what."""
    parts = []
    if "experiments" in content:
        for name, experiment in content["experiments"].items():
            parts.append(f"## {_TITLES.get(name, name.capitalize())}\n")
            parts.append(side_by_side([stored_chart(one) for one in experiment["charts"]], names))
            parts += [table(one) for one in experiment["tables"]]
            parts.append(maps(experiment.get("maps", []), names))
    else:
        parts.append(f"## {content['title']}\n")
        parts += [table(one) for one in content["tables"]]
        parts.append(maps(content.get("maps", []), names))
    return "\n".join([*parts, facts(content)])


def chart_of(name: str) -> str:
    """The first chart of a record's first experiment."""
    (experiment, *_) = read(name)["experiments"].values()
    return side_by_side([stored_chart(experiment["charts"][0])], new_names(f"{name}-first"))


def stored_chart(content: dict[str, Any]) -> Chart:
    """A chart of a record."""
    curves = [Curve(**{name: value for name, value in one.items() if name != "kind"}) for one in content["curves"]]
    return Chart(**{name: value for name, value in content.items() if name != "kind"} | {"curves": curves})


def headlines() -> str:
    """The first page's table: a row for each task, every figure looked up in its record."""
    lines = [
        "| to do what | ours | theirs | ours against theirs | beside | |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    for one in HEADLINES:
        ours, theirs = (cell(one, *place) for place in (one.ours, one.theirs))
        timed = one.unit in ("s", "ms")
        gain = f"{theirs / ours:,.3g} times as fast" if timed else f"{ours - theirs:+.2g} {one.unit}"
        better = theirs > ours if timed else ours > theirs
        values = [f"{cell_text(round(value, 4))} {one.unit}".strip() for value in (ours, theirs)]
        values[not better] = f"**{values[not better]}**"
        lines.append(_row([one.task, *values, gain, one.rival, f"[tables](benchmarks/{one.page}.md)"]))
    return "\n".join(lines) + "\n"


def cell(headline: Headline, row: str, column: str) -> float:
    """One figure of the table that a headline names; `row` is in the first or second column."""
    content = read(headline.record)
    tables = content.get("tables") or [one for e in content["experiments"].values() for one in e["tables"]]
    found = next((one for one in tables if one["title"].startswith(headline.table)), None)
    for cells in found["rows"] if found else []:
        if row in cells[:2]:
            return float(cells[found["columns"].index(column)])
    raise ValueError(f"{headline.record} has no table {headline.table!r} with a row {row!r}")


def maps(contents: Sequence[dict[str, Any]], names: Callable[[], str]) -> str:
    """Heat maps one below the other, in one line so that Markdown leaves them alone."""
    drawn = "".join(heat(one, names()) for one in contents)
    return f'<div class="heat" markdown="0">{drawn}</div>\n' if drawn else ""


def facts(content: dict[str, Any]) -> str:
    """One sentence about the machine, the versions and the data."""
    machine = content.get("facts")
    if not machine:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"Measured on {machine['when'][:10]}: {machine['processor']}, {machine['threads']} threads, Python "
        f"{machine['python']}; {versions}. Data: {content.get('data', 'as stated')}.\n{{ .measured }}\n"
    )


def table(content: dict[str, Any]) -> str:
    """A Markdown table under its title, with its note."""
    lines = [
        f"**{content['title']}**\n",
        _row(content["columns"]),
        "| --- |" + " ---: |" * (len(content["columns"]) - 1),
    ]
    lines += [_row([cell_text(one) for one in row]) for row in content["rows"]]
    note = f"\n{content['note']}\n" if content.get("note") else ""
    return "\n".join([*lines, note])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def side_by_side(charts: Sequence[Chart], names: Callable[[], str]) -> str:
    """Charts beside each other where there is room, in one line so that Markdown leaves them alone."""
    drawn = "".join(chart(one, names) for one in charts)
    return f'<div class="charts" markdown="0">{drawn}</div>\n' if drawn else ""


def chart(content: Chart, names: Callable[[], str]) -> str:
    """A chart as the reports draw it, with whole words at its axes."""
    named = replace(content, x=_AXES.get(content.x, content.x), y=_AXES.get(content.y, content.y))
    named = replace(named, title=named.title[:1].upper() + named.title[1:])
    return draw(named, names).replace("\n", " ")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(show(given))
