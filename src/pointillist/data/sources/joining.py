"""Several sources as one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from numpy.typing import NDArray

from pointillist.data.sources.base import StoredSource, check_stored
from pointillist.validation import as_list, check_index


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
        """Whether every source reads windows without the whole signal."""
        return all(source.windowed for source in self.sources)

    @property
    def decoding(self) -> int:  # type: ignore[override]
        """The most bytes a sample that one of the sources takes."""
        return max(source.decoding for source in self.sources)

    @property
    def chunk_bytes(self) -> int:
        """The most that one of them decodes together."""
        return max(source.chunk_bytes for source in self.sources)

    @property
    def sampling_rates(self) -> frozenset[float]:
        return frozenset[float]().union(*(source.sampling_rates for source in self.sources))

    def window_bytes(self, size: Sequence[int]) -> int:
        return max(source.window_bytes(size) for source in self.sources)

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
