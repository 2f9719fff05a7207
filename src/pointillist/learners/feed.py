"""From what `fit` is given to batches: arrays that are checked at once, or a source that is read as the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, overload

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pointillist.data.sources import (
    ArraySource,
    IteratorSource,
    IteratorStream,
    Part,
    Read,
    Source,
    Stream,
    as_source,
    make_stream,
    read_part,
)
from pointillist.dictionary.support import filter_shapes
from pointillist.learners.inputs import Batch
from pointillist.learners.step import Step
from pointillist.model.signals import Signals

Check = Callable[[list[NDArray]], Batch]


def in_memory(X: Any) -> bool:
    """Whether signals are arrays at hand, of the host or of a device, rather than a source or an iterator."""
    arrays = hasattr(X, "__array__") or hasattr(X, "__cuda_array_interface__")
    return isinstance(X, Sequence) or arrays or scipy.sparse.issparse(X)


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
        self._begun: Iterator[Batch] | None = None

    def __iter__(self) -> Iterator[Batch]:
        if self.whole is not None:
            return self._in_memory(self.whole)
        return map(self._check, self.stream) if self._begun is None else self._begun

    def _in_memory(self, whole: Batch) -> Iterator[Batch]:
        assert isinstance(self.stream, Stream)
        for part in self.stream.parts():
            self.stream.hand_out(part, Read([], []))
            yield whole.take(part.indices)

    def first(self) -> Batch:
        """All signals where they are at hand, else a first batch, which comes again when the feed is iterated over."""
        if self.whole is not None:
            return self.whole
        batches = self._unread() if isinstance(self.stream, Stream) else iter(self)
        first = next(batches, None)
        if first is None:
            raise ValueError("X gave no signal that can be used")
        if not isinstance(self.stream, Stream):
            self._begun = chain([first], batches)
        return first

    def _unread(self) -> Iterator[Batch]:
        """Batches as they come, but not handed out."""
        assert isinstance(self.stream, Stream)
        for part in self.stream.parts():
            read = read_part(self.stream.source, part, self.stream.least, self.stream.on_unreadable)
            if read.signals:
                yield self._check(read.signals)

    @property
    def elsewhere(self) -> Stream | None:
        """The stream, where other processes can read its parts themselves."""
        return self.stream if self.whole is None and isinstance(self.stream, Stream) else None

    def patches(self) -> Sequence[NDArray] | None:
        """Where first filters can be drawn from, None for an iterator."""
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

    def __init__(self, source: Source, check: Check, least: Sequence[int] = ()) -> None:
        self._source, self._check, self._least = source, check, least

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, index: int) -> NDArray: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NDArray]: ...
    def __getitem__(self, index: int | slice) -> NDArray | Sequence[NDArray]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        for tried in range(index, index + len(self)):
            read = read_part(self._source, Part(0, 0, (tried % len(self),)), self._least, "skip")
            if read.signals:
                return self._check(read.signals).signals[0]
        raise ValueError(f"X gave no signal that can be used; the last: {read.skipped[0]}")


def make_feed(X: Any, weights: Signals | None, step: Step, *, on_error: str, **run: Any) -> Feed:
    """The batches of what `fit` is given; `run` is for `make_stream`."""
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}')
    whole: Batch | None = None
    least: tuple[int, ...] = ()
    if in_memory(X):
        if on_error == "skip":
            raise ValueError('on_error="skip" is for sources: arrays are checked at once, so leave it out')
        whole = step.check(X, weights)
        source: Source | IteratorSource = ArraySource(whole.signals)
    elif weights is not None:
        raise ValueError("weights are for arrays: mark samples of a source that were not seen by NaN")
    else:
        source = as_source(X)
        least = _least(source, step)
    on_unreadable = "skip" if on_error == "skip" else "stop"
    stream = make_stream(source, on_unreadable=on_unreadable, least=least, **run)
    return Feed(stream, whole, step.check)


def _least(source: Source | IteratorSource, step: Step) -> tuple[int, ...]:
    """The filters' box, where it can be known before the first batch: smaller signals are of no use."""
    if isinstance(source, IteratorSource) or len(source) == 0:
        return ()
    first = Readable(source, lambda signals: Batch([np.asarray(signals[0])], None))[0]
    return filter_shapes(step.n_filters, step.filter_size, first.ndim - int(step.channels)).box
