"""Batches of a source or an iterator: the order of every pass, reading ahead, and a place that can be taken up again."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import as_plain
from pointillist.data.damage import OnError, note_skipped, nothing_usable, read_usable
from pointillist.data.sources.base import ArraySource, Source
from pointillist.errors import UnusableSignalError
from pointillist.reprs import shown
from pointillist.sampling import generator
from pointillist.validation import check_arguments, why_unusable

log = logging.getLogger(__name__)

Job = TypeVar("Job")
Least = Callable[[NDArray], Sequence[int]]
"""A function that takes a signal and returns the size of the filters that must fit into it."""


@dataclass(frozen=True)
class UnreadBatch:
    """Numbers of the signals of a batch, before anything is read: small, and enough for another process to read them.

    Attributes
    ----------
    epoch : int
    offset : int
        Where the first signal stands in the order of the epoch.
    indices : tuple of int
        Where the signals are in the source.
    """

    epoch: int
    offset: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class ReadBatch:
    """The usable signals of a batch, and why others were left out of it."""

    signals: list[NDArray]
    skipped: list[str]


Read = tuple[UnreadBatch, ReadBatch]


def read_batch(
    source: Source, unread: UnreadBatch, least: Least | None = None, on_error: OnError = "raise"
) -> ReadBatch:
    """Read a batch, here and now.

    Parameters
    ----------
    source : Source
    unread : UnreadBatch
    least : callable, optional
        Gives the size of the filters for a signal; a smaller one is unusable.
    on_error : {"raise", "skip"}
        Whether a damaged or useless signal raises `UnreadableFileError` or is left out.
    """

    def usable(index: int) -> NDArray:
        signal = source.read(index, unread.epoch)
        reason = why_unusable(signal, () if least is None else least(signal))
        if reason is not None:
            raise UnusableSignalError(f"{source.name(index, unread.epoch)} {reason}")
        return signal

    return ReadBatch(*read_usable(unread.indices, usable, on_error))


class IteratorSource:
    """Signals in the order in which an iterable gives them.

    Parameters
    ----------
    iterable : iterable
        It yields signals ([channels,] *space), or batches of them. An item that is a tuple or list, as a DataLoader's
        with labels, stands for its first entry. What can be iterated over again serves for several epochs.
    batched : bool or None
        Whether an item is a batch, whose first axis counts signals. None: if the iterable has a ``batch_size``, as a
        DataLoader has.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> endless = (np.random.default_rng(i).standard_normal(60) for i in range(6))
    >>> model = pt.OnlineCSC(n_filters=4, filter_size=5, penalty=0.5, random_state=0).fit(pt.sources.IteratorSource(endless))
    >>> model.n_seen_
    6
    """

    def __init__(self, iterable: Iterable[Any], *, batched: bool | None = None) -> None:
        check_arguments(batched=batched)
        if not isinstance(iterable, Iterable) or isinstance(iterable, str | bytes | type):
            raise TypeError(f"iterable must give signals one after the other, got {shown(iterable)}")
        self._iterable = iterable
        self._batched = getattr(iterable, "batch_size", None) is not None if batched is None else batched

    def __repr__(self) -> str:
        return f"IteratorSource({type(self._iterable).__name__}{', in batches' if self._batched else ''})"

    @property
    def once(self) -> bool:
        """True if the signals come only once."""
        return iter(self._iterable) is self._iterable

    def __iter__(self) -> Iterator[NDArray]:
        for item in self._iterable:
            first = item[0] if isinstance(item, tuple | list) and len(item) and np.ndim(item[0]) > 0 else item
            # A tensor that lives on a device does not turn into an array by itself.
            array = as_plain(first.detach().cpu() if hasattr(first, "detach") else first, "X")
            if array.ndim == 0:
                raise ValueError(f"X must give signals ([channels,] *space) one after the other, got {shown(item)}")
            yield from array if self._batched else [array]

    def describe(self) -> dict[str, Any]:
        return {"kind": "iterator", "type": type(self._iterable).__name__}


@dataclass(eq=False)
class Stream:
    """Batches of signals, pass after pass, read ahead in background threads, and a place as of the last one handed out.

    Which signals of a source make up a batch depends on the seed, the epoch and the batch size only; an iterator has its own
    order, and its own batches, if any, do not matter. A signal that cannot be used leaves its batch smaller; a batch of
    which nothing is left is passed over.

    Parameters
    ----------
    source : Source or IteratorSource
    batch_size : int
        Signals in a batch.
    n_epochs : int
        Passes over all signals.
    on_error : {"raise", "skip"}
        Whether a damaged or useless signal raises `UnreadableFileError` or is left out, with one warning in the log.
    least : callable, optional
        Gives the size of the filters for a signal; a smaller one is useless.
    prefetch : int
        Batches to read ahead, which bounds the memory that this takes; 0 reads nothing ahead.
    shuffle : bool
        Whether every pass over a source has its own random order.
    seed : int
        Decides these orders.
    threads : int
        Threads that read from a source.
    """

    source: Any
    _: KW_ONLY
    batch_size: int = 1
    n_epochs: int = 1
    on_error: OnError = "raise"
    least: Least | None = None
    prefetch: int = 2
    shuffle: bool = True
    seed: int = 0
    threads: int = 2

    def __post_init__(self) -> None:
        check_arguments(on_error=self.on_error)
        if not isinstance(self.source, IteratorSource):
            if len(self.source) == 0:
                raise ValueError("the source is empty: give at least one signal")
        elif self.n_epochs > 1 and self.source.once:
            raise ValueError(f"n_epochs must be 1 for signals that come only once, got {self.n_epochs}")
        self.skipped: dict[str, int] = {}
        self._epoch, self._offset = 0, 0
        self._ahead = 0  # batches that are read ahead now: none before the stream is iterated over
        self._begun: Iterator[Read] | None = None

    def place(self) -> dict[str, Any]:
        """Place of the stream as of the last batch handed out: what JSON can hold, small whatever the source."""
        return {"epoch": self._epoch, "offset": self._offset, "skipped": dict(self.skipped)}

    def go_to(self, place: dict[str, Any]) -> None:
        """Go on from a `place` that was taken before; as many signals of an iterator are passed over, with a warning."""
        self._epoch, self._offset = int(place["epoch"]), int(place["offset"])
        self.skipped = dict(place["skipped"])
        if isinstance(self.source, IteratorSource) and (self._epoch or self._offset):
            log.warning(
                "an iterator cannot be resumed exactly: its first %d signals are passed over, whatever they are now",
                self._offset,
            )

    def unread(self) -> Iterator[UnreadBatch]:
        """Yield the batches of a source to come, unread; whoever reads one calls `hand_out` for it."""
        self._begun = None
        offset, count = self._offset, len(self.source)
        for epoch in range(self._epoch, self.n_epochs):
            order = generator(self.seed, epoch, 2).permutation(count) if self.shuffle else np.arange(count)
            for first in range(offset, count, self.batch_size):
                yield UnreadBatch(epoch, first, tuple(order[first : first + self.batch_size].tolist()))
            offset = 0

    def hand_out(self, unread: UnreadBatch, skipped: Iterable[str] = ()) -> None:
        """Note that a batch is in the learner's hands, and warn of what was left out for the first time."""
        note_skipped(self.skipped, skipped)
        self._epoch, self._offset = unread.epoch, unread.offset + len(unread.indices)

    def first(self) -> list[NDArray]:
        """Signals of the first batch to come that has any; it comes again when the stream is iterated over, read once."""
        batches, looked_at = self._batches(), []
        for unread, read in batches:
            looked_at.append((unread, read))
            if read.signals:
                self._begun = chain(looked_at, batches)
                return read.signals
        raise nothing_usable(reason for _, read in looked_at for reason in read.skipped)

    def __iter__(self) -> Iterator[list[NDArray]]:
        """Batches of signals as the source gives them, from the place on."""
        batches, self._begun = self._begun or self._batches(), None
        self._ahead = self.prefetch
        for unread, read in batches:
            self.hand_out(unread, read.skipped)
            if read.signals:
                yield read.signals

    def _batches(self) -> Iterator[Read]:
        """Batches from the place on, unread and read."""
        if isinstance(self.source, IteratorSource):
            return self._taken()

        def read(unread: UnreadBatch) -> Read:
            return unread, read_batch(self.source, unread, self.least, self.on_error)

        return self._done((partial(read, unread) for unread in self.unread()), self.threads)

    def _taken(self) -> Iterator[Read]:
        """Batches of an iterator, whose place counts the signals that were handed out."""
        offset = self._offset
        for epoch in range(self._epoch, self.n_epochs):
            signals = islice(iter(self.source), offset, None)
            jobs = repeat(lambda signals=signals: list(islice(signals, self.batch_size)))
            for items in self._done(jobs, 1):
                if not items:
                    break
                unread = UnreadBatch(epoch, offset, tuple(range(len(items))))
                yield unread, read_batch(ArraySource(items, f"X[{offset}:]"), unread, self.least, self.on_error)
                offset += len(items)
            offset = 0

    def _done(self, jobs: Iterator[Callable[[], Job]], threads: int) -> Iterator[Job]:
        """Results of jobs, in their order, a few of them done ahead in threads."""
        pool = ThreadPoolExecutor(threads, thread_name_prefix="pointillist-read")
        waiting: deque[Future[Job]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > self._ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
