"""Arrays in ``.npy`` files, mapped once their headers are found to fit the files."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

import numpy as np

from pointillist.data.damage import damage_named
from pointillist.storage import check_regular

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def map_npy(path: str | os.PathLike[str]) -> np.memmap:
    """Map the array of a ``.npy`` file, read-only.

    Raises
    ------
    FileNotFoundError
    UnreadableFileError
        If the file is damaged, empty, or shorter than its header says, or holds Python objects.
    """
    path = Path(path)
    check_regular(path, ".npy file")
    with damage_named(path), path.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:  # 3.0 is for structured arrays alone
            raise ValueError(f"it is in version {version[0]}.{version[1]} of the format: save a plain array of numbers")
        shape, in_columns, dtype = _HEADERS[version](stream)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never read: save a plain array of numbers")
        claimed, stored = prod(shape) * dtype.itemsize, os.fstat(stream.fileno()).st_size - stream.tell()
        if claimed == 0:
            raise ValueError(f"it holds nothing: its shape is {shape}")
        if claimed > stored:
            raise ValueError(f"it has {stored:,} of the {claimed:,} bytes that its header claims: it is cut short")
        return np.memmap(path, dtype, "r", stream.tell(), shape, "F" if in_columns else "C")
