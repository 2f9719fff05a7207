"""The pictures of one image's way through `learn` and through `inpaint`, drawn from the recorded calls and the imports.

Every module has one row, below the one that called it first; its column is its layer, so that calls down the layers go to
the right. What calls up is a callback, and is listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from html import escape

from docs_layers import ROOT, layers
from journey import PACKAGE, Call, recorded
from laws import import_graph, read_modules

_WIDTH, _TOP, _ROW = 760, 50, 20
_COLUMN, _STEP = 62, 12  # width of a layer, and of a module further into a package
_NAME, _SIGNS = 166, 33  # width of the names, and how many signs fit behind them


@dataclass(frozen=True)
class Station:
    """A module on the way, entered first by a call from `parent`, which calls `functions` of it."""

    name: str
    parent: str
    functions: tuple[str, ...]
    depth: int

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]


def stations(command: str) -> list[Station]:
    """Modules on the way of an image through a command, each once, below the module that calls it first.

    Branches below one module are in the order in which their last modules were reached: what is only prepared at first and
    does its work later stands where it works.
    """
    calls = recorded()[command]
    first: dict[str, Station] = {}
    for call in calls:
        name = _short(call.callee)
        parent = next((one for one in map(_short, call.stack) if _is_down(one, name)), "")
        if parent and name not in first:
            first[name] = Station(name, parent, tuple(call.functions), 0)
    root = Station(_short(calls[0].caller), "", (), 0)
    first.pop(root.name, None)
    return list(_below(root, list(first.values())))


def _below(station: Station, found: list[Station]) -> Iterator[Station]:
    yield station
    order = {one.name: place for place, one in enumerate(found)}

    def last(name: str) -> int:
        return max([order[name], *(last(one.name) for one in found if one.parent == name)])

    for one in sorted((one for one in found if one.parent == station.name), key=lambda one: last(one.name)):
        yield from _below(replace(one, depth=station.depth + 1 if one.package == station.package else 0), found)


def callbacks(command: str) -> list[Call]:
    """Calls that go up the layers, or across them, the first between any two modules."""
    return [call for call in recorded()[command] if not _is_down(_short(call.caller), _short(call.callee))]


def _short(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.")


def _is_down(caller: str, callee: str) -> bool:
    """Whether a call goes down the layers or stays in its package."""
    one, other = caller.partition(".")[0], callee.partition(".")[0]
    return one == other or _rows()[one] < _rows()[other]


@cache
def _rows() -> dict[str, int]:
    return {name: row for row, names in enumerate(layers()) for name in names}


@cache
def _reached() -> dict[str, set[str]]:
    """Modules that each module imports, also by way of a package that only hands names on."""
    modules = read_modules(ROOT / "src" / PACKAGE)
    graph = {name: set(targets) for name, targets in import_graph(modules).items()}
    packages = {name for name, module in modules.items() if module.is_package}
    return {name: targets.union(*(graph[one] for one in targets & packages)) for name, targets in graph.items()}


def imports(caller: str, callee: str) -> bool:
    """Whether a module imports another that it calls; otherwise it was handed the object or function."""
    return f"{PACKAGE}.{callee}" in _reached()[f"{PACKAGE}.{caller}"]


def drawing(command: str) -> str:
    """The way as SVG that takes its colours from the page, in one line so that Markdown leaves it alone."""
    way = stations(command)
    columns, names = _columns(way)
    places = {
        one.name: (columns[_rows()[one.package]] + one.depth * _STEP, _TOP + i * _ROW + _ROW // 2)
        for i, one in enumerate(way)
    }
    lines = "".join(_line(one, places) for one in way if one.parent)
    rows = "".join(_row(one, *places[one.name], names, _callers(command)[one.name]) for one in way)
    title = f"Modules that an image passes in {command}, each below the one that calls it first"
    height = _TOP + _ROW * len(way) + 6
    return (
        f'<svg class="journey" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}">'
        f'<title>{title}</title>{_heads(way, columns, height)}<g class="calls">{lines}</g>{rows}</svg>'
    )


def _columns(way: list[Station]) -> tuple[dict[int, int], int]:
    """Where each layer on the way begins, and where the names do."""
    x, columns = 8, {}
    for row in sorted({_rows()[one.package] for one in way}):
        columns[row] = x
        deepest = max(one.depth for one in way if _rows()[one.package] == row)
        x += max(_COLUMN, (deepest + 1) * _STEP + 12)
    return columns, x


def _heads(way: list[Station], columns: dict[int, int], height: int) -> str:
    """Names of the packages above their columns, and a band behind every second column."""
    drawn = []
    edges = [*columns.values(), _columns(way)[1]]
    for i, (row, x) in enumerate(columns.items()):
        packages = [name for name in layers()[row] if any(one.package == name for one in way)]
        if i % 2 == 0:
            drawn.append(f'<rect x="{x - 8}" y="0" width="{edges[i + 1] - x}" height="{height}"/>')
        for j, name in enumerate(reversed(packages)):
            drawn.append(f'<text class="head" x="{x - 4}" y="{_TOP - 8 - 13 * j}">{escape(name)}</text>')
    return "".join(drawn)


def _line(station: Station, places: dict[str, tuple[int, int]]) -> str:
    """From the caller down and to the right; broken where the caller was handed what it calls."""
    (x0, y0), (x1, y1) = places[station.parent], places[station.name]
    handed = "" if imports(station.parent, station.name) else ' class="handed"'
    return f'<path{handed} d="M{x0},{y0} V{y1 - 6} Q{x0},{y1} {x0 + 6},{y1} H{x1}"/>'


def _row(station: Station, x: int, y: int, names: int, callers: list[str]) -> str:
    entrance = not station.parent or station.parent.partition(".")[0] != station.package
    public = [name for name in station.functions if not any(part.startswith("_") for part in name.split("."))]
    also = f"called by {', '.join(callers)}" if callers else "where the command begins"
    return (
        f'<g><title>{escape(f"{station.name}: {also}")}</title><path class="guide" d="M{x + 8},{y} H{names - 6}"/>'
        f'<circle cx="{x}" cy="{y}" r="{4.5 if entrance else 3.5}"/>'
        f'<text class="{"name" if entrance else "inner"}" x="{names}" y="{y + 4}">{escape(station.name)}</text>'
        f'<text class="says" x="{names + _NAME}" y="{y + 4}">{escape(_fitted(public))}</text></g>'
    )


def _fitted(names: list[str]) -> str:
    """As many names as a row has room for."""
    text = ""
    for name in names:
        longer = f"{text}, {name}" if text else name
        if len(longer) > _SIGNS:
            return f"{text} …" if text else name
        text = longer
    return text


@cache
def _callers(command: str) -> dict[str, list[str]]:
    """For every module those that call it, in the order of their first calls."""
    found: dict[str, list[str]] = defaultdict(list)
    for call in recorded()[command]:
        found[_short(call.callee)].append(_short(call.caller))
    return found


def listed(command: str) -> str:
    """The calls that go up, as a list in Markdown."""
    return "\n".join(
        f"- `{_short(call.caller)}` calls `{', '.join(call.functions)}` of `{_short(call.callee)}`"
        for call in callbacks(command)
    )
