"""Arrays that may not fit into memory: walked in bands, with companions in temporary files where they live in files."""

import mmap
import tempfile
from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import DTypeLike, NDArray

LARGE = 2**22
"""Samples from which on a signal is coded by tiles and left in its file: undivided, descent takes some 90 bytes for each."""

BAND_SAMPLES = 2**20
"""Samples of a band, at most: some megabytes."""
_BANDS_HELD = 8
"""Bands of a file whose pages stay in memory at a time."""
_BINS = 1024


def is_mapped(array: NDArray) -> bool:
    """True if an array is a view of a file."""
    base: object = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False


def scratch(like: NDArray, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """An array to write to: in memory, or in an unnamed temporary file (where TMPDIR says) beside an array in a file."""
    return scratch_file(shape, dtype) if is_mapped(like) else np.empty(shape, dtype)


def scratch_file(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """An array to write to in an unnamed temporary file, where TMPDIR says."""
    with tempfile.TemporaryFile() as file:  # lives on for as long as it is mapped
        return np.memmap(file, dtype, "w+", shape=shape)


def bands(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices along the second axis of (channels, *space) that cover it, each of some megabytes."""
    step = max(1, BAND_SAMPLES // max(prod((shape[0], *shape[2:])), 1))
    for first in range(0, shape[1], step):
        yield slice(None), slice(first, min(first + step, shape[1]))


def walked(*arrays: NDArray) -> Iterator[tuple[slice, ...]]:
    """Yield the `bands` of arrays of one shape, and let go of their pages on the way where they are views of files."""
    for number, band in enumerate(bands(arrays[0].shape), 1):
        yield band
        if number % _BANDS_HELD == 0:
            release(*arrays)
    release(*arrays)


def release(*arrays: NDArray) -> None:
    """Let go of the pages of arrays that are views of files, which would count as memory in use; they are read again.

    What was written stays written: it is the file's. Copies on write are private, would be lost, and are left alone.
    """
    for array in arrays:
        base: object = array
        while isinstance(base, np.ndarray):
            shared = isinstance(base, np.memmap) and base.mode != "c"
            base = base.base
            if shared and isinstance(base, mmap.mmap) and hasattr(base, "madvise"):
                base.madvise(mmap.MADV_DONTNEED)


def extent(array: NDArray) -> tuple[float, float]:
    """Smallest and largest sample of an array (channels, *space); NaN where one is NaN."""
    if not is_mapped(array):
        return float(np.min(array)), float(np.max(array))
    ends = np.array([(np.min(array[band]), np.max(array[band])) for band in walked(array)], np.float64)
    return float(np.min(ends[:, 0])), float(np.max(ends[:, 1]))


def ranked(values: NDArray, rank: int) -> float:
    """The value of that rank among all, ascending from 0, exactly; large arrays are neither sorted nor copied."""
    flat = values.reshape(1, -1)
    pieces = list(bands(flat.shape))
    low, high = extent(flat)
    below, count = 0, flat.size  # values less than low, and those from low to high
    while count > BAND_SAMPLES and low < high:
        edges = np.linspace(low, high, _BINS + 1)
        counts = np.sum([np.histogram(flat[piece], edges)[0] for piece in pieces], axis=0)
        chosen = int(np.searchsorted(np.cumsum(counts), rank - below, side="right"))
        below, count = below + int(np.sum(counts[:chosen])), int(counts[chosen])
        last = high if chosen == _BINS - 1 else np.nextafter(edges[chosen + 1], -np.inf)
        found = [extent(one[None]) for piece in pieces if (one := _within(flat[piece], edges[chosen], last)).size]
        low, high = min(least for least, _ in found), max(most for _, most in found)
    if low == high:
        return low
    inside = np.concatenate([_within(flat[piece], low, high) for piece in pieces])
    return float(np.partition(inside, rank - below)[rank - below])


def _within(values: NDArray, low: float, high: float) -> NDArray:
    return values[(values >= low) & (values <= high)]


def converted(array: NDArray, dtype: DTypeLike) -> NDArray:
    """An array (channels, *space) in another type; itself where it has that type, in a file where it is in one."""
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    out = scratch(array, array.shape, dtype)
    with np.errstate(over="ignore"):  # what is too large for its type is infinite, and refused as such
        for band in walked(array, out):
            out[band] = array[band]
    return out
