"""What the site's build does beyond Markdown: pages made from code and records, inserts, mathematics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_page
import docs_gallery
import docs_journey
import docs_verdicts
from docs_commands import commands
from docs_layers import diagram
from docs_mathematics import to_mathml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_INSERT = re.compile(r"^<!-- insert: (\w+)(?: ([\w-]+))? -->$", re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    made = {
        "gallery/index.md": docs_gallery.index(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    made |= {f"gallery/{name}.md": docs_gallery.page(name) for name in docs_gallery.ORDER}
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace lines such as ``<!-- insert: layers -->``."""
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


def _benchmarks(_: str) -> str:
    return benchmark_page.page((DOCS / "benchmarks").glob("*.json"))


_INSERTS: dict[str, Callable[[str], str]] = {
    "layers": lambda _: diagram(),
    "journey": docs_journey.drawing,
    "callbacks": docs_journey.listed,
    "commands": lambda _: commands(),
    "choice": _choice,
    "benchmarks": _benchmarks,
    "verdicts": lambda _: docs_verdicts.page(),
}
