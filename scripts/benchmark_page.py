"""Turn the JSON that `make bench` writes into the documentation's page of benchmarks.

The site's build calls `page`; by hand: ``python scripts/benchmark_page.py docs/benchmarks/*.json > page.md``. A file
is either the record of ``python -m benchmarks`` (facts, then tables and charts by experiment) or any object with ``title``
and ``tables``. Charts are those of the package's reports, in the colours of the site.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docs_heat import heat

from pointillist.report.blocks import Chart, from_plain
from pointillist.report.page import Names, cell_text, draw

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
    "map": "The map: our lead over SPORCO",
    "certificate": "What certainty costs",
    "patches": "Online learning from natural patches",
}


def page(files: Iterable[Path]) -> str:
    """Markdown of all records, in order of file name."""
    names = Names()
    return "\n".join(record(json.loads(path.read_text(encoding="utf-8")), names) for path in sorted(files))


def record(content: dict[str, Any], names: Names) -> str:
    """Markdown of one record: what was measured on what, then its tables and charts."""
    parts = [facts(content)]
    if "experiments" in content:
        for name, experiment in content["experiments"].items():
            parts.append(f"## {_TITLES.get(name, name.capitalize())}\n")
            parts += [table(one) for one in experiment["tables"]]
            parts += [chart(from_plain(one), names) for one in experiment["charts"]]
            parts.append(maps(experiment.get("maps", []), names))
    else:
        parts.append(f"## {content['title']}\n")
        parts += [table(one) for one in content["tables"]]
    return "\n".join(parts)


def maps(contents: Sequence[dict[str, Any]], names: Names) -> str:
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
    lines += [_row([cell_text(one) for one in row]) for row in content["rows"]]
    note = f"\n{content['note']}\n" if content.get("note") else ""
    return "\n".join([*lines, note])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def chart(content: Chart, names: Names) -> str:
    """A chart as the reports draw it, in one line so that Markdown leaves it alone."""
    return draw(content, names).replace("<figure ", '<figure markdown="0" ', 1).replace("\n", " ") + "\n"


if __name__ == "__main__":
    print(page([Path(name) for name in sys.argv[1:]]))
