"""Tables in text, as ``.csv`` and ``.tsv`` files hold them, read piece by piece: lines are moments, columns channels.

What a table is written in (delimiter, decimal comma, names, times) is found by `tableheads` from its first lines.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.tableheads import TableHead, as_number, cells_of, find_head, is_missing, missing_cells, text_lines
from pointillist.large import LARGE
from pointillist.reprs import shown
from pointillist.storage import check_regular

_PIECE = 2**22
"""Characters of lines that are turned to numbers at a time."""
_JUMP = 1.9
"""A step in time of so many usual ones is a jump; shorter ones come from times that are rounded."""


@dataclass(frozen=True)
class Table:
    """A table of numbers.

    Attributes
    ----------
    samples : (rows, columns) float32 array
        Without times; NaN where a cell is empty. In an unnamed temporary file where it is large.
    names : tuple of str
        Names of the columns; empty where the table has no line of names.
    sampling_rate : float or None
        Samples in a second, where the first column says so.
    left_out : str or None
        The name of the first column where that holds times or counts samples; None where all columns are samples.
    """

    samples: NDArray[np.float32]
    names: tuple[str, ...]
    sampling_rate: float | None
    left_out: str | None


def read_table(path: Path) -> Table:
    """Read a table; raises ValueError with the line and what is wrong there, without the name of the file."""
    check_regular(path, "table")
    head = find_head(path)
    left_out = "".join(head.names[:1]) if head.timed else None
    times = _Times(head.unit, guessed=left_out == "")
    store = _Store()
    for numbers, lines in _pieces(path, head):
        values = _numbers(numbers, lines, head)
        if head.padded:
            _check_padding(values[:, -1], numbers)
            values = values[:, :-1]
        if head.timed:
            times.add(values[:, 0], numbers)
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
            store.add(values[:, int(head.timed) :].astype(np.float32))
    return Table(store.array(), head.names[int(head.timed) :], times.rate() if head.timed else None, left_out)


def _pieces(path: Path, head: TableHead) -> Iterator[tuple[list[int], list[str]]]:
    """Yield the numbers of some lines, and these lines."""
    numbers: list[int] = []
    lines: list[str] = []
    held = 0
    for number, line in text_lines(path, head.encoding):
        if number < head.first_line:
            continue
        numbers.append(number)
        lines.append(line)
        held += len(line)
        if held >= _PIECE:
            yield numbers, lines
            numbers, lines, held = [], [], 0
    if lines:
        yield numbers, lines


def _numbers(numbers: list[int], lines: list[str], head: TableHead) -> NDArray[np.float64]:
    """The numbers of some lines, (lines, columns)."""
    plain = [line.replace(",", ".") for line in lines] if head.comma else lines
    found = _parsed(plain, head)
    if found is None:
        empty = missing_cells(head.delimiter)
        found = _parsed([empty.sub(r"\1nan", line) for line in plain], head)
    return _one_by_one(numbers, lines, head) if found is None else found


def _parsed(lines: list[str], head: TableHead) -> NDArray[np.float64] | None:
    """The numbers of lines by NumPy's parser; None where it refuses them."""
    try:
        found = np.loadtxt(lines, np.float64, comments=None, delimiter=head.delimiter, quotechar='"', ndmin=2)
    except ValueError:
        return None
    return found if found.shape == (len(lines), head.columns) else None


def _one_by_one(numbers: list[int], lines: list[str], head: TableHead) -> NDArray[np.float64]:
    """The numbers of lines cell by cell; raises where a line has other columns or a cell holds no number."""
    found = np.empty((len(lines), head.columns))
    for row, (number, line) in enumerate(zip(numbers, lines, strict=True)):
        cells = cells_of(line, head.delimiter)
        if len(cells) != head.columns:
            words = "column" if len(cells) == 1 else "columns"
            raise ValueError(f"line {number} has {len(cells)} {words}, the lines before it have {head.columns}")
        for column, cell in enumerate(cells):
            value = None if "," in cell and not head.comma else as_number(cell)
            if value is None and not is_missing(cell):
                called = f" ({head.names[column]})" if any(head.names[column : column + 1]) else ""
                advice = "an empty cell is a missing sample, and a line that begins with # is passed over"
                if head.timed and column == 0:
                    advice = "write times as seconds, or remove the column"
                raise ValueError(f"line {number}, column {column + 1}{called}: {shown(cell)} is no number; {advice}")
            found[row, column] = np.nan if value is None else value
    return found


def _check_padding(cells: NDArray, numbers: list[int]) -> None:
    """Refuse numbers behind the last delimiter, where the first lines have none."""
    wrong = np.flatnonzero(~np.isnan(cells))
    if len(wrong):
        raise ValueError(f"line {numbers[int(wrong[0])]} has one column more than the lines before it")


class _Times:
    """The column of times, looked at piece by piece: whether it counts evenly, and how many samples a second has."""

    def __init__(self, unit: float | None, *, guessed: bool) -> None:
        self._unit = unit
        self._hint = "; if it holds no times, a first line of names says so" if guessed else ""
        self._rows, self._first, self._last = 0, 0.0, 0.0
        self._widest, self._jump = 0.0, (0, 0.0, 0.0)
        self._narrowest = np.inf

    def add(self, times: NDArray[np.float64], numbers: list[int]) -> None:
        """Look at the times of some lines with these numbers."""
        if not np.all(np.isfinite(times)):
            raise ValueError(f"line {numbers[int(np.argmin(np.isfinite(times)))]} has no time in its first column")
        if self._rows == 0:
            self._first = self._last = float(times[0])
        steps = np.diff(times, prepend=times[0] if self._rows == 0 else self._last)
        if np.any(steps < 0):
            number = numbers[int(np.argmax(steps < 0))]
            raise ValueError(
                f"line {number}: the time in its first column is before that of the line before it{self._hint}"
            )
        widest = int(np.argmax(steps))
        if steps[widest] > self._widest:
            self._widest = float(steps[widest])
            self._jump = (numbers[widest], float(times[widest]) - self._widest, float(times[widest]))
        between = steps[1:] if self._rows == 0 else steps
        self._narrowest = min(self._narrowest, float(np.min(between, initial=np.inf)))
        self._rows, self._last = self._rows + len(times), float(times[-1])

    def rate(self) -> float | None:
        """Samples in a second; raises ValueError where times jump."""
        if self._rows < 2:
            return None
        usual = (self._last - self._first) / (self._rows - 1)
        others = (self._last - self._first - self._widest) / max(self._rows - 2, 1)
        # Times that are rounded so coarsely that some are equal also have steps as wide as the rounding.
        if self._rows > 2 and self._widest > _JUMP * others and self._narrowest > 0:
            number, before, after = self._jump
            raise ValueError(
                f"line {number}: the time in its first column jumps from {before:g} to {after:g}, where {others:g} is "
                f"usual: put the missing lines in, with empty cells, or remove the column of times{self._hint}"
            )
        return None if self._unit is None or usual == 0 else float(f"{1 / (usual * self._unit):.6g}")


class _Store:
    """Rows that are added one piece after the other: in memory, or in an unnamed temporary file once they are many."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.float32]] = []
        self._file: Any = None
        self._rows = self._columns = 0

    def add(self, values: NDArray[np.float32]) -> None:
        """Put some rows behind the others."""
        self._rows, self._columns = self._rows + len(values), values.shape[1]
        self._pieces.append(values)
        if self._rows * self._columns < LARGE:
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115, lives on for as long as it is mapped
        for piece in self._pieces:
            self._file.write(piece.tobytes())
        self._pieces = []

    def array(self) -> NDArray[np.float32]:
        """All rows, (rows, columns), not to be written to."""
        if self._file is None:
            whole = np.concatenate(self._pieces)
            whole.flags.writeable = False
            return whole
        with self._file as file:
            file.flush()
            return np.memmap(file, np.float32, "r", shape=(self._rows, self._columns))
