"""From what `fit` is given to batches: arrays that are checked at once, or a source that is read as the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from numpy.typing import NDArray

from pointillist.data.errors import UnreadableFileError
from pointillist.data.sources import ArraySource, IteratorSource, IteratorStream, Read, Source, Stream
from pointillist.learners.base import Batch

Check = Callable[[list[NDArray]], Batch]


def in_memory(X: Any) -> bool:
    """Whether signals are arrays at hand, of the host or of a device, rather than a source or an iterator."""
    return isinstance(X, Sequence) or hasattr(X, "__array__") or hasattr(X, "__cuda_array_interface__")


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
        if self.whole is None:
            return (self._check(signals) for signals in self.stream)
        return self._in_memory(self.whole)

    def _in_memory(self, whole: Batch) -> Iterator[Batch]:
        assert isinstance(self.stream, Stream)
        for part in self.stream.parts():
            self.stream.hand_out(part, Read([], []))
            yield whole.take(part.indices)

    def patches(self) -> Sequence[NDArray] | None:
        """Where first filters can be drawn from, None for an iterator."""
        source = self.stream.source
        if self.whole is not None:
            return self.whole.signals
        return None if isinstance(source, IteratorSource) else Readable(source, self._check)

    def describe(self) -> dict[str, Any]:
        """The identity of the data, for a checkpoint."""
        facts = dict(self.stream.source.describe())
        if self.whole is not None and self.whole.weights is not None:
            facts["weights"] = ArraySource(self.whole.weights).describe()["content"]
        return facts


class Readable(Sequence[NDArray]):
    """The signals of a source as a sequence; for one that cannot be read the next that can."""

    def __init__(self, source: Source, check: Check) -> None:
        self._source, self._check = source, check

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
            try:
                return self._check([self._source.read(tried % len(self))]).signals[0]
            except UnreadableFileError as error:
                last = error
        raise last
