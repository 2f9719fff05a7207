"""Run the examples of the gallery and make its pages.

``python scripts/docs_gallery.py [NAME …]`` runs them and keeps each picture and what was printed in
``docs/gallery/``, so that the site's build itself is quick: it only joins prose, code, output and picture into pages.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "gallery"
KEPT = ROOT / "docs" / "gallery"
GROUPS = {
    "Photographs mended": ("inpaint", "dust", "denoise", "deblur", "super_resolve", "demosaic"),
    "Filters and codes": ("photographs", "colour", "masked", "volume", "video", "anomaly"),
    "Signals in time": ("audio", "heartbeats"),
}
ORDER = tuple(name for names in GROUPS.values() for name in names)
_WIDEST = 1400
_WIDE = "---\nhide: [toc]\n---\n\n"


@dataclass(frozen=True)
class Example:
    """A script with its docstring taken apart: a title, a sentence, the rest."""

    name: str
    title: str
    prose: str
    code: str

    @property
    def summary(self) -> str:
        """The first sentence, as HTML."""
        first = re.split(r"(?<=\.) ", self.prose.replace("\n", " "))[0]
        return re.sub("`([^`]*)`", r"<code>\1</code>", first)


def example(name: str) -> Example:
    """Read one script."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, prose = (ast.get_docstring(tree) or "").partition("\n\n")
    if not prose:
        raise ValueError(f"examples/gallery/{name}.py needs a docstring: a title, an empty line, what is to be seen")
    code = "".join(source.splitlines(keepends=True)[tree.body[0].end_lineno :]).lstrip("\n")
    return Example(name, title.rstrip("."), prose.strip(), code)


def run(name: str, folder: Path, timeout: float = 300) -> str:
    """Run one script in a folder, where it leaves ``NAME.png``; return what it printed."""
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"examples/gallery/{name}.py failed:\n{done.stderr}")
    return done.stdout


def keep(name: str) -> None:
    """Run one script and keep its picture, as WebP to stay small, and its output."""
    with tempfile.TemporaryDirectory() as folder:
        printed = run(name, Path(folder))
        picture = Image.open(Path(folder) / f"{name}.png").convert("RGB")
    if picture.width > _WIDEST:
        picture = picture.resize((_WIDEST, round(picture.height * _WIDEST / picture.width)), Image.Resampling.LANCZOS)
    KEPT.mkdir(parents=True, exist_ok=True)
    picture.save(KEPT / f"{name}.webp", quality=86, method=6)
    (KEPT / f"{name}.txt").write_text(printed, encoding="utf-8")


def page(name: str) -> str:
    """Markdown of one example."""
    one = example(name)
    printed = (KEPT / f"{name}.txt").read_text(encoding="utf-8").rstrip()
    shown = f"\nIt prints\n\n```text\n{printed}\n```\n" if printed else ""
    # A link to the picture alone: on a phone its panels are small.
    picture = f"[![{one.title}]({name}.webp)]({name}.webp)"
    return (
        f"{_WIDE}# {one.title}\n\n{one.prose}\n\n{picture}\n\n```python\n{one.code.rstrip()}\n```\n{shown}\n"
        f"The script is `examples/gallery/{name}.py`.\n"
    )


def index() -> str:
    """Markdown of the gallery's first page: a card for each example, by groups."""
    groups = "\n".join(
        f'## {title}\n\n<div class="cards">{"".join(map(_card, names))}</div>\n' for title, names in GROUPS.items()
    )
    return (
        f"{_WIDE}# Gallery\n\nShort scripts to copy. Each runs in seconds on two cores, without data of your own, and ends "
        f"with the picture that you see.\n\n{groups}"
    )


def _card(name: str) -> str:
    one = example(name)
    return (
        f'<a class="card" href="{name}.html"><img src="{name}.webp" alt="" loading="lazy">'
        f"<strong>{one.title}</strong><span>{one.summary}</span></a>"
    )


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ORDER:
        keep(chosen)
        print(f"docs/gallery/{chosen}.webp")
