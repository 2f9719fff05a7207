"""Signals in memory, and in ``.npy`` files that are mapped rather than read."""

from __future__ import annotations

import operator
import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.arrays import as_plain, is_resident, to_host
from pointillist.data.damage import check_chunk, check_claim, damage_named
from pointillist.data.mapped import floats
from pointillist.data.npy import map_npy
from pointillist.data.samples import to_float
from pointillist.data.sources.base import StoredSource, array_fingerprint, box, check_sides, file_fingerprint
from pointillist.errors import UnreadableFileError
from pointillist.large import LARGE, bands, release, scratch_file
from pointillist.reprs import shown, sizes
from pointillist.validation import as_list, as_path, check_arguments, check_index, is_integer


class ArraySource(StoredSource):
    """Signals that are at hand as arrays; pictures become signals by `as_signals`.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or sequence of arrays of any sizes
        Also a memory-mapped array; nothing is copied.
    name : str
        What to call them in messages.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> source = pt.sources.ArraySource(np.zeros((6, 32, 32)))
    >>> len(source), source.read(2).shape
    (6, (32, 32))
    """

    windowed: ClassVar[bool] = True

    def __init__(self, signals: NDArray | Sequence[ArrayLike], name: str = "X") -> None:
        whole = isinstance(signals, np.ndarray)
        self._signals: Any = (
            signals
            if whole
            else [
                s if is_resident(s) else as_plain(s, f"signals[{i}]") for i, s in enumerate(as_list(signals, "signals"))
            ]
        )
        if not isinstance(name, str):
            raise TypeError(f"name must be a text, got {shown(name)}")
        self._name = name

    def __len__(self) -> int:
        return len(self._signals)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        check_index(index, len(self))
        return self._signals[index]

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        return self.read(index)[box(corner, size)]

    def shape(self, index: int) -> tuple[int, ...]:
        return np.shape(self.read(index))

    def name(self, index: int, epoch: int = 0) -> str:
        check_index(index, len(self))
        return f"{self._name}[{index}]"

    def describe(self) -> dict[str, Any]:
        arrays = [self._signals] if isinstance(self._signals, np.ndarray) else [to_host(s) for s in self._signals]
        return {"kind": "arrays", "signals": len(self), "content": array_fingerprint(arrays)}


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
    """Where the array is in a file that holds several; to be set before `__init__` is called."""

    def __init__(self, path: str | Path, ndim: int = 2, *, channel_axis: int | None = None) -> None:
        check_arguments(ndim=ndim)
        self.path, self.ndim = as_path(path), ndim
        axes = ndim + (channel_axis is not None)
        self._channel_axis = None if channel_axis is None else _checked_axis(channel_axis, axes)
        self._opened: Any = None
        self._lock = threading.Lock()
        with damage_named(self._label()):
            shape = tuple(operator.index(axis) for axis in self._array().shape)
        if len(shape) not in (axes, axes + 1) or 0 in shape:
            channels = "" if channel_axis is None else " and channels"
            raise UnreadableFileError(
                f"cannot read {self._label()}: it must have {axes} or {axes + 1} axes for ndim={ndim}{channels} and hold "
                f"something, got shape {shape}"
            )
        self._single = len(shape) == axes
        self._count = 1 if self._single else shape[0]
        self._shape = shape if self._single else shape[1:]
        if self._channel_axis is not None:
            before, after = self._shape[: self._channel_axis], self._shape[self._channel_axis + 1 :]
            self._shape = (self._shape[self._channel_axis], *before, *after)
        with damage_named(self._label()):
            to_float(np.empty(0, self._array().dtype), "it")
            check_claim(prod(shape) * self._itemsize, self._stored())
            check_chunk(self.chunk_bytes)

    @abstractmethod
    def _open(self) -> Any:
        """Open the array; errors of any kind mean that the file is damaged."""

    def _label(self) -> str:
        return f"{self.path}::{self.inside}" if self.inside else str(self.path)

    def _array(self) -> Any:
        with self._lock:
            if self._opened is None:
                with damage_named(self._label()):
                    self._opened = self._open()
            return self._opened

    @property
    def _itemsize(self) -> int:
        return np.dtype(self._array().dtype).itemsize

    @property
    def chunk_bytes(self) -> int:
        return prod(getattr(self._array(), "chunks", None) or (0,)) * self._itemsize

    def _stored(self) -> Iterable[int]:
        """Bytes of the files that the array lies in."""
        return [self.path.stat().st_size]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._count} signals of {sizes(self._shape)} in {self._label()})"

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

    def window_bytes(self, size: Sequence[int]) -> int:
        check_sides(size=size)
        _check_axes(size, self.ndim)
        array, axis = self._array(), self._channel_axis
        if not isinstance(array, MappedFile):
            return super().window_bytes(size)
        whole = list(size) if axis is None else [*size[:axis], self._shape[0], *size[axis:]]
        return array.pages(whole)

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
        return self._label() if self._single else f"{self._label()}[{index}]"

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


def _checked_axis(channel_axis: int, axes: int) -> int:
    """Count the axis of the channels from the front, if a signal of so many axes has it."""
    if not is_integer(channel_axis) or not -axes <= channel_axis < axes:
        raise ValueError(f"channel_axis must be None or an axis from {-axes} to {axes - 1}, got {channel_axis!r}")
    return int(channel_axis) % axes


def _channels_first(samples: NDArray, axis: int | None) -> NDArray:
    """A signal as it is stored, or a part of it, with its channels ahead; `axis` is where they lie, if there are any."""
    return samples if axis is None else np.moveaxis(samples, axis, 0)


_LARGE_PAGE = 2**21
"""Bytes that a system may map around a sample that is touched."""


class MappedFile:
    """An array in a file, mapped only while a part of it is copied: pages that stayed mapped would count as memory in use.

    Parameters
    ----------
    mapped : np.memmap
        A map of the whole array, which is let go.
    """

    def __init__(self, mapped: np.memmap) -> None:
        self.shape, self.dtype, self._strides = mapped.shape, mapped.dtype, mapped.strides
        order = "C" if mapped.flags.c_contiguous else "F"
        self._where: dict[str, Any] = {
            "dtype": mapped.dtype,
            "shape": mapped.shape,
            "offset": mapped.offset,
            "order": order,
        }
        self._path = str(mapped.filename)

    def pages(self, size: Sequence[int]) -> int:
        """Bytes that are mapped at most while a window of that size in the last axes is copied."""
        span, pieces = self.dtype.itemsize, 1
        for stride, length in sorted(zip(self._strides[-len(size) :], size, strict=True)):
            if stride <= span + _LARGE_PAGE:
                span += (length - 1) * stride
            else:
                pieces *= length
        return pieces * (span + _LARGE_PAGE)

    def map(self) -> NDArray:
        """The whole array, mapped for as long as it is held."""
        return np.memmap(self._path, mode="r", **self._where).view(np.ndarray)

    def __getitem__(self, place: Any) -> NDArray:
        return np.array(self.map()[place])


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


def _check_axes(size: Sequence[int], ndim: int) -> None:
    if len(size) != ndim:
        raise ValueError(f"size must have {ndim} entries, one for each axis of the signals, got {size}")
