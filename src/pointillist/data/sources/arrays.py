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

from pointillist.backends.devices import is_resident, to_host
from pointillist.data.damage import check_chunk, check_claim, damage_named
from pointillist.data.mapped import floats
from pointillist.data.npy import map_npy
from pointillist.data.samples import to_float
from pointillist.data.sources.base import StoredSource, array_fingerprint, box, file_fingerprint
from pointillist.errors import UnreadableFileError


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
    >>> source = pt.ArraySource(np.zeros((6, 32, 32)))
    >>> len(source), source.read(2).shape
    (6, (32, 32))
    """

    windowed: ClassVar[bool] = True

    def __init__(self, signals: NDArray | Sequence[ArrayLike], name: str = "X") -> None:
        whole = isinstance(signals, np.ndarray)
        self._signals: Any = signals if whole else [s if is_resident(s) else np.asarray(s) for s in signals]
        self._name = name

    def __len__(self) -> int:
        return len(self._signals)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        return self._signals[index]

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        return self._signals[index][box(corner, size)]

    def shape(self, index: int) -> tuple[int, ...]:
        return np.shape(self._signals[index])

    def name(self, index: int, epoch: int = 0) -> str:
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
        Axes of a signal; an array of just as many is one signal.
    """

    windowed: ClassVar[bool] = True
    kind: ClassVar[str]
    inside: str = ""
    """Where the array is in a file that holds several; to be set before `__init__` is called."""

    def __init__(self, path: str | Path, ndim: int = 2) -> None:
        self.path, self.ndim = Path(path), ndim
        self._opened: Any = None
        self._lock = threading.Lock()
        with damage_named(self._label()):
            shape = tuple(operator.index(axis) for axis in self._array().shape)
        if len(shape) not in (ndim, ndim + 1) or 0 in shape:
            raise UnreadableFileError(
                f"cannot read {self._label()}: it must have {ndim} or {ndim + 1} axes for ndim={ndim} and hold something, "
                f"got shape {shape}"
            )
        self._single = len(shape) == ndim
        self._count = 1 if self._single else shape[0]
        self._shape = shape if self._single else shape[1:]
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

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_opened", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _opened=None, _lock=threading.Lock())

    def __len__(self) -> int:
        return self._count

    def read(self, index: int, epoch: int = 0) -> NDArray:
        return self._part(index, ())

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        return self._part(index, box(corner, size))

    def mapped(self, index: int) -> NDArray:
        """Return signal `index`, as a view of the file where that can be mapped and holds floats."""
        array = self._array()
        if not isinstance(array, MappedFile):
            return self.read(index)
        whole = array.map()
        return floats(whole if self._single else whole[index], self.name(index))

    def _part(self, index: int, where: tuple[Any, ...]) -> NDArray:
        array, place = self._array(), where if self._single else (index, *where)
        with damage_named(self.name(index)):
            samples = np.asarray(array[place])
        return to_float(samples, self.name(index))

    def shape(self, index: int) -> tuple[int, ...]:
        return self._shape

    def name(self, index: int, epoch: int = 0) -> str:
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
        self._where: dict[str, Any] = {
            "dtype": mapped.dtype,
            "shape": mapped.shape,
            "offset": mapped.offset,
            "order": order,
        }
        self._path = str(mapped.filename)

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
        Axes of a signal; an array with one axis more is a stack of signals.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> np.save("series.npy", np.zeros((5, 200), np.float32))
    >>> len(pt.NpySource("series.npy", ndim=1))
    5
    """

    kind: ClassVar[str] = "npy"

    def _open(self) -> MappedFile:
        return MappedFile(map_npy(self.path))
