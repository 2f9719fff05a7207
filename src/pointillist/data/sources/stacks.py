"""Stacks of signals in one file, read part by part: ``.npy`` files, TIFF pages, and what arrays in chunks share."""

from __future__ import annotations

import operator
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.arrays import LARGE, bands, release, scratch_file
from pointillist.data.damage import check_chunk, check_claim, check_page, check_pages, damage_named
from pointillist.data.samples import ONE_FILE, floats, map_npy, to_float
from pointillist.data.sources.base import StoredSource, box, file_fingerprint
from pointillist.data.sources.derived import Cache
from pointillist.errors import UnreadableFileError
from pointillist.reprs import shown, sizes
from pointillist.storage import check_regular
from pointillist.validation import as_path, check_arguments, check_index, is_integer

_LISTED = 20
"""Names of arrays that a message lists."""
_RECENT = 2**24
"""Bytes of unpacked chunks that an array keeps: neighbouring windows meet the same ones."""
PACKERS = ("zlib", "gzip", "bz2", "lzma", "zstd", "lz4", "blosc")
"""Codecs that make fewer bytes of many."""


class StackedSource(StoredSource):
    """Signals along the first axis of one array in a file, opened when it is first needed, in every process anew.

    Subclasses say how to open it; what they open must give shape, dtype and parts by index, as arrays do.

    Parameters
    ----------
    path : str or path
    ndim : int
        Spatial axes of a signal; an array of just as many, and perhaps channels, is one signal.
    channel_axis : int or None
        Which axis of a signal holds channels, 0 for the first and -1 for the last; None where signals have none.
    """

    windowed: ClassVar[bool] = True
    kind: ClassVar[str]
    inside: str = ""
    """Name of the array in a file that holds several; set before `__init__` is called."""

    def __init__(self, path: str | Path, ndim: int = 2, *, channel_axis: int | None = None) -> None:
        check_arguments(ndim=ndim)
        self.path, self.ndim = as_path(path), ndim
        axes = ndim + (channel_axis is not None)
        if channel_axis is not None and not (is_integer(channel_axis) and -axes <= channel_axis < axes):
            raise ValueError(f"channel_axis must be None or an axis from {-axes} to {axes - 1}, got {channel_axis!r}")
        self._channel_axis = None if channel_axis is None else int(channel_axis) % axes
        self._label = f"{self.path}::{self.inside}" if self.inside else str(self.path)
        self._opened: Any = None
        self._lock = threading.Lock()
        with damage_named(self._label):
            shape = tuple(operator.index(axis) for axis in self._array().shape)
        if len(shape) not in (axes, axes + 1) or 0 in shape:
            channels = "" if channel_axis is None else " and channels"
            raise UnreadableFileError(
                f"cannot read {self._label}: it must have {axes} or {axes + 1} axes for ndim={ndim}{channels} and hold "
                f"something, got shape {shape}"
            )
        self._single = len(shape) == axes
        self._count = 1 if self._single else shape[0]
        self._shape = shape if self._single else shape[1:]
        if self._channel_axis is not None:
            sides = list(self._shape)
            self._shape = (sides.pop(self._channel_axis), *sides)
        with damage_named(self._label):
            to_float(np.empty(0, self._array().dtype), "it")
            itemsize = np.dtype(self._array().dtype).itemsize
            check_claim(prod(shape) * itemsize, self._stored())
            check_chunk(prod(getattr(self._array(), "chunks", None) or (0,)) * itemsize)

    @abstractmethod
    def _open(self) -> Any:
        """Open the array; errors of any kind mean that the file is damaged."""

    def _array(self) -> Any:
        with self._lock:
            if self._opened is None:
                with damage_named(self._label):
                    self._opened = self._open()
            return self._opened

    def _stored(self) -> Iterable[int]:
        """Bytes of the files that the array lies in."""
        return [file.stat().st_size for file in self._files()]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._count} signals of {sizes(self._shape)} in {self._label})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_opened", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _opened=None, _lock=threading.Lock())

    def __len__(self) -> int:
        return self._count

    def read(self, index: int, epoch: int = 0) -> NDArray:
        return self._part(index, ())

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        where = box(corner, size)
        _check_axes(size, self.ndim)
        if self._channel_axis is not None:
            spans = list(where[1:])
            spans.insert(self._channel_axis, slice(None))
            where = tuple(spans)
        return self._part(index, where)

    def mapped(self, index: int) -> NDArray:
        """Return signal `index`: as a view of the file where that can be mapped and holds floats, in a file where large."""
        check_index(index, len(self))
        array, channels = self._array(), self._channel_axis is not None
        if isinstance(array, MappedFile):
            whole = array.map()
            signal = _channels_first(whole if self._single else whole[index], self._channel_axis)
            return floats(signal, self.name(index), channels=channels)
        if prod(self._shape) < LARGE:
            return self.read(index)
        out = scratch_file(self._shape, to_float(np.empty(0, array.dtype), "it").dtype)
        rows, columns = (slice(None),) * channels, self._shape[int(channels) :]
        for _, band in bands((self._shape[0] if channels else 1, *columns)):
            corner, size = (band.start, *[0] * (self.ndim - 1)), (band.stop - band.start, *columns[1:])
            out[(*rows, band)] = self.window(index, corner, size)
            release(out)
        return out

    def _part(self, index: int, where: tuple[Any, ...]) -> NDArray:
        check_index(index, len(self))
        array, place = self._array(), where if self._single else (index, *where)
        with damage_named(self.name(index)):
            samples = np.asarray(array[place])
        return to_float(_channels_first(samples, self._channel_axis), self.name(index))

    def shape(self, index: int) -> tuple[int, ...]:
        check_index(index, len(self))
        return self._shape

    def name(self, index: int, epoch: int = 0) -> str:
        check_index(index, len(self))
        return self._label if self._single else f"{self._label}[{index}]"

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "signals": len(self),
            "shape": list(self._shape),
            "type": np.dtype(self._array().dtype).name,
            "content": file_fingerprint(self._files()),
        }

    def _files(self) -> list[Path]:
        return [self.path]


def _channels_first(samples: NDArray, axis: int | None) -> NDArray:
    """A signal as it is stored, or a part of it, with its channels ahead; `axis` is where they lie, if there are any."""
    return samples if axis is None else np.moveaxis(samples, axis, 0)


class MappedFile:
    """An array in a file, mapped only while a part of it is copied: pages that stayed mapped would count as memory in use.

    Parameters
    ----------
    mapped : np.memmap
        A map of the whole array, which is let go.
    """

    def __init__(self, mapped: np.memmap) -> None:
        self.shape, self.dtype = mapped.shape, mapped.dtype
        order = "C" if mapped.flags.c_contiguous else "F"
        self._map = partial(np.memmap, mapped.filename, mapped.dtype, "r", mapped.offset, mapped.shape, order)

    def map(self) -> NDArray:
        """The whole array, mapped for as long as it is held."""
        return self._map().view(np.ndarray)

    def __getitem__(self, place: Any) -> NDArray:
        return np.array(self.map()[place])


class ChunkedArray:
    """An array in chunks, of which those that a part meets are read and unpacked one by one, and kept for a while.

    Parameters
    ----------
    shape, chunks : tuple of int
        Sides of the array and of what is packed together.
    dtype : dtype
    fill : number
        Samples of chunks that are not stored.
    load : callable
        Samples of a whole chunk by its number along each axis; None where it is not stored.
    """

    def __init__(
        self, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype, fill: Any,
        load: Callable[[tuple[int, ...]], NDArray[Any] | None],
    ) -> None:  # fmt: skip
        self.shape, self.chunks, self.dtype, self.fill, self.load = shape, chunks, dtype, fill, load
        self._recent = Cache(_RECENT)

    def __getitem__(self, place: Any) -> NDArray[Any]:
        given = list(place) if isinstance(place, tuple) else [place]
        if Ellipsis in given:
            here = given.index(Ellipsis)
            given[here : here + 1] = [slice(None)] * (len(self.shape) - len(given) + 1)
        given += [slice(None)] * (len(self.shape) - len(given))
        met = [range(side)[one] for side, one in zip(self.shape, given, strict=True)]
        spans = [range(one, one + 1) if isinstance(one, int) else one for one in met]
        out = np.full([len(span) for span in spans], self.fill, self.dtype)
        ends = zip(spans, self.chunks, strict=True)
        for number in product(*(range(span.start // side, -(-span.stop // side)) for span, side in ends)):
            chunk = self._recent.get(number, partial(self.load, number))
            if chunk is None:
                continue
            begins = [n * side for n, side in zip(number, self.chunks, strict=True)]
            pairs = list(zip(spans, begins, strict=True))
            part = chunk[tuple(slice(max(span.start - at, 0), max(span.stop - at, 0)) for span, at in pairs)]
            corner = [max(at - span.start, 0) for span, at in pairs]
            out[tuple(slice(at, at + side) for at, side in zip(corner, part.shape, strict=True))] = part
        return out[tuple(0 if isinstance(one, int) else slice(None) for one in met)]


def unpacked(codec: str, packed: bytes, room: int) -> bytes:
    """Bytes that a codec packed; raises ValueError rather than take more than `room` for them."""
    import imagecodecs  # large, and only for packed chunks

    decode = getattr(
        imagecodecs, f"{'deflate' if codec == 'zlib' else codec}_decode"
    )  # deflate's own library is quicker
    try:
        content: bytes = decode(packed, out=room + 1, **({"header": True} if codec == "lz4" else {}))
    except RuntimeError as error:
        raise ValueError(f"one of its chunks does not unpack into the {room:,} bytes of a chunk: {error}") from error
    if len(content) > room:
        raise ValueError(f"one of its chunks does not unpack into the {room:,} bytes of a chunk: it holds more")
    return content


class NpySource(StackedSource):
    """A ``.npy`` file: only what is asked for is ever read.

    Parameters
    ----------
    path : str or path
    ndim : int
        Spatial axes of a signal; an array with one axis more is a stack of signals.
    channel_axis : int or None
        Which axis of a signal holds channels: 0 for a recording (channels, samples), -1 for one (samples, channels).
        Signals are read with channels ahead in either case. None where they have no channels.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> np.save("series.npy", np.zeros((5, 200), np.float32))
    >>> len(pt.sources.NpySource("series.npy", ndim=1))
    5
    >>> pt.sources.NpySource("series.npy", ndim=1, channel_axis=0).read(0).shape
    (5, 200)
    """

    kind: ClassVar[str] = "npy"

    def _open(self) -> MappedFile:
        return MappedFile(map_npy(self.path))


class TiffSource(StackedSource):
    """The pages of a TIFF file, grey, each a signal (or all of them one volume, with ``ndim=3``).

    Uncompressed stacks are mapped, so that a crop reads no more than itself; others are decoded page by page.

    Parameters
    ----------
    path : str or path
    ndim : int
        As in `NpySource`.
    channel_axis : int or None
        Which axis of a signal holds channels, as in `NpySource`.

    Examples
    --------
    >>> import numpy as np, pointillist as pt, tifffile
    >>> tifffile.imwrite("stack.tif", np.zeros((7, 40, 30), np.uint16), photometric="minisblack")
    >>> len(pt.sources.TiffSource("stack.tif")), len(pt.sources.TiffSource("stack.tif", ndim=3))
    (7, 1)
    """

    kind: ClassVar[str] = "tiff"

    def _open(self) -> Any:
        check_regular(self.path, "TIFF file")
        with self.path.open("rb") as stream, tifffile.TiffFile(stream) as tiff:
            check_pages(stream)
            if tiff.pages.first.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
                raise ValueError("zero means white in it, which only single images may; save it with black as zero")
        try:
            return MappedFile(tifffile.memmap(self.path, mode="r", **ONE_FILE))
        except ValueError:  # compressed, tiled or scattered
            return _Pages(self.path)


class _Pages:
    """Pages of a TIFF file as an array (n, height, width) that is read by its first index."""

    def __init__(self, path: Path) -> None:
        self._file = tifffile.TiffFile(path)
        self._lock = threading.Lock()  # pages share the file's position
        first = self._file.pages.first
        if first.ndim != 2:
            raise ValueError(f"its pages have the axes {first.axes}: only grey pages can be read as a stack")
        self.shape = (len(self._file.pages), *first.shape)
        self.dtype = first.dtype
        self.chunks = (1, *first.shape)
        self._size = path.stat().st_size

    def __getitem__(self, place: Any) -> NDArray:
        index, *where = place if isinstance(place, tuple) else (place,)
        if not isinstance(index, int | np.integer):
            return np.stack([self[i] for i in range(self.shape[0])])[place]
        with self._lock:
            page = self._file.pages[int(index)]
            if (page.shape, page.dtype) != (self.shape[1:], self.dtype):
                raise ValueError(
                    f"page {index} is {page.shape} of {page.dtype}, the first {self.shape[1:]} of {self.dtype}"
                )
            check_page(page, self._size)
            samples = page.asarray()
        return samples[tuple(where)] if where else samples


def as_text(given: Any, name: str) -> str:
    """The name of an array in a file, if it is a text; errors call the argument by `name`."""
    if not isinstance(given, str):
        raise TypeError(f"{name} must be a text, got {shown(given)}")
    return given


def chosen(name: str, names: list[str]) -> str:
    """The only one of the arrays that a file holds; raises ValueError if there are more, or if one was named."""
    listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    if name:
        raise ValueError(f"there is no array {name!r} in it; it holds {listed or 'none'}")
    if len(names) != 1:
        raise ValueError(f"name the array to read, as in FILE::NAME; it holds {listed or 'none'}")
    return names[0]


def _check_axes(size: Sequence[int], ndim: int) -> None:
    if len(size) != ndim:
        raise ValueError(f"size must have {ndim} entries, one for each axis of the signals, got {size}")
