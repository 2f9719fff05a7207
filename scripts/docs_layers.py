"""The picture of the layers, drawn from the imports as they are, and checked against the contract in pyproject.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
_PACKAGE = "pointillist"
_WIDTH, _ROW, _BOX, _GAP = 760, 92, 52, 14

_SAYS = {
    "cli": "the command",
    "mne": "MNE's Raw and Epochs",
    "app": "the page",
    "reproduce": "the paper's figures",
    "restore": "pictures mended",
    "report": "figures, pages",
    "anomalies": "what is strange",
    "learners": "encode, add, update",
    "solvers": "codes",
    "dictionary": "filters",
    "data": "signals in",
    "storage": "files",
    "model": "problem, geometry, certificate",
    "backends": "numba and CUDA kernels",
    "errors": "exceptions",
    "system": "Linux, macOS, Windows",
}


@dataclass(frozen=True)
class Box:
    """A package in the picture."""

    name: str
    row: int
    x: float
    width: float
    modules: int

    @property
    def y(self) -> float:
        return 10 + self.row * _ROW

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def layers(pyproject: Path = ROOT / "pyproject.toml") -> list[list[str]]:
    """Packages of each layer, the highest first, as the contract has them."""
    contract = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    return [[name.strip().removeprefix(f"{_PACKAGE}.") for name in row.split("|")] for row in contract["layers"]]


def imports() -> dict[tuple[str, str], int]:
    """How many modules of one package import from another, counted in the sources."""
    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    counts: dict[tuple[str, str], int] = {}
    for module in graph.modules:
        importer = _top(module)
        reached = {_top(name) for name in graph.find_modules_directly_imported_by(module)}
        for imported in reached - {importer, ""}:
            if importer:
                counts[importer, imported] = counts.get((importer, imported), 0) + 1
    return counts


def _top(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def diagram() -> str:
    """The picture as SVG that takes its colours from the page, in one line so that Markdown leaves it alone."""
    counts = imports()
    boxes = {box.name: box for box in _boxes(layers())}
    if missing := {name for pair in counts for name in pair} - set(boxes):
        raise ValueError(f"the layers in pyproject.toml leave out {', '.join(sorted(missing))}")
    height = 10 + _ROW * len(layers()) - (_ROW - _BOX) + 10
    arrows = "".join(_arrow(boxes[a], boxes[b], n) for (a, b), n in sorted(counts.items()))
    drawn = "".join(_drawn(box) for box in boxes.values())
    title = "Packages of Pointillist in layers; lines are imports and all of them point down"
    return (
        f'<svg class="layers" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{arrows}{drawn}</svg>"
    )


def _boxes(rows: list[list[str]]) -> list[Box]:
    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    boxes = []
    for row, names in enumerate(rows):
        width = (_WIDTH - _GAP * (len(names) - 1) - 2) / len(names)
        for i, name in enumerate(names):
            modules = sum(_top(module) == name for module in graph.modules)
            boxes.append(Box(name, row, 1 + i * (width + _GAP), width, modules))
    return boxes


def _arrow(upper: Box, lower: Box, count: int) -> str:
    """A curve from a package down to one it imports, wider the more of its modules do so."""
    start, end = upper.y + _BOX, lower.y
    # Lines to one box spread a little, so that they can be told apart.
    x0 = upper.middle + (lower.middle - upper.middle) * 0.12
    x1 = lower.middle - (lower.middle - upper.middle) * 0.12
    bend = (end - start) / 2
    width = min(1 + count / 4, 5)
    label = f"{upper.name} → {lower.name}: {count} module{'s' if count > 1 else ''}"
    return (
        f'<path d="M{x0:.1f},{start:.1f} C{x0:.1f},{start + bend:.1f} {x1:.1f},{end - bend:.1f} {x1:.1f},{end:.1f}" '
        f'stroke-width="{width:.2f}"><title>{escape(label)}</title></path>'
    )


def _drawn(box: Box) -> str:
    says = f"{_SAYS.get(box.name, '')} · {box.modules}" if box.name in _SAYS else str(box.modules)
    return (
        f'<g><rect x="{box.x:.1f}" y="{box.y}" width="{box.width:.1f}" height="{_BOX}" rx="6"/>'
        f'<text class="name" x="{box.middle:.1f}" y="{box.y + 22}">{escape(box.name)}</text>'
        f'<text class="says" x="{box.middle:.1f}" y="{box.y + 40}">{escape(says)}</text></g>'
    )
