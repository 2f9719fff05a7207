"""Stacks of signals in one file, read part by part: arrays in ``.npy`` files and the pages of TIFF files."""

from __future__ import annotations

import operator
import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.arrays import LARGE, bands, release, scratch_file
from pointillist.data.damage import check_chunk, check_claim, check_page, check_pages, damage_named
from pointillist.data.samples import ONE_FILE, map_npy, to_float
from pointillist.data.sources.base import StoredSource, file_fingerprint
from pointillist.reprs import sizes
from pointillist.storage import check_regular
from pointillist.validation import as_path, check_arguments, check_index, is_integer


class StackedSource(StoredSource):
    """Signals along the first axis of one array in a file, opened when it is first needed, in every process anew.

    Subclasses say how to open it; what they open must give shape, dtype and parts by a tuple of slices, as arrays do.

    Parameters
    ----------
    path : str or path
    ndim : int
        Spatial axes of a signal; an array of just as many, and perhaps channels, is one signal.
    channel_axis : int or None
        Which axis of a signal holds channels, 0 for the first and -1 for the last; None where signals have none.
    """

    windowed = True
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
        with damage_named(self._label):
            array = self._array()
            self._stored_shape = shape = tuple(map(operator.index, array.shape))
            self._dtype = np.dtype(array.dtype)
            if len(shape) not in (axes, axes + 1) or 0 in shape:
                channels = "" if channel_axis is None else " and channels"
                raise ValueError(
                    f"it must have {axes} or {axes + 1} axes for ndim={ndim}{channels} and hold something, got shape "
                    f"{shape}"
                )
            to_float(np.empty(0, self._dtype), "it")
            check_claim(prod(shape) * self._dtype.itemsize, self._stored())
            check_chunk(prod(getattr(array, "chunks", None) or (0,)) * self._dtype.itemsize)
        self._single = len(shape) == axes
        self._count = 1 if self._single else shape[0]
        sides = list(shape[-axes:])
        if self._channel_axis is not None:
            sides.insert(0, sides.pop(self._channel_axis))
        self._shape = tuple(sides)

    @abstractmethod
    def _open(self) -> Any:
        """Open the array; errors of any kind mean that the file is damaged."""

    def _array(self) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _files(self) -> Iterable[Path]:
        return [self.path]

    def _stored(self) -> Iterable[int]:
        """Bytes of the files that the array lies in."""
        return (file.stat().st_size for file in self._files())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._count} signals of {sizes(self._shape)} in {self._label})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __len__(self) -> int:
        return self._count

    def read(self, index: int, epoch: int = 0) -> NDArray:
        return self.window(index, (0,) * self.ndim, self._shape[-self.ndim :])

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        check_index(index, len(self))
        check_arguments(corner=corner, size=size)
        spans = [slice(first, first + length) for first, length in zip(corner, size, strict=True)]
        if self._channel_axis is not None:
            spans.insert(self._channel_axis, slice(0, self._shape[0]))
        if not self._single:
            spans.insert(0, slice(index % len(self), index % len(self) + 1))
        name = self.name(index)
        with damage_named(name):
            array = self._array()
            if array.shape != self._stored_shape:
                raise ValueError(
                    f"it has changed since it was opened: it was {self._stored_shape} and is {array.shape}"
                )
            samples = np.array(array[tuple(spans)])
        return to_float(self._signal(samples, 0), name)

    def _signal(self, array: NDArray, index: int) -> NDArray:
        """Signal `index` of an array as it is stored, with its channels ahead."""
        signal = array if self._single else array[index]
        return signal if self._channel_axis is None else np.moveaxis(signal, self._channel_axis, 0)

    def mapped(self, index: int) -> NDArray:
        """Return signal `index`: as a view of the file where that can be mapped and holds floats, in a file where large."""
        check_index(index, len(self))
        with damage_named(self._label):
            array = self._array()
        dtype = to_float(np.empty(0, self._dtype), "it").dtype
        if isinstance(array, MappedFile) and self._dtype == dtype:
            signal = self._signal(array.map(), index)
            if signal.flags.c_contiguous:
                return signal
        if prod(self._shape) < LARGE:
            return self.read(index)
        out = scratch_file(self._shape, dtype)
        space = self._shape[-self.ndim :]
        for _, band in bands((prod(self._shape[: -self.ndim]), *space)):
            corner, size = (band.start, *[0] * (self.ndim - 1)), (band.stop - band.start, *space[1:])
            out.reshape(-1, *space)[:, band] = self.window(index, corner, size)
            release(out)
        return out

    def shape(self, index: int) -> tuple[int, ...]:
        check_index(index, len(self))
        return self._shape

    def name(self, index: int, epoch: int = 0) -> str:
        return self._label if self._single else f"{self._label}[{index}]"

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "signals": len(self),
            "shape": list(self._shape),
            "type": self._dtype.name,
            "content": file_fingerprint(sorted(self._files())),
        }


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
        return self.map()[place]


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
    """Pages of a TIFF file as an array (n, height, width), decoded one by one."""

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

    def __getitem__(self, place: tuple[slice, slice, slice]) -> NDArray:
        return np.stack([self._page(index)[place[1:]] for index in range(len(self._file.pages))[place[0]]])

    def _page(self, index: int) -> NDArray:
        with self._lock:
            page = self._file.pages[index]
            if (page.shape, page.dtype) != (self.shape[1:], self.dtype):
                raise ValueError(
                    f"page {index} is {page.shape} of {page.dtype}, the first {self.shape[1:]} of {self.dtype}"
                )
            check_page(page, self._size)
            return page.asarray()
