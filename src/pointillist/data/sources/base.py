"""Sources of signals: random access by an integer, so that a place in a pass is one number.

Orders, batches and reading ahead are the stream's business. A source holds paths rather than data where it can and is sent
to other processes without its open files, so that each can read its own part of it. Here are the sources of arrays and of
image files, and those made of other sources: random crops, several joined, signals normalised or kept.
"""

from __future__ import annotations

import hashlib
import os
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.arrays import LARGE, as_plain, is_resident, release, scratch_file, to_host
from pointillist.data.images import load_image
from pointillist.data.normalise import contrast_normalise
from pointillist.errors import UnreadableFileError, UnusableSignalError
from pointillist.reprs import shown, sizes
from pointillist.sampling import generator
from pointillist.validation import as_list, as_path, check_arguments, check_index, is_constant

DEFAULT_CACHE = 2**28
"""Bytes of decoded signals that are kept."""
_CROPS = 3  # sets these draws apart from all others of the same seed
_ATTEMPTS = 10

Made = TypeVar("Made")


@runtime_checkable
class Source(Protocol):
    """Origin of signals: anything with these methods can be given to `OnlineCSC.fit`.

    A source yields *signals*, as learners take them: ([channels,] *space), never pictures (height, width, 3).

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> class Noise:
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

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of signals in one pass."""

    @abstractmethod
    def read(self, index: int, epoch: int = 0) -> NDArray:
        """Return signal `index` of pass `epoch`, ([channels,] *space); called from several threads.

        A run can be resumed to the bit if an index and a pass give the same signal every time. Only random crops are other
        ones in every pass. Raises `UnreadableFileError` for an item that is damaged or useless.
        """

    @abstractmethod
    def name(self, index: int, epoch: int = 0) -> str:
        """Return what messages call signal `index` of pass `epoch`."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what JSON can hold of the source's identity: equal for equal data, different where the data differ."""


class StoredSource(Source):
    """A source whose signals have shapes that can be looked up and windows that can be read, as crops and plans need it."""

    windowed: bool = False
    """True if `window` reads less than the whole signal."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} signals)"

    @property
    def sampling_rates(self) -> frozenset[float]:
        """All numbers of samples in a second that files of the source say; empty where none says so."""
        return frozenset()

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of signal `index`, without reading its samples where windows are read without the whole."""
        return self.read(index).shape

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        """Return a part of signal `index`: `size` samples from `corner` along the last axes."""
        return self.read(index)[(..., *spans_of(corner, size))]

    def mapped(self, index: int) -> NDArray:
        """Return signal `index` as `read` does, but left in its file where it is large and the format allows that."""
        return self.read(index)


def spans_of(corner: Sequence[int], size: Sequence[int]) -> list[Any]:
    """Slices of a window, `size` samples from `corner` along each axis, checked."""
    check_arguments(corner=corner, size=size)
    if len(corner) != len(size):
        raise ValueError(f"corner and size must have one number for each axis, got {shown(corner)} and {shown(size)}")
    return [slice(first, first + length) for first, length in zip(corner, size, strict=True)]


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

    windowed = True

    def __init__(self, signals: NDArray | Sequence[ArrayLike], name: str = "X") -> None:
        check_arguments(name=name)
        self._signals: Any = signals
        if not isinstance(signals, np.ndarray):
            several = enumerate(as_list(signals, "signals"))
            self._signals = [one if is_resident(one) else as_plain(one, f"signals[{i}]") for i, one in several]
        self._name = name

    def __len__(self) -> int:
        return len(self._signals)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        check_index(index, len(self))
        return self._signals[index]

    def name(self, index: int, epoch: int = 0) -> str:
        return f"{self._name}[{index}]"

    def describe(self) -> dict[str, Any]:
        """Identity of the samples: a hash of their types, shapes and values, of a large array only of some values."""
        digest = hashlib.blake2b(digest_size=16)
        for array in [self._signals] if isinstance(self._signals, np.ndarray) else map(to_host, self._signals):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            step = max(1, array.size // 2**22)
            digest.update(array.flat[::step].tobytes())
        return {"kind": "arrays", "signals": len(self), "content": digest.hexdigest()}


class ImageSource(StoredSource):
    """One signal for each image file: names at hand, pixels decoded when they are asked for.

    Parameters
    ----------
    files : sequence of paths
        What `load_image` reads.
    grey : bool
        Whether signals are grey, (height, width), or colour, (3, height, width): channels first, as in all signals.

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> Image.new("L", (40, 30)).save("black.png")
    >>> pt.sources.ImageSource(["black.png"]).read(0).shape
    (30, 40)
    """

    def __init__(self, files: Sequence[str | os.PathLike[str]], *, grey: bool = True) -> None:
        check_arguments(grey=grey)
        self.files = [str(as_path(file, "files")) for file in as_list(files, "files")]
        if not self.files:
            raise ValueError("files is empty: give at least one image file")
        self.grey = grey

    def __len__(self) -> int:
        return len(self.files)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        file = self.name(index)
        try:
            picture = load_image(file, grey=self.grey)
        except OSError as error:  # gone, or not to be read, since the files were listed
            raise UnreadableFileError(f"cannot read {file}: {error.strerror or error}") from error
        return picture if self.grey else np.ascontiguousarray(np.moveaxis(picture, -1, 0))

    def mapped(self, index: int) -> NDArray:
        """Return signal `index`, moved to a temporary file where it is large."""
        signal = self.read(index)
        if signal.size < LARGE:
            return signal
        out = scratch_file(signal.shape, signal.dtype)
        out[...] = signal
        release(out)
        return out

    def name(self, index: int, epoch: int = 0) -> str:
        check_index(index, len(self))
        return self.files[index]

    def describe(self) -> dict[str, Any]:
        return {"kind": "images", "signals": len(self), "grey": self.grey, "content": file_fingerprint(self.files)}


class Cache:
    """Arrays by key, at most so many bytes of them; those asked for longest ago go first. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._arrays: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The array of that key, or what else has `nbytes`, made and kept where it is not there; None is not kept."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        array: Any = make()
        with self._lock:
            if array is not None and key not in self._arrays and array.nbytes <= self.limit:
                self._arrays[key] = array
                self.held += array.nbytes
                while self.held > self.limit:
                    _, oldest = self._arrays.popitem(last=False)
                    self.held -= oldest.nbytes
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self.limit,)


class CropSource(StoredSource):
    """Crops of one size from random places of random signals.

    A crop without contrast is drawn again, up to ten times. Signals smaller than the crop are unusable.

    Parameters
    ----------
    source : Source
        What to cut from; signals of any sizes.
    count : int
        Crops in one pass; every pass has other ones.
    size : tuple of int
        Shape of a crop along the spatial axes.
    seed : int
    cache : int
        Bytes of decoded signals to keep, for sources that cannot read a part of one.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> images = np.random.default_rng(0).standard_normal((3, 200, 300))
    >>> crops = pt.sources.CropSource(pt.sources.ArraySource(images), count=50, size=(64, 64))
    >>> len(crops), crops.read(0).shape
    (50, (64, 64))
    """

    def __init__(
        self, source: Source, count: int, size: tuple[int, ...], *, seed: int = 0, cache: int = DEFAULT_CACHE
    ) -> None:
        check_arguments(source=source, count=count, size=size, seed=seed, cache=cache)
        self.source, self.count, self.size, self.seed = source, count, tuple(size), seed
        self.cache = Cache(cache)

    def __repr__(self) -> str:
        return f"CropSource({self.count} crops of {sizes(self.size)} from {self.source!r})"

    def __len__(self) -> int:
        return self.count

    def _drawn(self, index: int, epoch: int) -> tuple[np.random.Generator, int]:
        """The random numbers of a crop, and the first of them: the signal that it is cut from."""
        check_index(index, len(self))
        check_arguments(epoch=epoch)
        rng = generator(self.seed, _CROPS, epoch, index % len(self))
        return rng, int(rng.integers(len(self.source)))

    def read(self, index: int, epoch: int = 0) -> NDArray:
        rng, which = self._drawn(index, epoch)
        source, place = self.source, which
        if not isinstance(source, StoredSource) or not source.windowed:
            source, place = ArraySource([self.cache.get(which, lambda: self.source.read(which))]), 0
        shape = source.shape(place)
        room = [length - side for length, side in zip(shape[-len(self.size) :], self.size, strict=True)]
        if min(room) < 0:
            raise UnusableSignalError(f"{self.source.name(which)} is smaller than a crop, {shape}: take smaller crops")
        for _ in range(_ATTEMPTS):
            crop = source.window(place, [int(rng.integers(free + 1)) for free in room], self.size)
            if not is_constant(crop):
                return crop.copy()  # a view would keep the whole signal in memory
        raise UnusableSignalError(f"{self.source.name(which)} is constant wherever a crop was tried: leave it out")

    def name(self, index: int, epoch: int = 0) -> str:
        return f"crop {index} of {self.source.name(self._drawn(index, epoch)[1])}"

    def describe(self) -> dict[str, Any]:
        settings = {"kind": "crops", "signals": self.count, "size": list(self.size), "seed": self.seed}
        return {**settings, "of": self.source.describe()}


class JoinedSource(StoredSource):
    """Several sources as one, the signals of each after those of the one before.

    Parameters
    ----------
    sources : sequence of StoredSource

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> parts = [pt.sources.ArraySource(np.zeros((n, 32, 32))) for n in (2, 3)]
    >>> len(pt.sources.JoinedSource(parts))
    5
    """

    def __init__(self, sources: Sequence[StoredSource]) -> None:
        self.sources = as_list(sources, "sources")
        if not self.sources:
            raise ValueError("sources is empty: give at least one source")
        check_arguments(sources=self.sources)
        self.windowed = all(source.windowed for source in self.sources)
        self._ends = list(accumulate(len(source) for source in self.sources))

    def __repr__(self) -> str:
        return f"JoinedSource({len(self)} signals of {len(self.sources)} sources)"

    @property
    def sampling_rates(self) -> frozenset[float]:
        return frozenset[float]().union(*(source.sampling_rates for source in self.sources))

    def __len__(self) -> int:
        return self._ends[-1]

    def _locate(self, index: int) -> tuple[StoredSource, int]:
        check_index(index, len(self))
        index = index % len(self)
        which = bisect_right(self._ends, index)
        return self.sources[which], index - (self._ends[which - 1] if which else 0)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        source, place = self._locate(index)
        return source.read(place, epoch)

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        source, place = self._locate(index)
        return source.window(place, corner, size)

    def mapped(self, index: int) -> NDArray:
        source, place = self._locate(index)
        return source.mapped(place)

    def shape(self, index: int) -> tuple[int, ...]:
        source, place = self._locate(index)
        return source.shape(place)

    def name(self, index: int, epoch: int = 0) -> str:
        source, place = self._locate(index)
        return source.name(place, epoch)

    def describe(self) -> dict[str, Any]:
        return {"kind": "joined", "signals": len(self), "of": [source.describe() for source in self.sources]}


class DerivedSource(StoredSource):
    """A source with another source's signals, one for one, changed or kept; subclasses say by `read` what becomes of them.

    Parameters
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        check_arguments(source=source)
        self.source = source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"

    def __len__(self) -> int:
        return len(self.source)

    def name(self, index: int, epoch: int = 0) -> str:
        return self.source.name(index, epoch)

    def describe(self) -> dict[str, Any]:
        return self.source.describe()


class NormalisedSource(DerivedSource):
    """The signals of another source, contrast-normalised one by one; see `contrast_normalise`.

    Parameters
    ----------
    source : Source
    ndim : int
        Spatial axes of a signal; channels, ahead of them, are normalised one by one.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.sources.NormalisedSource(pt.sources.ArraySource(list(pt.photographs().values())))
    >>> bool(abs(source.read(0).mean()) < 1e-6)
    True
    """

    def __init__(self, source: Source, ndim: int = 2) -> None:
        check_arguments(ndim=ndim)
        super().__init__(source)
        self.ndim = ndim

    def read(self, index: int, epoch: int = 0) -> NDArray:
        signal = self.source.read(index, epoch)
        try:
            if signal.ndim == self.ndim:
                return contrast_normalise(signal, ndim=self.ndim)
            return np.stack([contrast_normalise(channel, ndim=self.ndim) for channel in signal])
        except ValueError as error:
            gaps = np.isnan(signal).any() and not np.isinf(signal).any()
            remedy = ", or take signals with gaps as they are (--normalise none)" if gaps else ""
            reason = str(error).removeprefix("images ")
            raise UnusableSignalError(f"{self.name(index, epoch)} {reason}{remedy}") from error

    def describe(self) -> dict[str, Any]:
        return {**self.source.describe(), "normalise": "contrast"}


class KeptSource(DerivedSource):
    """The signals of another source, kept after they were read for the passes to come, as long as there is room.

    Parameters
    ----------
    source : Source
        Whose signals are the same in every pass; not random crops.
    cache : int
        Bytes of signals to keep.
    """

    def __init__(self, source: Source, cache: int = DEFAULT_CACHE) -> None:
        super().__init__(source)
        self.cache = Cache(cache)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        return self.cache.get(index, lambda: self.source.read(index, epoch))


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
