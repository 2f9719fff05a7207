"""Steps of the site's build beyond Markdown: pages made from code and records, inserts, mathematics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_page
import docs_gallery
import docs_notebook
import docs_verdicts
from docs_commands import commands
from docs_mathematics import to_mathml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_INSERT = re.compile(r"^<!-- insert: (\w+)(?: ([\w.-]+))? -->$", re.M)
_MENU = ("../versions.js", "assets/versions.js")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the pages a menu of versions where they are built as one of several (scripts/docs_version.py)."""
    if config.extra.get("version_name"):
        config.extra_javascript.extend(_MENU)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    made = {
        "gallery/index.md": docs_gallery.index(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    made |= {f"gallery/{name}.md": docs_gallery.page(name) for name in docs_gallery.ORDER}
    tour, pictures = docs_notebook.page()
    for uri, content in (made | {"tour.md": tour} | pictures).items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace lines such as ``<!-- insert: commands -->``."""
    return _INSERT.sub(lambda found: _INSERTS[found[1]](found[2] or ""), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Set the mathematics."""
    return to_mathml(html)


def on_post_build(config: MkDocsConfig) -> None:
    """The index of the search as a script, which pages may load from the disk, where they may not fetch."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text(encoding='utf-8')}", encoding="utf-8")


def _choice(name: str) -> str:
    """A measured table of the page about choosing parameters."""
    record = json.loads((DOCS / "measured" / "choices.json").read_text(encoding="utf-8"))
    return benchmark_page.table(record["tables"][name])


_INSERTS: dict[str, Callable[[str], str]] = {
    "commands": lambda _: commands(),
    "choice": _choice,
    "benchmarks": benchmark_page.show,
    "headlines": lambda _: benchmark_page.headlines(),
    "chart": benchmark_page.chart_of,
    "verdicts": lambda _: docs_verdicts.page(),
}
