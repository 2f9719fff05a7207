"""What every benchmark is given: its options, inputs, a console to say and show things on, and a folder to write to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from paper.plain import to_plain
from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.inputs import Inputs
from benchmarks.measure import PACKAGES
from benchmarks.tables import Findings
from pointillist.plot.page import Table, cell_text, facts

T = TypeVar("T")


def parser(module: str, description: str, *, quick: str | None = "a smoke test") -> argparse.ArgumentParser:
    """The options that all benchmarks share; `quick` says what ``--quick`` does, None leaves it out."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=description.splitlines()[0])
    made.add_argument("--output", type=Path, default=Path("bench-output"))
    if quick is not None:
        made.add_argument("--quick", action="store_true", help=quick)
    return made


@dataclass(frozen=True)
class Context:
    """One run of a benchmark."""

    folder: Path
    quick: bool = False
    console: Console = field(default_factory=lambda: Console(width=None if Console().is_terminal else 160))

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Context:
        """The run that was asked for, with its folder made."""
        arguments.output.mkdir(parents=True, exist_ok=True)
        return cls(arguments.output, getattr(arguments, "quick", False))

    @cached_property
    def inputs(self) -> Inputs:
        """Images and dictionaries."""
        return Inputs(self.quick)

    def pick(self, full: T, quick: T) -> T:
        """The first in a full run, the second in a smoke test."""
        return quick if self.quick else full

    def say(self, text: str) -> None:
        """Say how far the run is."""
        self.console.print(f"  [dim]{text}[/dim]")

    def show(self, table: Table) -> None:
        """Print a table."""
        rich = RichTable(title=table.title, title_justify="left", caption=table.note or None, caption_justify="left")
        for i, column in enumerate(table.columns):
            rich.add_column(column, justify="left" if i == 0 else "right")
        for row in table.rows:
            rich.add_row(*[cell_text(cell) for cell in row])
        self.console.print(rich)

    def record(self, name: str, found: Findings, data: str, seconds: float) -> None:
        """Show the tables of an experiment and write a record of it alone, as the documentation reads them."""
        for table in found.tables:
            self.show(table)
        experiments = {name: {**vars(found), "seconds": seconds}}
        self.write(name, [], quick=self.quick, data=data, experiments=experiments)

    def write(self, name: str, tables: Sequence[Table], *, show: bool = True, **others: Any) -> None:
        """Show tables and write them to a file of that name, with the facts of the machine and whatever else there is."""
        for table in tables if show else ():
            self.show(table)
        file = self.folder / f"{name}.json"
        record = {"facts": facts(PACKAGES), **others, "tables": tables}
        file.write_text(json.dumps(to_plain(record), indent=1, ensure_ascii=False))
        self.console.print(f"tables in {file}")
