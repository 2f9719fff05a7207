"""Sources made of other sources: random crops, several joined, signals normalised or kept."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pointillist.data.normalise import contrast_normalise
from pointillist.data.sources.base import Source, StoredSource, box, check_source, check_stored
from pointillist.errors import UnreadableFileError, UnusableSignalError
from pointillist.reprs import shown, sizes
from pointillist.sampling import generator
from pointillist.validation import as_list, check_arguments, check_index, is_constant, is_integer

DEFAULT_CACHE = 2**28
"""Bytes of decoded signals that are kept."""
Made = TypeVar("Made", bound=NDArray[Any] | None)
_CROPS = 3  # sets these draws apart from all others of the same seed
_ATTEMPTS = 10


class Cache:
    """Arrays by key, at most so many bytes of them; those asked for longest ago go first. Thread-safe."""

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"cache must not be negative, got {limit} bytes")
        self.limit = limit
        self.held = 0
        self._arrays: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The array of that key, made and kept where it is not there; None is not kept."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        array = make()
        with self._lock:
            if array is not None and key not in self._arrays and array.nbytes <= self.limit:
                self._arrays[key] = array
                self.held += array.nbytes
                while self.held > self.limit:
                    _, oldest = self._arrays.popitem(last=False)
                    self.held -= oldest.nbytes
        return array

    def __getstate__(self) -> dict[str, Any]:
        return {"limit": self.limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["limit"])  # type: ignore[misc]


class CropSource(StoredSource):
    """Crops of one size from random places of random signals.

    A crop without contrast is drawn again, up to ten times. Signals smaller than the crop are unusable.

    Parameters
    ----------
    source : StoredSource
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
        self, source: StoredSource, count: int, size: tuple[int, ...], *, seed: int = 0, cache: int = DEFAULT_CACHE
    ) -> None:
        check_arguments(count=count, seed=seed, cache=cache)
        check_stored(source)
        if not isinstance(size, tuple | list) or not size or not all(is_integer(n) and n > 0 for n in size):
            raise ValueError(f"size must be a tuple of positive integers, got {shown(size)}")
        self.source, self.count, self.size, self.seed = source, count, tuple(size), seed
        self.cache = Cache(cache)

    def __repr__(self) -> str:
        return f"CropSource({self.count} crops of {sizes(self.size)} from {self.source!r})"

    def __len__(self) -> int:
        return self.count

    def read(self, index: int, epoch: int = 0) -> NDArray:
        rng = self._generator(index, epoch)
        which = int(rng.integers(len(self.source)))
        signal = None if self.source.windowed else self.cache.get(which, lambda: self.source.read(which))
        shape = self.source.shape(which) if signal is None else signal.shape
        room = [length - side for length, side in zip(shape[-len(self.size) :], self.size, strict=True)]
        if min(room) < 0:
            raise UnusableSignalError(f"{self.source.name(which)} is smaller than a crop, {shape}: take smaller crops")
        for _ in range(_ATTEMPTS):
            corner = [int(rng.integers(free + 1)) for free in room]
            crop = self.source.window(which, corner, self.size) if signal is None else signal[box(corner, self.size)]
            if not is_constant(crop):
                return crop.copy()  # a view would keep the whole signal in memory
        raise UnusableSignalError(f"{self.source.name(which)} is constant wherever a crop was tried: leave it out")

    def _generator(self, index: int, epoch: int) -> Generator:
        check_index(index, len(self))
        check_arguments(epoch=epoch)
        return generator(self.seed, _CROPS, epoch, index % len(self))

    def shape(self, index: int) -> tuple[int, ...]:
        check_index(index, len(self))
        return (*self._channels, *self.size)

    @cached_property
    def _channels(self) -> tuple[int, ...]:
        """The axes before the spatial ones, of the first signal whose shape can be read."""
        first = ""
        for which in range(len(self.source)):
            try:
                return self.source.shape(which)[: -len(self.size)]
            except UnreadableFileError as error:
                first = first or f"; the first: {error}"
        raise UnusableSignalError(f"none of the {len(self.source)} signals to cut from can be read{first}")

    def name(self, index: int, epoch: int = 0) -> str:
        which = int(self._generator(index, epoch).integers(len(self.source)))
        return f"crop {index} of {self.source.name(which)}"

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
        for source in self.sources:
            check_stored(source, "sources")
        self._ends = list(accumulate(len(source) for source in self.sources))

    def __repr__(self) -> str:
        return f"JoinedSource({len(self)} signals of {len(self.sources)} sources)"

    @property
    def windowed(self) -> bool:  # type: ignore[override]
        """True if every source reads windows without the whole signal."""
        return all(source.windowed for source in self.sources)

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


class DerivedSource(Source):
    """A source with another source's signals, one for one, changed or kept; subclasses say by `read` what becomes of them.

    Parameters
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        check_source(source)
        self.source = source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"

    @property
    def exact(self) -> bool:
        return self.source.exact

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
