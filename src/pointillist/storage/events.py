"""Tables of events as CSV files."""

from __future__ import annotations

import os
from collections.abc import Iterator

from numpy.typing import NDArray

from pointillist.storage.files import atomic_path

_ROWS = 2**16
"""Rows that are turned to text at a time."""
TEXT_BYTES = 2**9 * _ROWS
"""Bytes that these rows take as text."""


def write_events(table: NDArray, path: str | os.PathLike[str]) -> None:
    """Write a structured array of numbers as CSV with a line of names, completely or not at all.

    Parameters
    ----------
    table : structured array
        As `SparseCodes.events` gives it.
    path : str or path
        Replaced only once the new file is complete. Numbers are written so that reading them gives the same ones back.
    """
    with atomic_path(path) as temporary, temporary.open("w", encoding="ascii", newline="") as file:
        file.writelines(f"{line}\n" for line in event_lines(table))


def event_lines(table: NDArray) -> Iterator[str]:
    """Yield the lines of a structured array of numbers as CSV, names first."""
    names = table.dtype.names or ()
    yield ",".join(names)
    for first in range(0, len(table), _ROWS):
        rows = table[first : first + _ROWS]
        columns = [rows[name].astype(str).tolist() for name in names]
        yield from (",".join(row) for row in zip(*columns, strict=True))
