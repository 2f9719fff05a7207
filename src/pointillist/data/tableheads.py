"""What tables in text are written in, found from their first lines: encoding, delimiter, decimal comma, names and times."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

_LOOKED_AT = 100
"""Lines by which it is decided what a table is written in."""
_LONGEST = 2**22
"""Characters of a line at most; more are no line of a table."""
_WORDS = r'na|n/a|nan|null|none|\?|-|""'
_MISSING = re.compile(rf"\s*(?:{_WORDS})?\s*", re.IGNORECASE)
_TIMES = frozenset(("time", "times", "t", "timestamp", "timestamps"))
_COUNTS = frozenset(("index", "sample", "samples"))
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_EVEN, _ROUNDED, _MANY = 1e-3, 0.6, 20
"""By which share of a step the steps of a column without a name may differ for it to count moments: if they are few, and if
they are many, where times may be rounded."""
_EVENTS = frozenset(("signal", "filter", "amplitude"))
"""Names of columns that tables of events have, as this package writes them."""


@dataclass(frozen=True)
class TableHead:
    """How the lines of a table are read.

    Attributes
    ----------
    encoding : str
    delimiter : str or None
        What stands between two cells; None is any white space.
    comma : bool
        Whether a comma in a cell is a decimal point.
    names : tuple of str
        Names of the columns, that of times among them; empty where the table has no line of names.
    first_line : int
        The number of the first line that holds numbers.
    columns : int
        Cells of each line.
    padded : bool
        Whether a delimiter ends each line, so that the last cell is always empty.
    timed : bool
        Whether the first column holds times, or counts samples.
    unit : float or None
        What one stands for in the column of times, in seconds; None where that is not known.
    """

    encoding: str
    delimiter: str | None
    comma: bool
    names: tuple[str, ...]
    first_line: int
    columns: int
    padded: bool
    timed: bool
    unit: float | None


def find_head(path: Path) -> TableHead:
    """Look at the first lines of a table; raises ValueError where they are none of a table of numbers."""
    encoding = _encoding(path)
    lines = list(islice(text_lines(path, encoding), _LOOKED_AT))
    if not lines:
        raise ValueError("it is empty: it holds no line of numbers")
    delimiter = next((mark for mark in "\t;," if 2 * sum(mark in line for _, line in lines) >= len(lines)), None)
    rows = [cells_of(line, delimiter) for _, line in lines]
    named = _names_columns(rows[0])
    body = rows[1:] if named else rows
    if not body:
        raise ValueError("it holds a line of names, but no numbers")
    columns = len(body[0])
    names = tuple(cell.strip() for cell in rows[0]) if named else ()
    padded = columns > 1 and not any(row[-1].strip() for row in body) and not any(names[columns - 1 :])
    if named:
        names = names[: columns - 1] if padded else names
        if len(names) != columns - padded:
            raise ValueError(f"line {lines[0][0]} names {len(names)} columns, line {lines[1][0]} has {columns}")
    if set(names) >= _EVENTS:
        raise ValueError("it is a table of events, as encode --events writes it: give the recording itself")
    points = any("." in cell for row in body for cell in row)
    comma = delimiter != "," and not points
    timed, unit = _times(names, [row[0] for row in body]) if columns - padded > 1 else (False, None)
    return TableHead(encoding, delimiter, comma, names, lines[named][0], columns, padded, timed, unit)


def text_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
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


def cells_of(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line, without quotation marks."""
    return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter))


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a sample that is not known."""
    return _MISSING.fullmatch(cell) is not None


def missing_cells(delimiter: str | None) -> re.Pattern[str]:
    """The pattern of cells of a line that stand for missing samples; its first group is what precedes the cell."""
    if delimiter is None:
        return re.compile(rf"(^|\s)(?:{_WORDS})(?=$|\s)", re.IGNORECASE)
    mark = re.escape(delimiter)
    return re.compile(rf"(^|{mark})[ ]*(?:{_WORDS})?[ ]*(?=$|{mark})", re.IGNORECASE)


def as_number(cell: str) -> float | None:
    """The number in a cell with a decimal point or comma; None where there is none."""
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None


def _encoding(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(2**12)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in head:
        raise ValueError("it is no text: a table has lines of numbers")
    return "utf-8-sig"


def _names_columns(cells: Sequence[str]) -> bool:
    """Whether the first line of a table holds names rather than numbers."""
    if any(not is_missing(cell) and as_number(cell) is None for cell in cells):
        return as_number(cells[0]) is None
    counted = [str(number) for number in range(len(cells) - 1)]
    return len(cells) > 1 and not cells[0].strip() and [cell.strip() for cell in cells[1:]] == counted


def _times(names: Sequence[str], cells: Sequence[str]) -> tuple[bool, float | None]:
    """Whether the first column holds times or counts samples, and what one stands for in seconds."""
    if names and names[0] and not names[0].startswith("Unnamed"):  # as pandas names an index
        words = re.findall(r"[^\W\d_]+", names[0].casefold())
        if words and set(words) <= _COUNTS:
            return True, None
        known = [_UNITS[word] for word in words if word in _UNITS]
        timed = bool(words) and all(word in _TIMES or word in _UNITS for word in words) and words != ["s"]
        return timed, known[-1] if known else 1.0
    values = [as_number(cell) for cell in cells]
    if len(values) < 3 or None in values:
        return False, None
    steps = np.diff(np.array(values, np.float64))
    allowed = _EVEN if len(steps) < _MANY else _ROUNDED
    return bool(np.all(steps > 0) and np.ptp(steps) <= allowed * np.max(steps)), None
