"""The batches that `fit` learns from: of arrays, which are checked at once, or of a source, read as the run goes on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import scipy.sparse
from numpy.typing import NDArray

from pointillist.data.damage import OnError, nothing_usable, skips
from pointillist.data.sources import (
    ArraySource,
    IteratorSource,
    IteratorStream,
    ReadBatch,
    Source,
    Stream,
    UnreadBatch,
    as_source,
    make_stream,
    read_batch,
)
from pointillist.data.sources.derived import Cache
from pointillist.data.sources.stream import Least
from pointillist.dictionary.constraints import filter_shapes
from pointillist.learners.inputs import Batch
from pointillist.learners.step import Step
from pointillist.validation import Signals

Check = Callable[[list[NDArray]], Batch]
"""A function that checks signals that were read and makes a `Batch` of them."""
_STEPS = 60
"""Steps after which filters begin to look like something; so many are taken where nobody says how many passes to make."""
_PATCH_CACHE = 2**26
"""Bytes of signals that are kept while first filters are drawn from them."""


def in_memory(X: Any) -> bool:
    """Whether signals are arrays at hand, of the host or of a device, rather than a source or an iterator."""
    arrays = hasattr(X, "__array__") or hasattr(X, "__cuda_array_interface__")
    return isinstance(X, Sequence) or arrays or scipy.sparse.issparse(X)


@dataclass(frozen=True)
class FilterBox:
    """The box that all filters of a step fit into, which depends on a signal's number of axes only."""

    step: Step

    def __call__(self, signal: NDArray) -> tuple[int, ...]:
        step = self.step
        return filter_shapes(step.n_filters, step.filter_size, signal.ndim - int(step.channels)).box


def default_passes(n_signals: int, batch_size: int) -> int:
    """Passes over so many signals that make enough steps for filters to look like something."""
    return ceil(_STEPS / ceil(n_signals / batch_size))


def open_feed(
    X: Any,
    weights: Signals | None,
    step: Step,
    *,
    on_error: OnError,
    batch_size: int,
    n_epochs: int | None,
    **settings: Any,
) -> "Feed":
    """The batches that `fit` learns from.

    Parameters
    ----------
    X, weights, on_error
        As `OnlineCSC.fit` takes them.
    batch_size, n_epochs
        As in `OnlineCSC`.
    step : Step
        Checks signals; those of a source that are smaller than its filters are of no use.
    settings
        What else `make_stream` takes.
    """
    skip = skips(on_error)
    settings["batch_size"] = batch_size
    if not in_memory(X):
        if weights is not None:
            raise ValueError("weights are for arrays: mark samples of a source that were not seen by NaN")
        source = as_source(X)
        if n_epochs is None:
            n_epochs = 1 if isinstance(source, IteratorSource) else default_passes(len(source), batch_size)
        stream = make_stream(source, least=FilterBox(step), on_error=on_error, n_epochs=n_epochs, **settings)
        return Feed(stream, None, step.check)
    whole = step.check(X, weights, skip=skip).numbered()
    if not len(whole):
        raise nothing_usable(whole.skipped)
    n_epochs = n_epochs or default_passes(len(whole), batch_size)
    stream = make_stream(ArraySource(whole.signals), n_epochs=n_epochs, **settings)
    stream.skipped.note(whole.skipped)
    return Feed(stream, whole, step.check)


class Feed:
    """The batches of a run.

    Parameters
    ----------
    stream : Stream or IteratorStream
        Which signals make up which batch, and how far the run is.
    whole : Batch or None
        All signals, where they are arrays.
    check : callable
        Makes a `Batch` of signals that were read.
    """

    def __init__(self, stream: Stream | IteratorStream, whole: Batch | None, check: Check) -> None:
        self.stream, self.whole, self._check = stream, whole, check

    def __iter__(self) -> Iterator[Batch]:
        if self.whole is not None:
            return self._in_memory(self.whole)
        return (self._check(signals) for signals in self.stream)

    def _in_memory(self, whole: Batch) -> Iterator[Batch]:
        assert isinstance(self.stream, Stream)
        for unread in self.stream.unread():
            self.stream.hand_out(unread, ReadBatch([], []))
            yield whole.take(unread.indices)

    def first(self) -> Batch:
        """All signals where they are at hand, else a first batch, which comes again when the feed is iterated over."""
        return self._check(self.stream.first()) if self.whole is None else self.whole

    @property
    def elsewhere(self) -> Stream | None:
        """The stream, where workers of a cluster can read its batches themselves; None otherwise."""
        return self.stream if self.whole is None and isinstance(self.stream, Stream) else None

    def patches(self) -> Sequence[NDArray] | None:
        """The signals that first filters can be drawn from; None for an iterator."""
        source = self.stream.source
        if self.whole is not None:
            return self.whole.signals
        return None if isinstance(source, IteratorSource) else Readable(source, self._check, self.stream.least)

    def describe(self) -> dict[str, Any]:
        """The identity of the data, for a checkpoint."""
        facts = dict(self.stream.source.describe())
        if self.whole is not None and self.whole.weights is not None:
            facts["weights"] = ArraySource(self.whole.weights).describe()["content"]
        return facts

    def run(self) -> dict[str, Any]:
        """How the run goes through the data, for a checkpoint."""
        return {"n_epochs": self.stream.n_epochs, "shuffle": getattr(self.stream, "shuffle", False)}


class Readable(Sequence[NDArray]):
    """The signals of a source as a sequence; for one that cannot be read or used the next that can."""

    def __init__(self, source: Source, check: Check, least: Least | None) -> None:
        self._source, self._check, self._least = source, check, least
        self._cache = Cache(_PATCH_CACHE)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        return self._cache.get(int(index), lambda: self._usable(int(index)))

    def _usable(self, index: int) -> NDArray:
        for tried in range(index, index + len(self)):
            read = read_batch(self._source, UnreadBatch(0, 0, (tried % len(self),)), self._least, "skip")
            if read.signals:
                return self._check(read.signals).signals[0]
        raise nothing_usable(read.skipped)
