"""Sources made of sources: several one after the other, and contrast-normalised ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.errors import UnusableSignalError
from pointillist.data.normalise import contrast_normalise
from pointillist.data.sources.base import Source, StoredSource


class JoinedSource(StoredSource):
    """Several sources as one, the signals of each after those of the one before."""

    def __init__(self, sources: Sequence[StoredSource]) -> None:
        if not sources:
            raise ValueError("sources is empty: give at least one")
        self.sources = list(sources)
        self._ends = list(accumulate(len(source) for source in sources))

    @property
    def windowed(self) -> bool:  # type: ignore[override]
        """Whether all of them read windows alone."""
        return all(source.windowed for source in self.sources)

    def __len__(self) -> int:
        return self._ends[-1]

    def _locate(self, index: int) -> tuple[StoredSource, int]:
        which = bisect_right(self._ends, index)
        return self.sources[which], index - (self._ends[which - 1] if which else 0)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        source, place = self._locate(index)
        return source.read(place, epoch)

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        source, place = self._locate(index)
        return source.window(place, corner, size)

    def shape(self, index: int) -> tuple[int, ...]:
        source, place = self._locate(index)
        return source.shape(place)

    def name(self, index: int, epoch: int = 0) -> str:
        source, place = self._locate(index)
        return source.name(place, epoch)

    def describe(self) -> dict[str, Any]:
        return {"kind": "joined", "signals": len(self), "of": [source.describe() for source in self.sources]}


class NormalisedSource:
    """The signals of another source, contrast-normalised one by one; see `contrast_normalise`.

    Parameters
    ----------
    source : Source
    ndim : int
        Spatial axes of a signal.
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

    def shape(self, index: int) -> tuple[int, ...]:
        return self.source.shape(index)  # type: ignore[attr-defined]

    def name(self, index: int, epoch: int = 0) -> str:
        return self.source.name(index, epoch)

    def describe(self) -> dict[str, Any]:
        return {**self.source.describe(), "normalise": "contrast"}
