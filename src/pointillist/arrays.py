"""Homes of arrays: in other libraries' objects (tables, tensors, masked arrays), on the host, on a device, in files.

Nothing that is given is changed, and none of these libraries is imported before its objects come in: they are known by
what they offer. CuPy arrays are taken as they are, torch's CUDA tensors and others through DLPack: memory is shared. Arrays
that may not fit into memory are views of files, walked in bands, with companions in temporary files.
"""

import importlib
import mmap
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

LARGE = 2**22
"""Samples from which on a signal is coded by tiles and left in its file: undivided, descent takes some 90 bytes for each."""

BAND_SAMPLES = 2**20
"""Samples of a band, at most: some megabytes."""
_BANDS_HELD = 8
"""Bands of a file whose pages stay in memory at a time."""
_BINS = 1024
"""Parts of the histograms that `ranked` looks through."""
_MOST_NAMES = 5
"""Columns that an error names."""


def as_plain(given: Any, name: str) -> NDArray:
    """Anything like an array as a NumPy array of any type of samples; errors call it by `name`.

    Masked entries of a masked array and missing ones of a table become NaN. Numbers that are kept as Python objects become
    float64.
    """
    if scipy.sparse.issparse(given):
        raise TypeError(f"{name} is sparse, and sparse signals are not supported: give {name}.toarray()")
    if isinstance(given, np.ma.MaskedArray) and given.dtype.kind in "fiubc" and np.ma.is_masked(given):
        precision = given.dtype if given.dtype.kind == "f" else np.result_type(given.dtype, np.float32)
        given = np.ma.filled(given.astype(precision), np.nan)
    if hasattr(given, "data_vars"):
        raise TypeError(
            f"{name} is a {type(given).__name__} of several variables: choose one, {name}[...] by its name, or join them "
            f"by {name}.to_dataarray()"
        )
    if hasattr(given, "detach"):  # a tensor whose gradients are recorded does not turn into an array by itself
        given = given.detach()
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be an array of real numbers, got {type(given).__name__}: {error}") from None
    return array if array.dtype.kind != "O" else _numbers(given, array, name)


def _numbers(given: Any, array: NDArray, name: str) -> NDArray:
    """Python objects that are numbers as float64, and missing ones as NaN; others stay objects, which nobody takes."""
    if array.ndim == 0:
        return array
    try:
        if hasattr(given, "to_numpy"):
            return np.asarray(given.to_numpy(dtype=np.float64, na_value=np.nan))
        return array.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} holds numbers that float64 cannot hold: {error}") from None
    except (ValueError, TypeError) as error:
        columns = _columns_without_numbers(given)
        if not columns and isinstance(error, TypeError):
            raise TypeError(f"{name} must hold real numbers: {error}") from None
        if not columns:
            return array
        raise ValueError(
            f"{name} has columns that do not hold real numbers: {', '.join(columns[:_MOST_NAMES])}"
            f"{', …' if len(columns) > _MOST_NAMES else ''}; leave them out: {name}.select_dtypes('number')"
        ) from None


def _columns_without_numbers(given: Any) -> list[str]:
    """Names of the columns of a table that hold texts, dates or other objects; none for what is no table."""
    kinds: Any = getattr(given, "dtypes", None)
    if not hasattr(kinds, "items") or not hasattr(given, "columns"):
        return []
    return [str(column) for column, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]


def shape_of(given: Any, name: str) -> tuple[int, ...]:
    """The shape of anything like an array, without its samples where it tells; errors call it by `name`."""
    shape = getattr(given, "shape", None)
    return tuple(shape) if shape is not None else as_plain(given, name).shape


def as_several(given: Any, name: str) -> Any:
    """Signals or weights as one array or a list of them, whatever library they come from; errors call them by `name`.

    A list stays a list: its entries become arrays one by one, so that each is called by its number. So do arrays and
    columns whose entries are arrays themselves, of several sizes.
    """
    if isinstance(given, list | tuple | np.ndarray) and not _holds_arrays(given):
        return given
    if hasattr(given, "data_vars") or scipy.sparse.issparse(given) or isinstance(given, np.ma.MaskedArray):
        return as_plain(given, name)
    if hasattr(given, "__array__"):
        plain = as_plain(given, name)
        return list(given) if _holds_arrays(plain) else plain
    return given


def _holds_arrays(given: Any) -> bool:
    """True if an array of one axis has arrays for entries."""
    objects = isinstance(given, np.ndarray) and given.dtype.kind == "O" and given.ndim == 1 and len(given) > 0
    return bool(objects) and all(np.ndim(one) > 0 for one in given)


def is_cpu(device: str) -> bool:
    """True for "cpu", the name of no device; anything but this, "cuda" and "cuda:N" is an error."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:N", got {device!r}')
    return device == "cpu"


def is_resident(array: Any) -> bool:
    """True if an array lives on a device."""
    if isinstance(array, np.ndarray):
        return False
    known = getattr(array, "is_cuda", None)  # torch's, whose array interface fails where gradients are recorded
    return bool(known) if known is not None else hasattr(array, "__cuda_array_interface__")


def any_resident(arrays: Any) -> bool:
    """True if an array, or one of a list of arrays, lives on a device."""
    return any(map(is_resident, arrays)) if isinstance(arrays, list | tuple) else is_resident(arrays)


def kind_of(arrays: Any) -> str:
    """ "numpy", "cupy" or "torch": the kind of an array, or of the first resident one of a list; others count as CuPy's."""
    several = arrays if isinstance(arrays, list | tuple) else [arrays]
    for array in several:
        if is_resident(array):
            return "torch" if hasattr(array, "is_cuda") else "cupy"
    return "numpy"


def as_kind(array: Any, kind: str) -> Any:
    """A CuPy array as one of the kind, memory shared; "numpy" is a copy on the host."""
    if kind == "torch":
        return importlib.import_module("torch").from_dlpack(array)
    return array.get() if kind == "numpy" else array


def as_cupy(array: Any) -> Any:
    """Any array as a CuPy one, memory shared where it lives on a device already."""
    cupy = _cupy()
    if isinstance(array, cupy.ndarray):
        return array
    if hasattr(array, "detach"):
        array = array.detach()
    return cupy.from_dlpack(array) if is_resident(array) else cupy.asarray(np.asarray(array))


def to_host(array: Any) -> Any:
    """A NumPy array from one that lives on a device (CuPy, torch); anything else as it is."""
    return as_cupy(array).get() if is_resident(array) else array


def all_to_host(arrays: list[Any]) -> list[Any]:
    """Flat arrays of one kind as NumPy ones, moved in one piece."""
    if not any_resident(arrays):
        return arrays
    return np.split(joined(arrays).get(), np.cumsum([len(array) for array in arrays])[:-1])


class Rows(list[Any]):
    """The entries of an array along its first axis as views, with that array; not to be changed."""

    def __init__(self, whole: Any, entries: Iterable[Any]) -> None:
        super().__init__(entries)
        self.whole = whole

    @cached_property
    def extents(self) -> np.ndarray:
        """Smallest and largest sample of each entry, (2, n) float64 on the host: asked for at once, kept."""
        flat = self.whole.reshape(len(self), -1)
        low, high = flat.min(axis=1), flat.max(axis=1)
        return to_host((np if isinstance(flat, np.ndarray) else _cupy()).stack([low, high])).astype(np.float64)

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        return Rows(self.whole[which], found) if isinstance(which, slice) else found


def rows(array: Any) -> list[Any]:
    """The entries of a C-contiguous array along its first axis, as views; indexing CuPy arrays one by one is slow."""
    if isinstance(array, np.ndarray) or len(array) == 0:
        return Rows(array, array)
    shape, step = array.shape[1:], array.nbytes // len(array)
    return Rows(array, (type(array)(shape, array.dtype, array.data + i * step) for i in range(len(array))))


def members_of(arrays: Any, members: Sequence[int]) -> Any:
    """The arrays of some numbers, ascending; the sequence itself where these are all."""
    return arrays if len(members) == len(arrays) else [arrays[i] for i in members]


def pieces(flat: Any, bounds: Sequence[int]) -> list[Any]:
    """The parts of a flat array between bounds, as views."""
    if isinstance(flat, np.ndarray) or len(flat) == 0:
        return [flat[first:last] for first, last in pairwise(bounds)]
    size = flat.itemsize
    return [type(flat)((last - first,), flat.dtype, flat.data + first * size) for first, last in pairwise(bounds)]


def stacked(arrays: Any) -> Any:
    """Arrays of one shape and kind as one of that kind; CuPy arrays that lie one behind the other are not copied."""
    if isinstance(arrays, Rows):
        return arrays.whole
    kind = kind_of(arrays[0])
    if kind == "numpy":
        return np.stack(arrays)
    if kind == "torch":
        return importlib.import_module("torch").stack(list(arrays))
    if _in_line(arrays):
        return type(arrays[0])((len(arrays), *arrays[0].shape), arrays[0].dtype, arrays[0].data)
    return _cupy().stack(arrays)


def joined(arrays: Sequence[Any]) -> Any:
    """Flat arrays of one kind as one of NumPy or CuPy; CuPy arrays that lie one behind the other are not copied."""
    if not is_resident(arrays[0]):
        return np.concatenate(arrays)
    taken = [as_cupy(array) for array in arrays]
    if _in_line(taken):
        return type(taken[0])((sum(map(len, taken)),), taken[0].dtype, taken[0].data)
    return _cupy().concatenate(taken)


def _in_line(arrays: Sequence[Any]) -> bool:
    """True if CuPy arrays of one precision are C-contiguous and lie one behind the other in one piece of memory."""
    place, memory = arrays[0].data.ptr, arrays[0].data.mem
    for array in arrays:
        follows = array.data.ptr == place and array.data.mem is memory
        if not follows or array.dtype != arrays[0].dtype or not array.flags.c_contiguous:
            return False
        place += array.nbytes
    return True


def summed_by(indices: Any, values: Any, size: int, count: int) -> np.ndarray:
    """Σ |value| in float64 over all lists, for each of `count` runs of `size` indices; added up on the device."""
    return scattered(joined(indices) // size, abs(joined(values)).astype(np.float64), count).get()


def scattered(places: Any, amounts: Any, count: int) -> Any:
    """Float64 amounts, added up at places 0 … count − 1, on the device."""
    sums = _cupy().zeros(count, np.float64)
    _cupy().add.at(sums, places, amounts)
    return sums


@cache
def _cupy() -> Any:
    return importlib.import_module("cupy")


def group_by_shape(signals: Sequence[Any]) -> list[list[int]]:
    """Indices of the signals of each shape, in order of appearance."""
    if isinstance(signals, Rows):
        return [list(range(len(signals)))]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, signal in enumerate(signals):
        groups.setdefault(signal.shape, []).append(i)
    return list(groups.values())


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
