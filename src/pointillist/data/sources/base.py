"""Sources of signals: random access by an integer, so that a place in a pass is one number.

Orders, batches and reading ahead are the stream's business. A source holds paths rather than data where it can and is sent
to other processes without its open files, so that each can read its own part of it.
"""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.arrays import as_plain, is_resident, to_host
from pointillist.reprs import shown
from pointillist.validation import as_list, check_index, is_integer


@runtime_checkable
class Source(Protocol):
    """Origin of signals: anything with these methods can be given to `OnlineCSC.fit`.

    A source yields *signals*, as learners take them: ([channels,] *space), never pictures (height, width, 3).

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> class Noise:
    ...     exact = True
    ...     def __len__(self):
    ...         return 6
    ...     def read(self, index, epoch=0):
    ...         return np.random.default_rng(index).standard_normal(60)
    ...     def name(self, index, epoch=0):
    ...         return f"noise {index}"
    ...     def describe(self):
    ...         return {"kind": "noise"}
    >>> isinstance(Noise(), pt.sources.Source)
    True
    >>> pt.OnlineCSC(n_filters=4, filter_size=5, n_epochs=1, penalty=0.5, random_state=0).fit(Noise()).n_seen_
    6
    """

    @property
    def exact(self) -> bool:
        """True if an index gives the same signal every time, so that a run can be resumed to the bit."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of signals in one pass."""

    @abstractmethod
    def read(self, index: int, epoch: int = 0) -> NDArray:
        """Return signal `index` of pass `epoch`, ([channels,] *space); called from several threads.

        Only random crops are other ones in every pass. Raises `UnreadableFileError` for an item that is damaged or useless.
        """

    @abstractmethod
    def name(self, index: int, epoch: int = 0) -> str:
        """Return what messages call signal `index` of pass `epoch`."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what JSON can hold of the source's identity: equal for equal data, different where the data differ."""


class StoredSource(Source):
    """A source whose signals have shapes that can be looked up and windows that can be read, as crops and plans need it."""

    exact: ClassVar[bool] = True
    windowed: ClassVar[bool] = False
    """True if `window` reads less than the whole signal."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} signals)"

    @property
    def sampling_rates(self) -> frozenset[float]:
        """All numbers of samples in a second that files of the source say; empty where none says so."""
        return frozenset()

    @abstractmethod
    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of signal `index`, without reading its samples where the format allows."""

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        """Return a part of signal `index`: `size` samples from `corner` along the last axes."""
        return self.read(index)[box(corner, size)]

    def mapped(self, index: int) -> NDArray:
        """Return signal `index` as `read` does, but left in its file where it is large and the format allows that."""
        return self.read(index)


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
        self._signals: Any = signals
        if not isinstance(signals, np.ndarray):
            several = enumerate(as_list(signals, "signals"))
            self._signals = [one if is_resident(one) else as_plain(one, f"signals[{i}]") for i, one in several]
        if not isinstance(name, str):
            raise TypeError(f"name must be a text, got {shown(name)}")
        self._name = name

    def __len__(self) -> int:
        return len(self._signals)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        check_index(index, len(self))
        return self._signals[index]

    def shape(self, index: int) -> tuple[int, ...]:
        return np.shape(self.read(index))

    def name(self, index: int, epoch: int = 0) -> str:
        check_index(index, len(self))
        return f"{self._name}[{index}]"

    def describe(self) -> dict[str, Any]:
        arrays = [self._signals] if isinstance(self._signals, np.ndarray) else [to_host(s) for s in self._signals]
        return {"kind": "arrays", "signals": len(self), "content": array_fingerprint(arrays)}


def check_source(source: Any, name: str = "source", verbs: Iterable[str] = ("read", "name", "describe")) -> None:
    """Refuse what does not have the `verbs` of a source; errors call it by `name`."""
    if isinstance(source, type) or not all(hasattr(source, verb) for verb in verbs):
        raise TypeError(
            f"{name} must be a source, such as ArraySource(arrays) or open_source(path), got {shown(source)}"
        )


def check_stored(source: Any, name: str = "source") -> None:
    """Refuse what is no source with shapes and windows; errors call it by `name`."""
    check_source(source, name, ("read", "shape", "window"))


def check_sides(**given: Any) -> None:
    """Refuse places and sizes of windows that are no tuples of whole numbers."""
    for name, sides in given.items():
        if not isinstance(sides, list | tuple) or not all(is_integer(n) and n >= 0 for n in sides):
            raise ValueError(f"{name} must be a tuple of integers, not negative, got {shown(sides)}")


def box(corner: Sequence[int], size: Sequence[int]) -> tuple[Any, ...]:
    """The index of a window in the last axes of an array."""
    check_sides(corner=corner, size=size)
    if len(corner) != len(size):
        raise ValueError(f"corner and size must have as many entries, got {shown(corner)} and {shown(size)}")
    return (..., *[slice(first, first + length) for first, length in zip(corner, size, strict=True)])


def file_fingerprint(files: Iterable[str | os.PathLike[str]]) -> str:
    """A hash of the names, sizes and times of files, in order; a missing one counts as such."""
    digest = hashlib.blake2b(digest_size=16)
    for file in map(Path, files):
        try:
            facts = file.stat()
            said = f"{facts.st_size}\0{facts.st_mtime_ns}"
        except OSError:
            said = "missing"
        digest.update(f"{file.name}\0{said}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def array_fingerprint(arrays: Iterable[NDArray]) -> str:
    """A hash of the types, shapes and samples of arrays; of a large array only some samples are read."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        step = max(1, array.size // 2**22)
        samples = array if step == 1 else array.reshape(-1)[::step] if array.flags.c_contiguous else array.flat[::step]
        digest.update(samples.tobytes())
    return digest.hexdigest()
