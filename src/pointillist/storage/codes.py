"""The codes file: flat indices and values of all signals, and where each signal's begin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pointillist.errors import ModelFileError
from pointillist.model.codes import SparseCodes
from pointillist.storage.codec import read_arrays, write_arrays

_KIND = "codes"


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
        n_filters, grids, starts = int(arrays["n_filters"]), arrays["grids"], arrays["offsets"][1:-1]
        indices, values = np.split(arrays["indices"], starts), np.split(arrays["values"], starts)
        for index, grid in zip(indices, grids, strict=True):
            if len(index) and not 0 <= index.min() <= index.max() < n_filters * np.prod(grid):
                raise ValueError("indices lie outside the grid")
        return SparseCodes(indices, values, [tuple(grid) for grid in grids.tolist()], n_filters)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path} is a damaged codes file: {error}") from error


def load_codes_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What was recorded with the codes: for ``pointillist encode`` the model, the penalty and one entry for each signal."""
    return read_arrays(path, _KIND).metadata
