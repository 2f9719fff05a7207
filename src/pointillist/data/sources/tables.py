"""Tables in text as sources: their columns are signals, or the channels of one signal."""

from __future__ import annotations

import logging
from itertools import count
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources.arrays import StackedSource
from pointillist.data.sources.cache import Cache
from pointillist.data.tables import Table, read_table
from pointillist.large import LARGE
from pointillist.reprs import shown
from pointillist.validation import check_arguments, check_index

logger = logging.getLogger(__name__)

_RECENT = Cache(2**24)
"""Samples of small tables that were read last; those that are needed again later are read again."""
_KEYS = count()


class TableSource(StackedSource):
    """A table in text, ``.csv`` or ``.tsv``: a line for each moment, a column for each signal or channel.

    The delimiter (a tab, ``;`` or ``,``, otherwise white space) is found, and a decimal comma where another delimiter is
    used. A first line of names is optional. Lines that begin with ``#`` are passed over. Empty cells, and ``NA`` or ``NaN``,
    are samples that were not seen. A first column that is called ``time`` (``t``, ``seconds``, ``time [ms]``, ...) must
    count evenly and gives the sampling rate; one that is called ``index`` or ``sample``, or that has no name and
    counts evenly, is left out.

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

    kind: ClassVar[str] = "table"

    def __init__(self, path: str | Path, column: str = "", *, channels: bool = False) -> None:
        check_arguments(channels=channels)
        if not isinstance(column, str):
            raise ValueError(
                f"column must be the name of a column, or its number from 1 as a text, got {shown(column)}"
            )
        self.inside = column
        self._channels = channels
        super().__init__(path, 1, channel_axis=-1 if channels else None)

    def _open(self) -> _ParsedTable:
        return _ParsedTable(self.path, self.inside, self._channels)

    @property
    def windowed(self) -> bool:  # type: ignore[override]
        """Whether windows are read without the whole table: of large ones, which are kept in a temporary file."""
        return prod(self._array().shape) >= LARGE

    @property
    def names(self) -> tuple[str, ...]:
        return self._array().names

    @property
    def sampling_rate(self) -> float | None:
        return self._array().sampling_rate

    @property
    def sampling_rates(self) -> frozenset[float]:
        return frozenset() if self.sampling_rate is None else frozenset((self.sampling_rate,))

    def name(self, index: int, epoch: int = 0) -> str:
        check_index(index, len(self))
        if self._single or not self.names:
            return super().name(index, epoch)
        return f"{self._label()}::{self.names[index]}"

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "column": self.inside}


class _ParsedTable:
    """The samples of a table as an array: (samples, channels), or (columns, samples), or (samples,) of its only column.

    Large ones are kept in a temporary file, and a few small ones in memory; others are read again.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, path: Path, column: str, channels: bool) -> None:
        self._path, self._channels, self._key = path, channels, next(_KEYS)
        table = read_table(path)
        self._chosen = _chosen(column, table)
        self.names = table.names if self._chosen is None else table.names[self._chosen]
        self.sampling_rate = table.sampling_rate
        samples = self._arranged(table)
        self.shape = samples.shape
        self._large = samples if samples.size >= LARGE else None
        if self._large is None:
            _RECENT.get(self._key, lambda: samples)
        _tell(path, table)

    def _arranged(self, table: Table) -> NDArray[np.float32]:
        samples = table.samples
        if self._chosen is not None:
            samples = np.array(samples[:, self._chosen])  # a view would keep all columns in memory
        if self._channels:
            return samples
        return samples[:, 0] if samples.shape[1] == 1 else samples.T

    def _again(self) -> NDArray[np.float32]:
        samples = self._arranged(read_table(self._path))
        if samples.shape != self.shape:
            raise ValueError(f"it has changed since it was opened: it was {self.shape} and is {samples.shape}")
        return samples

    def __getitem__(self, place: Any) -> NDArray[np.float32]:
        samples = _RECENT.get(self._key, self._again) if self._large is None else self._large
        return np.array(samples[place])


def _tell(path: Path, table: Table) -> None:
    """Log what became of a first column that holds no samples."""
    if table.left_out is None:
        return
    if table.sampling_rate is not None:
        logger.info("%s: its first column says that a second has %g samples", path, table.sampling_rate)
    else:
        called = f", {table.left_out}," if table.left_out else ""
        logger.warning("%s: its first column%s counts evenly and is left out", path, called)


def _chosen(column: str, table: Table) -> slice | None:
    """The column of that name or number, None for all of them."""
    if not column:
        return None
    columns = table.samples.shape[1]
    if table.names.count(column) == 1:
        place = table.names.index(column)
    elif column.isdecimal() and 1 <= int(column) <= columns:
        place = int(column) - 1
    else:
        known = ", ".join(shown(name) for name in table.names[:20]) if any(table.names) else f"1 to {columns}"
        many = "several columns" if column in table.names else "no column"
        raise ValueError(f"it has {many} called {shown(column)}: give a number from 1 to {columns}, or one of {known}")
    return slice(place, place + 1)
