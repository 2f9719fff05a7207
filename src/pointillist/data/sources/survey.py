"""How large the signals of a source are, from the heads of its files."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from pointillist.data.sources.crops import CropSource
from pointillist.data.sources.preparing import KeptSource, NormalisedSource
from pointillist.errors import UnreadableFileError, UnusableSignalError

LOOKED_AT = 20_000
"""Signals whose heads are read at most; of more, as many evenly spread."""

NORMALISING = 52
"""Bytes a sample that normalising takes at its peak: the signal, and six arrays in float64."""


@dataclass(frozen=True)
class Survey:
    """Sizes of the signals of a source.

    Attributes
    ----------
    n_signals : int
        In one pass.
    largest : tuple of int
        Shape of the signal of most samples.
    samples : float
        Samples of a signal on average.
    reading : int
        Bytes that reading the largest signal takes at its peak, whatever is kept of it.
    keepable : float
        Samples that are worth keeping in memory: of all signals, or of the whole ones that crops are cut from.
    looked_at : int
        Signals that this rests on.
    """

    n_signals: int
    largest: tuple[int, ...]
    samples: float
    reading: int
    keepable: float
    looked_at: int


def survey(source: Any, limit: int = LOOKED_AT) -> Survey:
    """Look at the sizes of a source's signals; those whose head cannot be read are passed over.

    Raises
    ------
    UnusableSignalError
        If no head can be read.
    """
    if isinstance(source, KeptSource):
        return survey(source.source, limit)
    if isinstance(source, NormalisedSource):
        plain = survey(source.source, limit)
        return replace(plain, reading=max(plain.reading, NORMALISING * prod(plain.largest)))
    if isinstance(source, CropSource):
        shape, whole = source.shape(0), survey(source.source, limit)
        if source.source.windowed:
            reading = source.source.window_bytes(source.size)
            return Survey(len(source), shape, float(prod(shape)), reading, 0.0, whole.looked_at)
        return Survey(len(source), shape, float(prod(shape)), whole.reading, whole.keepable, whole.looked_at)
    shapes = []
    chosen = np.unique(np.linspace(0, len(source) - 1, min(limit, len(source))).astype(np.int64))
    for index in chosen.tolist():
        try:
            shapes.append(source.shape(index))
        except UnreadableFileError:
            continue
    if not shapes:
        raise UnusableSignalError(
            f"none of the {len(chosen)} signals looked at can be read; the first: {source.name(0)}"
        )
    largest = max(shapes, key=prod)
    samples = float(np.mean([prod(shape) for shape in shapes]))
    reading = max(source.decoding * prod(largest), _decoding(source))
    return Survey(len(source), largest, samples, reading, samples * len(source), len(shapes))


def _decoding(source: Any) -> int:
    """Bytes that the smallest part takes: a chunk as it is stored, at most, and decoded."""
    return 2 * source.chunk_bytes
