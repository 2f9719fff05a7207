"""Signals from any Python iterable, such as a PyTorch DataLoader: they come in its order, and perhaps only once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import as_plain
from pointillist.data.skipping import OnError, nothing_usable
from pointillist.data.sources.stream import BatchStream, Least, gather, judged
from pointillist.reprs import shown
from pointillist.validation import check_arguments

log = logging.getLogger(__name__)


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

    exact: ClassVar[bool] = False

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
        """Whether the signals come only once."""
        return iter(self._iterable) is self._iterable

    def __iter__(self) -> Iterator[NDArray]:
        for item in self._iterable:
            array = _as_array(item)
            if self._batched:
                yield from array
            else:
                yield array

    def describe(self) -> dict[str, Any]:
        return {"kind": "iterator", "type": type(self._iterable).__name__}


def _as_array(item: Any) -> NDArray:
    first = item[0] if isinstance(item, tuple | list) and len(item) and np.ndim(item[0]) > 0 else item
    # A tensor that lives on a device does not turn into an array by itself.
    array = as_plain(first.detach().cpu() if hasattr(first, "detach") else first, "X")
    if array.ndim == 0:
        raise ValueError(f"X must give signals ([channels,] *space) one after the other, got {shown(item)}")
    return array


class IteratorStream(BatchStream):
    """Batches of an `IteratorSource`: a `Stream` without an order of its own.

    Its place counts the signals that were handed out. Taken up again, it passes over as many of the iterator, and warns that
    these need not be the ones that were learned from. The batches of the iterator itself, if any, do not matter.

    Parameters
    ----------
    source : IteratorSource
    batch_size, n_epochs, on_error, least, prefetch
        As in `BatchStream`.
    """

    exact: ClassVar[bool] = False

    def __init__(
        self,
        source: IteratorSource,
        *,
        batch_size: int = 1,
        n_epochs: int = 1,
        on_error: OnError = "raise",
        least: Least | None = None,
        prefetch: int = 2,
    ) -> None:
        super().__init__(batch_size, n_epochs, on_error, least, prefetch)
        if n_epochs > 1 and source.once:
            raise ValueError(f"n_epochs must be 1 for signals that come only once, got {n_epochs}")
        self.source = source
        self._begun: Iterator[list[NDArray]] | None = None

    def go_to(self, place: dict[str, Any]) -> None:
        """Pass over what had been handed out when `place` was taken."""
        super().go_to(place)
        if self._epoch or self._offset:
            log.warning(
                "an iterator cannot be resumed exactly: its first %d signals are passed over, whatever they are now",
                self._offset,
            )

    def first(self) -> list[NDArray]:
        """Signals of the first batch, which comes again when the stream is iterated over."""
        batches = iter(self)
        first = next(batches, None)
        if first is None:
            raise nothing_usable(self.skipped)
        self._begun = chain([first], batches)
        return first

    def __iter__(self) -> Iterator[list[NDArray]]:
        """Batches of signals as the iterator gives them."""
        return self._batches() if self._begun is None else self._begun

    def _batches(self) -> Iterator[list[NDArray]]:
        for epoch in range(self._epoch, self.n_epochs):
            signals = islice(iter(self.source), self._offset, None)
            for items in self._read_ahead(signals):
                self._offset += len(items)
                read = gather([judged(item, self.least, self._name) for item in items], self.on_error)
                self.skipped.note(read.skipped)
                if read.signals:
                    yield read.signals
            self._epoch, self._offset = epoch + 1, 0

    def _name(self) -> str:
        return f"a signal of the iterator, around number {self._offset},"

    def _read_ahead(self, signals: Iterator[NDArray]) -> Iterator[list[NDArray]]:
        """Batches until there are no more, a few of them ahead in one thread."""

        def take() -> list[NDArray]:
            return list(islice(signals, self.batch_size))

        if self.prefetch == 0:
            while items := take():
                yield items
            return
        with ThreadPoolExecutor(1, thread_name_prefix="pointillist-read") as pool:
            waiting = deque(pool.submit(take) for _ in range(self.prefetch))
            while items := waiting.popleft().result():
                waiting.append(pool.submit(take))
                yield items
