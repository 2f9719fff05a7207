"""Turn the JSON that `make bench` writes into the documentation's page of benchmarks.

The site's build calls `page`; by hand: ``python scripts/benchmark_page.py docs/benchmarks/*.json > page.md``. A file
is either the record of ``python -m benchmarks`` (facts, then tables by experiment) or any object with ``title`` and
``tables``. Its curves are drawn as SVG.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

_TITLES = {
    "encode": "Encoding",
    "online": "Online learning",
    "batch": "Batch learning",
    "sampling": "Sampling",
    "overcomplete": "Under- and over-complete dictionaries",
    "scaling": "Scaling",
    "sizes": "Filters of several sizes",
    "profile": "Where the time goes",
    "study": "Studies",
}
_OTHERS = (0, 2, 3, 4, 5, 6, 7)
"""Colours of the style sheet that other curves than ours take."""


def page(files: Iterable[Path]) -> str:
    """Markdown of all records, in order of file name."""
    return "\n".join(record(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(files))


def record(content: dict[str, Any]) -> str:
    """Markdown of one record: what was measured on what, then its tables and curves."""
    parts = [facts(content)]
    if "experiments" in content:
        for name, experiment in content["experiments"].items():
            parts.append(f"## {_TITLES.get(name, name.capitalize())}\n")
            parts += [table(one) for one in experiment["tables"]]
            parts += [curves(one) for one in experiment.get("figures", [])]
    else:
        parts.append(f"## {content['title']}\n")
        parts += [table(one) for one in content["tables"]]
    return "\n".join(parts)


def facts(content: dict[str, Any]) -> str:
    """One sentence about the machine, the versions and the data."""
    machine = content.get("facts")
    if not machine:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"*{machine['when'][:10]}: {machine['processor']}, {machine['threads']} threads, Python {machine['python']}; "
        f"{versions}. Data: {content.get('data', 'as stated')}.*\n"
    )


def table(content: dict[str, Any]) -> str:
    """A Markdown table under its title, with its note."""
    lines = [
        f"**{content['title']}**\n",
        _row(content["columns"]),
        "| --- |" + " ---: |" * (len(content["columns"]) - 1),
    ]
    lines += [_row([cell(one) for one in row]) for row in content["rows"]]
    note = f"\n{content['note']}\n" if content.get("note") else ""
    return "\n".join([*lines, note])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def cell(value: str | float | int | None) -> str:
    """A number as a reader wants it; None is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def curves(content: dict[str, Any]) -> str:
    """The curves of one figure as SVG: both axes logarithmic where the values ask for it."""
    lines = {
        name: [(x, y) for x, y in zip(*xy, strict=True) if _drawable(x, y)] for name, xy in content["curves"].items()
    }
    lines = {name: points for name, points in lines.items() if points}
    if not lines:
        return ""
    across = _Axis([x for points in lines.values() for x, _ in points], 70, 700)
    down = _Axis([y for points in lines.values() for _, y in points], 300, 12)
    ticks = "".join(
        f'<line class="grid" x1="{across.at(v):.1f}" x2="{across.at(v):.1f}" y1="12" y2="300"/>'
        f'<text x="{across.at(v):.1f}" y="317" text-anchor="middle">{v:,g}</text>'
        for v in across.ticks()
    ) + "".join(
        f'<line class="grid" x1="70" x2="700" y1="{down.at(v):.1f}" y2="{down.at(v):.1f}"/>'
        f'<text x="63" y="{down.at(v) + 4:.1f}" text-anchor="end">{v:,g}</text>'
        for v in down.ticks()
    )
    drawn, legend = "", ""
    for i, (name, points) in enumerate(lines.items()):
        look = "ours" if name.startswith(("pointillist", "ours")) else f"curve{_OTHERS[i % len(_OTHERS)]}"
        path = " ".join(f"{across.at(x):.1f},{down.at(y):.1f}" for x, y in points)
        drawn += f'<polyline class="{look}" points="{path}"><title>{escape(name)}</title></polyline>'
        legend += f'<li><span class="{look}"></span>{escape(name)}</li>'
    label = escape(f"{content['title']}: {content['y']} against {content['x']}")
    return (
        f'<figure class="curves" markdown="0"><svg viewBox="0 0 720 350" role="img" aria-label="{label}">{ticks}{drawn}'
        f'<text class="axis" x="385" y="340" text-anchor="middle">{escape(content["x"])}</text></svg>'
        f"<figcaption>{label}.</figcaption><ul>{legend}</ul></figure>\n"
    )


def _drawable(x: float | None, y: float | None) -> bool:
    return x is not None and y is not None and math.isfinite(x) and math.isfinite(y)


class _Axis:
    """Positions along one side of a chart, logarithmic when the values span more than a decade."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = min(values), max(values)
        self.logarithmic = low > 0 and high > 10 * low
        margin = 0.0 if self.logarithmic else 0.05 * (high - low or 1.0)
        self.low, self.high = self._scale(low) - margin, self._scale(high) + margin
        self.start, self.end = start, end

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value

    def at(self, value: float) -> float:
        share = (self._scale(value) - self.low) / ((self.high - self.low) or 1.0)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            every = range(math.ceil(self.low), math.floor(self.high) + 1)
            return [10.0**k for k in every]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
        step = next(step * m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 6)
        first = math.ceil(self.low / step)
        return [round(step * k, 10) for k in range(first, math.floor(self.high / step) + 1)]


if __name__ == "__main__":
    print(page([Path(name) for name in sys.argv[1:]]))
