"""Sources of signals of any size: arrays, files, containers, random crops, and the stream of batches made from them."""

from typing import Any

import numpy as np

from pointillist.data.sources.base import (
    ArraySource,
    CropSource,
    ImageSource,
    JoinedSource,
    KeptSource,
    NormalisedSource,
    Source,
    StoredSource,
)
from pointillist.data.sources.chunked import Hdf5Source, ZarrSource
from pointillist.data.sources.opening import open_source
from pointillist.data.sources.stacks import NpySource, TiffSource
from pointillist.data.sources.stream import (
    IteratorSource,
    Stream,
    UnreadBatch,
    read_batch,
)
from pointillist.data.sources.tables import TableSource

__all__ = [
    "Source", "ArraySource", "NpySource", "ImageSource", "TiffSource", "ZarrSource", "Hdf5Source", "TableSource",
    "IteratorSource", "CropSource", "JoinedSource", "NormalisedSource",
]  # fmt: skip


def as_source(signals: Any) -> Source | IteratorSource:
    """A source of what users pass: itself, arrays and lists of them in memory, or an iterator of signals."""
    if isinstance(signals, Source | IteratorSource):
        return signals
    if isinstance(signals, np.ndarray | list | tuple):
        return ArraySource(signals)
    if isinstance(signals, type) or not hasattr(signals, "__iter__"):
        raise TypeError(f"X must be an array, a list, a source or an iterable of signals, got {type(signals).__name__}")
    return IteratorSource(signals)
