"""Codes in files: flat indices and values of all signals with where each signal's begin, and events as CSV."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.errors import ModelFileError
from pointillist.reprs import shown
from pointillist.storage.codec import read_arrays, write_arrays
from pointillist.storage.files import atomic_path
from pointillist.storage.schema import check_array
from pointillist.validation import check_arguments

_KIND = "codes"
_MOST_FILTERS = 2**24
"""Some sums over codes take memory for every filter, whether it is used or not."""
_ROWS = 2**16
"""Rows of events that are turned to text at a time."""


def save_codes(codes: SparseCodes, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Write sparse codes to a file.

    Parameters
    ----------
    codes : SparseCodes
    path : str or path
        Replaced only once the new file is complete.
    metadata : mapping, optional
        What JSON can hold. The entry ``names``, if there is one, holds the names of the signals, as ``codes.names`` does.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> pt.load_codes("codes.safetensors").nnz
    1
    """
    if not isinstance(codes, SparseCodes):
        raise TypeError(f"codes must be SparseCodes, got {shown(codes)}")
    check_arguments(metadata=metadata)
    write_codes(codes, path, metadata or {})


def write_codes(
    codes: SparseCodes,
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    *,
    family: str | os.PathLike[str] | None = None,
) -> None:
    """Write codes as `save_codes` does; `family` is that of `atomic_path`."""
    names = metadata.get("names") if codes.names is None else codes.names
    if names != metadata.get("names", names):
        raise ValueError("metadata and codes hold different names: leave one of them out")
    SparseCodes(codes.indices, codes.values, codes.grids, codes.n_filters, names=names)  # raises where names do not fit
    named = {} if names is None else {"names": list(names)}
    arrays = {
        "indices": np.concatenate([np.empty(0, np.int64), *codes.indices]).astype(np.int64),
        "values": np.concatenate([np.empty(0, codes.dtype), *codes.values]),
        "offsets": np.cumsum([0, *map(len, codes.indices)], dtype=np.int64),
        "grids": np.asarray(codes.grids, np.int64),
        "n_filters": np.asarray(codes.n_filters, np.int64),
    }
    write_arrays(path, _KIND, {**metadata, **named}, arrays, family=family)


def load_codes(path: str | os.PathLike[str]) -> SparseCodes:
    """Read sparse codes that `save_codes` or ``pointillist encode`` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    SparseCodes
        Its ``names`` are those of the signals: for ``pointillist encode`` the files that were coded, in order, with
        ``[i]`` behind the file for signal i of a stack. None where no names were stored.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> codes.names = ["peak.npy"]
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> again = pt.load_codes("codes.safetensors")
    >>> again.nnz, again.names
    (1, ['peak.npy'])

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file holds no codes, or damaged ones.
    """
    return read_codes(path)[0]


def read_codes(path: str | os.PathLike[str]) -> tuple[SparseCodes, dict[str, Any]]:
    """Read codes as `load_codes` does, with everything that was recorded beside them."""
    stored = read_arrays(path, _KIND)
    arrays, metadata = stored.arrays, stored.metadata
    try:
        if unknown := arrays.keys() - {"indices", "values", "offsets", "grids", "n_filters"}:
            raise ValueError(f"it holds an array {min(unknown)!r}, which codes do not have")
        flat = check_array(arrays, "indices", "i", (None,))
        check_array(arrays, "values", "f", flat.shape)
        offsets = check_array(arrays, "offsets", "i", (None,), least=0)
        n_signals = len(offsets) - 1
        ends = (int(offsets[0]), int(offsets[-1])) if len(offsets) else None
        if ends != (0, len(flat)) or np.any(np.diff(offsets) < 0):
            raise ValueError(f"array offsets must go up from 0 to {len(flat)}")
        grids = check_array(arrays, "grids", "i", (n_signals, None) if n_signals else (0,), least=1)
        n_filters = int(check_array(arrays, "n_filters", "i", (), least=1))
        if n_filters > _MOST_FILTERS:
            raise ValueError(f"n_filters must be at most {_MOST_FILTERS:,}, got {n_filters:,}")
        indices, values = (np.split(arrays[name], offsets[1:-1]) for name in ("indices", "values"))
        spaces = [tuple(grid) for grid in grids.tolist()]
        for index, space in zip(indices, spaces, strict=True):
            if len(index) and not 0 <= int(index.min()) <= int(index.max()) < n_filters * prod(space):
                raise ValueError("indices lie outside the grid")
        return SparseCodes(indices, values, spaces, n_filters, names=metadata.get("names")), metadata
    except ValueError as error:
        raise ModelFileError(f"{path} is a damaged codes file: {error}") from error


def load_codes_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Metadata recorded with codes: for ``pointillist encode`` the model, the penalty and one entry for each signal."""
    return read_arrays(path, _KIND).metadata


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
