"""Samples of files as arrays: scaled to floats, grey, upright, and mapped where they are large."""

import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.damage import damage_named
from pointillist.storage import check_regular

GREY_WEIGHTS = (0.2989, 0.5870, 0.1140)
ONE_FILE: dict[str, Any] = {"is_ome": False, "is_mmstack": False, "is_ndtiff": False}
"""Options by which tifffile opens files: formats that name further files are read as plain TIFF, which knows one file."""

_FULL_SCALE = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
_INVERSE = {6: 8, 8: 6}
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def to_float(samples: NDArray[np.generic], name: str) -> NDArray[np.floating]:
    """Return samples as native float32 or float64.

    Parameters
    ----------
    samples : array of any shape
        uint8 and uint16 are divided by 255 and 65535, so that they span [0, 1]; bool becomes 0 and 1; float32
        and float64 keep their values and are not copied when they are native; float16 becomes float32.
    name : str
        What to call the samples in an error message.

    Returns
    -------
    array of the same shape, float32 (float64 where float64 came in)

    Raises
    ------
    ValueError
        For any other type, because its range is unknown.
    """
    native = samples.dtype.newbyteorder("=")
    if native == np.float64:
        return samples.astype(np.float64, copy=False)
    if native.kind == "b" or native in (np.float16, np.float32):
        return samples.astype(np.float32, copy=False)
    if native in _FULL_SCALE:
        return samples.astype(np.float32) / np.float32(_FULL_SCALE[native])
    raise ValueError(f"{name} has samples of type {samples.dtype}: convert them to uint8, uint16, float32 or float64")


def to_grey(colour: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return 0.2989 R + 0.5870 G + 0.1140 B of colour (height, width, 3), an array (height, width)."""
    return colour @ np.asarray(GREY_WEIGHTS, colour.dtype)


def upright(pixels: NDArray[Any], code: int) -> NDArray[Any]:
    """Stored pixels (height, width[, channels]) as they shall be seen; a view."""
    # 2 to 4 mirror and turn, 5 to 8 do so after exchanging rows and columns.
    if code >= 5:
        pixels = np.swapaxes(pixels, 0, 1)
    if code in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if code in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def turned_back(pixels: NDArray[Any], code: int) -> NDArray[Any]:
    """Pixels as they are stored, from what `upright` gave; a view."""
    return upright(pixels, _INVERSE.get(code, code))


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
