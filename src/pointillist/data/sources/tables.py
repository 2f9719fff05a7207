"""Tables in text, ``.csv`` and ``.tsv``, as sources: lines are moments, columns are signals or the channels of one.

Delimiter, decimal comma, names and times are found from the first lines; the rest is NumPy's reader, and a slower one where
cells are empty or wrong.
"""

from __future__ import annotations

import csv
import logging
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import LARGE, scratch_file
from pointillist.data.sources.base import Cache
from pointillist.data.sources.stacks import StackedSource
from pointillist.reprs import shown
from pointillist.storage import check_regular, stamp
from pointillist.validation import check_arguments

logger = logging.getLogger(__name__)

_LOOKED_AT = 100
"""Lines by which it is decided what a table is written in."""
_LONGEST = 2**22
"""Characters of a line; a longer line is no line of a table."""
_MISSING = re.compile(r'\s*(?:na|n/a|nan|null|none|\?|-|"")?\s*', re.IGNORECASE)
_TIMES = frozenset(("time", "times", "t", "timestamp", "timestamps"))
_COUNTS = frozenset(("index", "sample", "samples"))
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_JUMP = 1.9
"""A step in time of so many usual ones is a jump; shorter ones come from times that are rounded."""
_EVENTS = frozenset(("signal", "filter", "amplitude"))
"""Names of columns that tables of events have, as this package writes them."""
_RECENT = Cache(2**24)
"""Small tables that were read last; those that are needed again later are read again."""


class TableSource(StackedSource):
    """A table in text, ``.csv`` or ``.tsv``: a line for each moment, a column for each signal or channel.

    The delimiter (a tab, ``;`` or ``,``, otherwise white space) is found, and a decimal comma where another delimiter is
    used. A first line of names is optional; names may be numbers that count the columns from 0, as pandas writes them.
    Lines that begin with ``#`` are passed over. Empty cells, and ``NA`` or ``NaN``, are samples that were not seen. A first
    column that is called ``time`` (``t``, ``seconds``, ``time [ms]``, ...) must count evenly and gives the sampling rate;
    one that is called ``index`` or ``sample``, or that has no name and counts evenly, is left out.

    Parameters
    ----------
    path : str or path
    column : str
        The name of a column, or its number from 1, to read only this one.
    channels : bool
        Whether the columns are the channels of one signal (channels, samples); otherwise each column is a signal (samples,).

    Attributes
    ----------
    names : tuple of str
        Names of the columns; empty where the table has no line of names.
    sampling_rate : float or None
        Samples in a second, where a column of times says so.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pointillist as pt
    >>> lines = ["time [ms];left;right", "0;0,5;1", "2;0,25;", "4;-1;2,5"]
    >>> _ = Path("recording.csv").write_text("\\n".join(lines))
    >>> source = pt.sources.TableSource("recording.csv", channels=True)
    >>> source.names, source.sampling_rate
    (('left', 'right'), 500.0)
    >>> source.read(0)
    array([[ 0.5 ,  0.25, -1.  ],
           [ 1.  ,   nan,  2.5 ]], dtype=float32)
    """

    def __init__(self, path: str | Path, column: str = "", *, channels: bool = False) -> None:
        check_arguments(column=column, channels=channels)
        self.inside, self._channels = column, channels
        super().__init__(path, 1, channel_axis=-1 if channels else None)
        self.windowed = self._opened is not None

    def _open(self) -> Table:
        return read_table(self.path)

    def _array(self) -> NDArray[np.float32]:
        """Samples, (samples, channels), (columns, samples) or (samples,); small tables are read again if they are gone."""
        table = self._opened or _RECENT.get((self.path, stamp(self.path)), self._open)
        self._opened = table if table.samples.size >= LARGE else None
        place = _place(self.inside, table)
        self.names, self.sampling_rate = table.names[place], table.sampling_rate
        samples = table.samples[:, place]
        if self._channels:
            return samples
        return samples[:, 0] if samples.shape[1] == 1 else samples.T

    @property
    def sampling_rates(self) -> frozenset[float]:
        return frozenset() if self.sampling_rate is None else frozenset((self.sampling_rate,))

    def name(self, index: int, epoch: int = 0) -> str:
        if self._single or not self.names:
            return super().name(index, epoch)
        return f"{self._label}::{self.names[index]}"

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "column": self.inside}


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

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return self.samples.nbytes


def _place(column: str, table: Table) -> slice:
    """The column of that name or number from 1; all of them for none."""
    if not column:
        return slice(None)
    columns = table.samples.shape[1]
    if table.names.count(column) == 1:
        place = table.names.index(column)
    elif column.isdecimal() and 1 <= int(column) <= columns:
        place = int(column) - 1
    else:
        known = ", ".join(map(shown, table.names[:20]))
        raise ValueError(
            f"it has no column called {shown(column)}: give a number from 1 to {columns}, or one of {known}"
        )
    return slice(place, place + 1)


def read_table(path: Path) -> Table:
    """Read a table; raises ValueError with the line and what is wrong there, without the name of the file."""
    check_regular(path, "table")
    form = _form(path)
    values, numbers = _values(path, form)
    timed, unit = _times(form.names, values[:_LOOKED_AT, 0]) if form.columns > 1 else (False, None)
    shape = (len(values), form.columns - timed)
    samples = scratch_file(shape, np.float32) if prod(shape) >= LARGE else np.empty(shape, np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        samples[...] = values[:, int(timed) :]
    samples.flags.writeable = False
    if not timed:
        return Table(samples, form.names, None, None)
    left_out = "".join(form.names[:1])
    rate = _rate(values[:, 0], numbers, unit, guessed=not left_out)
    if rate is None:
        _warn_once(f"{path}: its first column{left_out and f', {left_out},'} counts evenly and is left out")
    return Table(samples, form.names[1:], rate, left_out)


@cache
def _warn_once(said: str) -> None:
    """Warn of what is said of a table, though it may be read again."""
    logger.warning("%s", said)


@dataclass(frozen=True)
class _Form:
    """Form of the lines of a table."""

    encoding: str
    delimiter: str | None  # between two cells; None is any white space
    comma: bool  # a comma in a cell is a decimal point
    names: tuple[str, ...]  # of the columns, that of times among them; empty where the table has no line of names
    first_line: int  # number of the first line that holds numbers
    columns: int  # cells of each line
    padded: bool  # a delimiter ends each line


def _form(path: Path) -> _Form:
    """Look at the first lines of a table; raises ValueError where they are none of a table of numbers."""
    with path.open("rb") as stream:
        begin = stream.read(2**12)
    encoding = "utf-16" if begin[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding != "utf-16" and b"\0" in begin:
        raise ValueError("it is no text: a table has lines of numbers")
    lines = list(islice(_lines(path, encoding), _LOOKED_AT))
    if not lines:
        raise ValueError("it is empty: it holds no line of numbers")
    delimiter = next((mark for mark in "\t;," if 2 * sum(mark in line for _, line in lines) >= len(lines)), None)
    rows = [_cells(line, delimiter) for _, line in lines]
    named = _names_columns(rows)
    body = rows[named:]
    if not body:
        raise ValueError("it holds a line of names, but no numbers")
    names = tuple(cell.strip() for cell in rows[0]) if named else ()
    if any(_number_in(name) is not None for name in names):
        _warn_once(f"{path}: its first line is taken for names of columns: {', '.join(names[:20])}")
    columns = len(body[0])
    padded = columns > 1 and not any(row[-1].strip() for row in body) and not any(names[columns - 1 :])
    columns -= padded
    names = names[:columns] if padded else names
    if named and len(names) != columns:
        raise ValueError(f"line {lines[0][0]} names {len(names)} columns, line {lines[1][0]} has {columns}")
    if set(names) >= _EVENTS:
        raise ValueError("it is a table of events, as encode --events writes it: give the recording itself")
    comma = delimiter != "," and not any("." in cell for row in body for cell in row)
    return _Form(encoding, delimiter, comma, names, lines[named][0], columns, padded)


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a table with their numbers, without comments; raises ValueError where it is interrupted."""
    number = blank = 0
    begun = False
    with path.open(encoding=encoding, errors="replace") as stream:
        while line := stream.readline(_LONGEST):
            number += 1
            if len(line) == _LONGEST:
                raise ValueError(
                    f"line {number} has {_LONGEST:,} characters or more: a table has a line for each sample"
                )
            if not line.strip(" \n"):  # a line of tabs has cells, all of them empty
                blank = blank or number
            elif not ("#" in line and line.lstrip()[0] == "#") and not (number == 1 and line[:4].lower() == "sep="):
                if begun and blank:
                    raise ValueError(
                        f"line {blank} is empty, but the table goes on after it: remove it, or write NaN for missing samples"
                    )
                begun, blank = True, 0
                yield number, line.rstrip("\n")


def _values(path: Path, form: _Form) -> tuple[NDArray[np.float64], Sequence[int]]:
    """The numbers of a table, (lines, columns), and of its lines; raises where one has other columns, or no number."""
    numbers = array("q")

    def body() -> Iterator[str]:
        del numbers[:]
        for number, line in _lines(path, form.encoding):
            if number >= form.first_line:
                numbers.append(number)
                line = line.removesuffix(form.delimiter or "") if form.padded else line
                yield line.replace(",", ".") if form.comma else line

    try:
        found = np.loadtxt(body(), np.float64, comments=None, delimiter=form.delimiter, quotechar='"', ndmin=2)
        if found.shape == (len(numbers), form.columns):
            return found, numbers
    except ValueError as error:  # for empty cells too
        logger.debug("%s is read cell by cell: %s", path, error)
    samples = array("d")
    for line in body():
        cells = _cells(line, form.delimiter)
        if len(cells) != form.columns:
            words = "column" if len(cells) == 1 else "columns"
            raise ValueError(f"line {numbers[-1]} has {len(cells)} {words}, the lines before it have {form.columns}")
        for column, cell in enumerate(cells):
            try:
                samples.append(float(cell))
            except ValueError:
                if not _MISSING.fullmatch(cell):
                    called = f" ({form.names[column]})" if any(form.names[column : column + 1]) else ""
                    raise ValueError(
                        f"line {numbers[-1]}, column {column + 1}{called}: {shown(cell)} is no number; an empty cell is a "
                        "missing sample, times are written as seconds, and a line that begins with # is passed over"
                    ) from None
                samples.append(np.nan)
    return np.frombuffer(samples).reshape(-1, form.columns), numbers


def _rate(times: NDArray[np.float64], numbers: Sequence[int], unit: float | None, *, guessed: bool) -> float | None:
    """Samples in a second; raises ValueError where times are missing, turn back or jump."""
    if not np.all(np.isfinite(times)):
        raise ValueError(f"line {numbers[int(np.argmin(np.isfinite(times)))]} has no time in its first column")
    steps = np.diff(times)
    if len(steps) == 0:
        return None
    widest = int(np.argmax(steps))
    usual = (np.sum(steps) - steps[widest]) / max(len(steps) - 1, 1)
    # Times that are rounded so coarsely that some are equal also have steps as wide as the rounding.
    jumps = len(steps) > 1 and steps[widest] > _JUMP * usual and np.min(steps) > 0
    if jumps or np.min(steps) < 0:
        at = widest if jumps else int(np.argmax(steps < 0))
        hint = "; if it holds no times, a first line of names says so" if guessed else ""
        raise ValueError(
            f"line {numbers[at + 1]}: the time in its first column goes from {times[at]:g} to {times[at + 1]:g}, where "
            f"steps of {usual:g} are usual: put missing lines in, with empty cells, or remove the column of times{hint}"
        )
    return None if unit is None or times[-1] == times[0] else float(f"{len(steps) / (times[-1] - times[0]) / unit:.6g}")


def _cells(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line, without quotation marks."""
    return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter))


def _number_in(cell: str) -> float | None:
    """The number in a cell with a decimal point or comma; None where there is none."""
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None


def _names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """True if the first line of a table holds names: a text among them, or numbers that count the columns from 0."""
    cells = [cell.strip() for cell in rows[0]]
    if any(not _MISSING.fullmatch(cell) and _number_in(cell) is None for cell in cells):
        return True
    columns = cells if cells[0] else cells[1:]  # as pandas writes a table with its index
    counted = columns == [str(number) for number in range(len(columns))]
    if len(rows) == 1 or not counted or _counts_evenly([_number_in(row[0]) for row in rows]):
        return False
    fractions = any("." in cell or "," in cell for row in rows for cell in row)  # two whole numbers may be samples
    return len(cells) > (1 if fractions or columns != cells else 2)


def _counts_evenly(values: Sequence[float | None] | NDArray[np.float64]) -> bool:
    """True if three numbers or more grow by equal steps, or by nearly equal ones."""
    steps = np.diff(np.array(values, np.float64))
    allowed = 1e-3 if len(steps) < 20 else 0.6  # of a step: few count evenly, many may be rounded
    return bool(len(steps) > 1 and np.all(steps > 0) and np.ptp(steps) <= allowed * np.max(steps))


def _times(names: Sequence[str], first: NDArray[np.float64]) -> tuple[bool, float | None]:
    """True if the first column holds times or counts samples, and the seconds that one stands for."""
    if not names or not names[0] or names[0].startswith("Unnamed"):  # as pandas names an index
        return _counts_evenly(first), None
    words = re.findall(r"[^\W\d_]+", names[0].casefold())
    if words and set(words) <= _COUNTS:
        return True, None
    known = [_UNITS[word] for word in words if word in _UNITS]
    timed = bool(words) and all(word in _TIMES or word in _UNITS for word in words) and words != ["s"]
    return timed, known[-1] if known else 1.0
