"""What ``pointillist encode`` says about the signals that it coded: a table, CSV, JSON, and entries of the codes file."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from pointillist.cli.console import count, say, write
from pointillist.cli.paths import DASH
from pointillist.codes import SparseCodes
from pointillist.large import walked
from pointillist.reprs import sizes
from pointillist.solvers.base import Result, Status
from pointillist.storage import atomic_path
from pointillist.storage.schema import either, list_of, nothing, number, one_of, record, text, whole
from pointillist.validation import extremes

COLUMNS = ("name", "shape", "objective", "gap", "status", "nonzeros", "psnr", "seconds", "reason")
"""Columns of the CSV file; of a signal that was left out only the name, the status "skipped" and the reason."""
_NAMED = 20
"""Skipped signals that are named in the terminal; the codes file lists all of them."""

check_rows = list_of(
    record(
        {
            "name": text,
            "shape": list_of(whole(1)),
            "objective": number(),
            "gap": number(),
            "nonzeros": whole(0),
            "psnr": either("a number or null", number(), nothing),
            "status": one_of([status.value for status in Status]),
            "seconds": number(0),
        }
    )
)
"""Raises ValueError unless a list holds what `CodedSignal.entry` gives."""


@dataclass(frozen=True)
class CodedSignal:
    """What is said about one signal; `seconds` is its share, by samples, of the time of those that it was coded with."""

    name: str
    shape: tuple[int, ...]
    objective: float
    gap: float
    nonzeros: int
    psnr: float | None
    status: Status
    seconds: float

    def entry(self) -> dict[str, Any]:
        """The signal as an entry of JSON and of metadata."""
        return {**asdict(self), "shape": list(self.shape), "status": self.status.value}

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> "CodedSignal":
        """The signal of an entry that `check_rows` has passed."""
        return cls(**{**entry, "shape": tuple(entry["shape"]), "status": Status(entry["status"])})


@dataclass
class Coded:
    """All that was coded so far, in order, and what was left out: number of the signal, its name, and why."""

    codes: list[SparseCodes] = field(default_factory=list)
    rows: list[CodedSignal] = field(default_factory=list)
    skipped: dict[int, tuple[str, str]] = field(default_factory=dict)

    def all_codes(self) -> SparseCodes:
        """The codes of all signals, with the signals' names."""
        return SparseCodes.concatenate(self.codes)

    def left_out(self) -> list[dict[str, str]]:
        """What was left out, and why, as JSON has it."""
        return [{"name": name, "reason": reason} for _, (name, reason) in sorted(self.skipped.items())]


def coded_rows(names: Sequence[str], signals: Sequence[NDArray], result: Result, seconds: float) -> list[CodedSignal]:
    """What to say about signals that were coded together in so many seconds."""
    samples = sum(signal.size for signal in signals)
    return [
        CodedSignal(
            name,
            signal.shape,
            float(result.objective[i]),
            float(result.gap[i]),
            result.codes[i].nnz,
            _decibels(signal, result.residuals[i]),
            result.statuses[i],
            seconds * signal.size / samples,
        )
        for i, (name, signal) in enumerate(zip(names, signals, strict=True))
    ]


def _decibels(signal: NDArray, residual: NDArray) -> float | None:
    """PSNR of what was seen, with its range as peak, from what the codes leave; None where that is no number."""
    ends, missing = [], 0
    for _, rows in walked(signal[None]):
        ends.append(extremes(signal[rows]))
        missing += int(np.count_nonzero(np.isnan(signal[rows])))
    span = float(np.nanmax(ends) - np.nanmin(ends))
    error = sum(float(np.sum(np.square(residual[band], dtype=np.float64))) for band in walked(residual))
    if span == 0 or error == 0:
        return None
    return 10 * float(np.log10(span**2 * (residual.size - missing) / error))


def write_table(coded: Coded, path: Path) -> None:
    """Write a line of CSV for every signal, to a file or to standard output."""
    if path == DASH:
        write(_lines(coded))
        return
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="", errors="replace") as file:
        file.writelines(f"{line}\n" for line in _lines(coded))


def _lines(coded: Coded) -> Iterator[str]:
    yield ",".join(COLUMNS)
    for row in coded.rows:
        entry = {**row.entry(), "shape": "x".join(map(str, row.shape)), "reason": None}
        yield _line([entry[column] for column in COLUMNS])
    for one in coded.left_out():
        yield _line([{**one, "status": "skipped"}.get(column) for column in COLUMNS])


def _line(cells: list[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(cells)
    return buffer.getvalue()


def print_json(coded: Coded, facts: dict[str, Any]) -> None:
    """Print everything as JSON."""
    every = {**facts, "signals": [row.entry() for row in coded.rows], "skipped": coded.left_out()}
    write(json.dumps(every, indent=2, ensure_ascii=False).split("\n"))


def print_table(coded: Coded) -> None:
    """Print a line for every signal, and what was left out."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("signal", overflow="fold")
    for heading in ("size", "objective", "relative gap", "non-zeros", "PSNR"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for row in coded.rows:
        table.add_row(
            row.name,
            sizes(row.shape),
            f"{row.objective:,.2f}",
            f"{row.gap:.1e}",
            f"{row.nonzeros:,}",
            "–" if row.psnr is None else f"{row.psnr:.2f} dB",
            row.status.value,
        )
    say(table)
    skipped = coded.left_out()
    if skipped:
        more = len(skipped) - _NAMED
        say(f"left out {count(len(skipped), 'signal')}:", *[f"  {one['reason']}" for one in skipped[:_NAMED]])
        if more > 0:
            say(f"  and {more} more, which the codes file lists")
