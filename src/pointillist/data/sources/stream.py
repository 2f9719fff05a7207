"""A source in batches: the order of every pass, reading ahead, and a position that can be put away and taken up again."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources.base import Source
from pointillist.data.sources.usable import check_usable
from pointillist.errors import UnreadableFileError
from pointillist.model.sampling import generator

log = logging.getLogger(__name__)

OnUnreadable = Literal["skip", "stop"]


@dataclass(frozen=True)
class Part:
    """What a batch is made of, before anything is read: small, and enough for another process to read it."""

    epoch: int
    position: int  # of its first item in the order of the epoch
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Read:
    """What reading a part gave: its usable signals, and why others were left out."""

    signals: list[NDArray]
    skipped: list[str]


def read_part(source: Source, part: Part, least: Sequence[int] = (), on_unreadable: OnUnreadable = "stop") -> Read:
    """Read a part, here and now.

    Parameters
    ----------
    least : sequence of int
        Size of the filters; a smaller signal is unusable.
    on_unreadable : {"skip", "stop"}
        Whether a damaged or useless item is left out or raises `UnreadableFileError`.
    """
    return gather([_attempt(source, part.epoch, index, least) for index in part.indices], on_unreadable)


def _attempt(source: Source, epoch: int, index: int, least: Sequence[int]) -> NDArray | UnreadableFileError:
    try:
        signal = source.read(index, epoch)
        check_usable(signal, least, lambda: source.name(index, epoch))
    except UnreadableFileError as error:
        return error
    return signal


def gather(attempts: Sequence[NDArray | UnreadableFileError], on_unreadable: OnUnreadable) -> Read:
    """Part the signals from the errors, or raise the first of these."""
    read = Read([], [])
    for attempt in attempts:
        if not isinstance(attempt, UnreadableFileError):
            read.signals.append(attempt)
        elif on_unreadable == "stop":
            raise attempt
        else:
            read.skipped.append(str(attempt))
    return read


class Skipped(dict[str, int]):
    """Why items were left out, and how often."""

    def note(self, reasons: Iterable[str]) -> None:
        """Count, and warn of each the first time."""
        for why in reasons:
            if why not in self:
                log.warning("skipped: %s", why)
            self[why] = self.get(why, 0) + 1


class Stream:
    """Batches of a source, pass after pass, read ahead in background threads.

    Which items make up a batch depends on the seed, the epoch and the batch size only. An item that cannot be used leaves
    its batch smaller; a batch of which nothing is left is passed over. Iterating goes on from where `state` says.

    Parameters
    ----------
    source : Source
    batch_size : int
        Items in a batch.
    n_epochs : int
        Passes over the source.
    shuffle : bool
        Whether every pass has its own random order.
    seed : int
        Of these orders.
    on_unreadable : {"skip", "stop"}
        Whether a damaged or useless item is left out, with one warning in the log, or raises `UnreadableFileError`.
    least : sequence of int
        Size of the filters; a smaller signal is useless.
    prefetch : int
        Batches to read ahead, which bounds the memory that this takes; 0 reads nothing ahead.
    threads : int
        Threads that read.
    """

    def __init__(
        self,
        source: Source,
        *,
        batch_size: int = 1,
        n_epochs: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        on_unreadable: OnUnreadable = "stop",
        least: Sequence[int] = (),
        prefetch: int = 2,
        threads: int = 2,
    ) -> None:
        check_settings(batch_size, n_epochs, on_unreadable, prefetch, threads)
        if len(source) == 0:
            raise ValueError("the source is empty: give at least one signal")
        self.source = source
        self.batch_size, self.n_epochs, self.shuffle, self.seed = batch_size, n_epochs, shuffle, seed
        self.on_unreadable: OnUnreadable = on_unreadable
        self.least = tuple(least)
        self.prefetch, self.threads = prefetch, threads
        self.skipped = Skipped()
        self._epoch, self._position = 0, 0
        self._order: tuple[int, NDArray] | None = None

    @property
    def exact(self) -> bool:
        """Whether a restored stream goes on with the same signals."""
        return self.source.exact

    @property
    def n_batches(self) -> int | None:
        """Batches of all passes together; None where nobody knows before."""
        return self.n_epochs * ceil(len(self.source) / self.batch_size)

    def state(self) -> dict[str, Any]:
        """Where the stream is, as of the last batch handed out: what JSON can hold, small whatever the source."""
        return {"epoch": self._epoch, "position": self._position, "skipped": dict(self.skipped)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self._epoch, self._position = int(state["epoch"]), int(state["position"])
        self.skipped = Skipped(state["skipped"])

    def order(self, epoch: int) -> NDArray:
        """The items of a pass in their order; recomputed, never stored."""
        if self._order is None or self._order[0] != epoch:
            count = len(self.source)
            drawn = generator(self.seed, epoch, 2).permutation(count) if self.shuffle else np.arange(count)
            self._order = (epoch, drawn)
        return self._order[1]

    def parts(self) -> Iterator[Part]:
        """The batches to come, unread; whoever reads them himself calls `hand_out` for each."""
        position = self._position
        for epoch in range(self._epoch, self.n_epochs):
            while position < len(self.source):
                chosen = self.order(epoch)[position : position + self.batch_size]
                yield Part(epoch, position, tuple(chosen.tolist()))
                position += self.batch_size
            position = 0

    def hand_out(self, part: Part, read: Read) -> list[NDArray]:
        """Note that a part is in the learner's hands, and warn of what was left out for the first time."""
        self.skipped.note(read.skipped)
        end = part.position + len(part.indices)
        self._epoch, self._position = (part.epoch, end) if end < len(self.source) else (part.epoch + 1, 0)
        return read.signals

    def __iter__(self) -> Iterator[list[NDArray]]:
        """Batches of signals as the source gives them."""
        for part, read in self._read_ahead():
            signals = self.hand_out(part, read)
            if signals:
                yield signals

    def _read_ahead(self) -> Iterator[tuple[Part, Read]]:
        if self.prefetch == 0:
            for part in self.parts():
                yield part, read_part(self.source, part, self.least, self.on_unreadable)
            return
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="pointillist-read")
        waiting: deque[tuple[Part, list[Future[NDArray | UnreadableFileError]]]] = deque()
        try:
            for part in self.parts():
                tasks = [pool.submit(_attempt, self.source, part.epoch, i, self.least) for i in part.indices]
                waiting.append((part, tasks))
                if len(waiting) > self.prefetch:
                    first, done = waiting.popleft()
                    yield first, gather([task.result() for task in done], self.on_unreadable)
            while waiting:
                first, done = waiting.popleft()
                yield first, gather([task.result() for task in done], self.on_unreadable)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def check_settings(batch_size: int, n_epochs: int, on_unreadable: str, prefetch: int, threads: int = 1) -> None:
    """Refuse what no stream can do."""
    if batch_size < 1 or n_epochs < 1:
        raise ValueError(f"batch_size and n_epochs must be at least 1, got {batch_size} and {n_epochs}")
    if on_unreadable not in ("skip", "stop"):
        raise ValueError(f'on_unreadable must be "skip" or "stop", got {on_unreadable!r}')
    if prefetch < 0 or threads < 1:
        raise ValueError(f"prefetch must not be negative and threads at least 1, got {prefetch} and {threads}")
