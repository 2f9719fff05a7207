"""Signals of a source prepared for learning: contrast-normalised, and kept where there is room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.normalise import contrast_normalise
from pointillist.data.sources.base import Source
from pointillist.data.sources.cache import DEFAULT_CACHE, Cache
from pointillist.errors import UnusableSignalError


class NormalisedSource:
    """The signals of another source, contrast-normalised one by one; see `contrast_normalise`.

    Parameters
    ----------
    source : Source
    ndim : int
        Spatial axes of a signal.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.NormalisedSource(pt.ArraySource(list(pt.photographs().values())))
    >>> bool(abs(source.read(0).mean()) < 1e-6)
    True
    """

    def __init__(self, source: Source, ndim: int = 2) -> None:
        self.source, self.ndim = source, ndim

    @property
    def exact(self) -> bool:
        return self.source.exact

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        signal = self.source.read(index, epoch)
        try:
            if signal.ndim == self.ndim:
                return contrast_normalise(signal, ndim=self.ndim)
            return np.stack([contrast_normalise(channel, ndim=self.ndim) for channel in signal])
        except ValueError as error:
            reason = str(error).removeprefix("images ")
            raise UnusableSignalError(f"{self.name(index, epoch)} {reason}") from error

    def name(self, index: int, epoch: int = 0) -> str:
        return self.source.name(index, epoch)

    def describe(self) -> dict[str, Any]:
        return {**self.source.describe(), "normalise": "contrast"}


class KeptSource:
    """The signals of another source, kept after they were read for the passes to come, as long as there is room.

    Parameters
    ----------
    source : Source
        Whose signals are the same in every pass; not random crops.
    cache : int
        Bytes of signals to keep.
    """

    def __init__(self, source: Source, cache: int = DEFAULT_CACHE) -> None:
        self.source = source
        self.cache = Cache(cache)

    @property
    def exact(self) -> bool:
        return self.source.exact

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        signal = self.cache.get(index)
        if signal is None:
            signal = self.source.read(index, epoch)
            self.cache.put(index, signal)
        return signal

    def name(self, index: int, epoch: int = 0) -> str:
        return self.source.name(index, epoch)

    def describe(self) -> dict[str, Any]:
        return self.source.describe()
