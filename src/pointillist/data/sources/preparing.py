"""Signals of a source prepared for learning: contrast-normalised, and kept where there is room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.normalise import contrast_normalise
from pointillist.data.sources.base import DerivedSource, Source
from pointillist.data.sources.cache import DEFAULT_CACHE, Cache
from pointillist.errors import UnusableSignalError
from pointillist.validation import check_arguments


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
