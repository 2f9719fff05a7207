"""The codes file: flat indices and values of all signals, and where each signal's begin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.errors import ModelFileError
from pointillist.model.codes import SparseCodes
from pointillist.storage.codec import read_arrays, write_arrays
from pointillist.storage.schema import check_array

_KIND = "codes"
_MOST_FILTERS = 2**24
"""Some sums over codes take memory for every filter, whether it is used or not."""


def save_codes(codes: SparseCodes, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Write sparse codes to a file.

    Parameters
    ----------
    codes : SparseCodes
    path : str or path
        Replaced only once the new file is complete.
    metadata : mapping, optional
        What JSON can hold, such as the names of the signals; see `load_codes_metadata`.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> pt.load_codes("codes.safetensors").nnz
    1
    """
    arrays = {
        "indices": np.concatenate([np.empty(0, np.int64), *codes.indices]).astype(np.int64),
        "values": np.concatenate([np.empty(0, codes.dtype), *codes.values]),
        "offsets": np.cumsum([0, *map(len, codes.indices)], dtype=np.int64),
        "grids": np.asarray(codes.grids, np.int64),
        "n_filters": np.asarray(codes.n_filters, np.int64),
    }
    write_arrays(path, _KIND, metadata or {}, arrays)


def load_codes(path: str | os.PathLike[str]) -> SparseCodes:
    """Read sparse codes that `save_codes` or ``pointillist encode`` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    SparseCodes

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> pt.load_codes("codes.safetensors").nnz
    1

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file holds no codes, or damaged ones.
    """
    arrays = read_arrays(path, _KIND).arrays
    try:
        n_filters, grids = _check(arrays)
        starts = arrays["offsets"][1:-1]
        indices, values = np.split(arrays["indices"], starts), np.split(arrays["values"], starts)
        for index, grid in zip(indices, grids, strict=True):
            if len(index) and not 0 <= int(index.min()) <= int(index.max()) < n_filters * prod(grid):
                raise ValueError("indices lie outside the grid")
    except ValueError as error:
        raise ModelFileError(f"{path} is a damaged codes file: {error}") from error
    return SparseCodes(indices, values, grids, n_filters)


def _check(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, list[tuple[int, ...]]]:
    """The number of filters and the grids, once all arrays of a file are sure to fit each other."""
    if unknown := arrays.keys() - {"indices", "values", "offsets", "grids", "n_filters"}:
        raise ValueError(f"it holds an array {min(unknown)!r}, which codes do not have")
    indices = check_array(arrays, "indices", "i", (None,))
    check_array(arrays, "values", "f", indices.shape)
    offsets = check_array(arrays, "offsets", "i", (None,), least=0)
    n_signals = len(offsets) - 1
    ends = (int(offsets[0]), int(offsets[-1])) if len(offsets) else None
    if ends != (0, len(indices)) or np.any(np.diff(offsets) < 0):
        raise ValueError(f"array offsets must go up from 0 to {len(indices)}")
    grids = check_array(arrays, "grids", "i", (n_signals, None) if n_signals else (0,), least=1)
    n_filters = int(check_array(arrays, "n_filters", "i", (), least=1))
    if n_filters > _MOST_FILTERS:
        raise ValueError(f"n_filters must be at most {_MOST_FILTERS:,}, got {n_filters:,}")
    return n_filters, [tuple(grid) for grid in grids.tolist()]


def load_codes_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What was recorded with the codes: for ``pointillist encode`` the model, the penalty and one entry for each signal."""
    return read_arrays(path, _KIND).metadata
