"""Tables as values: shown on the terminal by rich, kept in the JSON record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.plots import Figure

Cell = str | float | int | None


@dataclass
class Table:
    """Rows under named columns; a missing number (None) shows as a dash."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    note: str = ""

    def add(self, *cells: Cell) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(self.columns)} columns, got {len(cells)} cells")
        self.rows.append(list(cells))


@dataclass
class Report:
    """What an experiment hands back."""

    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def show(table: Table, console: Console) -> None:
    """Print a table."""
    rich = RichTable(title=table.title, title_justify="left", caption=table.note or None, caption_justify="left")
    for i, column in enumerate(table.columns):
        rich.add_column(column, justify="left" if i == 0 else "right")
    for row in table.rows:
        rich.add_row(*[_text(cell) for cell in row])
    console.print(rich)


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str | int):
        return str(cell)
    if abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.3g}"
