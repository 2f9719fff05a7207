"""What an experiment finds, as values of the package's reports: tables that grow row by row, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pointillist.plot import page
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Cell

Curves = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Names of curves to their x and y."""


class Table(page.Table):
    """A table of a report whose rows are added one by one."""

    def __init__(self, title: str, columns: Sequence[str], note: str = "") -> None:
        super().__init__(columns, [], title, note)

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table of rows whose names are the columns; yes and no for what is true and false."""
        table = cls(title, list(rows[0]))
        for row in rows:
            table.add(*[("no", "yes")[one] if isinstance(one, bool) else one for one in row.values()])
        return table

    def add(self, *cells: Cell) -> None:
        """Add a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(self.columns)} columns, got {len(cells)} cells")
        self.rows.append(list(cells))


@dataclass
class Findings:
    """What an experiment hands back."""

    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    maps: list[dict[str, Any]] = field(default_factory=list)
    """Heat maps as `heat_map` makes them; the documentation draws them."""


def heat_map(
    title: str, x: str, columns: Sequence[str], rows: Mapping[str, Sequence[float | None]], note: str = ""
) -> dict[str, Any]:
    """Values over columns that `x` names, in rows that are named; None where there is no value."""
    for name, values in rows.items():
        if len(values) != len(columns):
            raise ValueError(f"{title}: {len(columns)} columns, got {len(values)} values of {name}")
    named = {"title": title, "x": x, "columns": list(columns), "note": note}
    return {**named, "rows": list(rows), "values": [list(values) for values in rows.values()]}


def chart(
    title: str,
    x: str,
    y: str,
    curves: Curves,
    *,
    levels: Mapping[str, float] | None = None,
    log_x: bool = True,
    log_y: bool = False,
) -> Chart:
    """A chart of named curves: ours in the first colours, SPORCO's dashed."""
    ours_first = sorted(curves, key=lambda name: name.startswith("SPORCO"))
    colours = {name: f"c{i % 8}" for i, name in enumerate(ours_first)}
    drawn = [
        Curve(name, across, down, colours[name], "dashed" if name.startswith("SPORCO") else "line")
        for name, (across, down) in curves.items()
    ]
    return Chart(title, x, y, drawn, levels or {}, log_x, log_y)
