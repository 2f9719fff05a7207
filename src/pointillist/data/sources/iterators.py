"""Signals from any Python iterable, such as a PyTorch DataLoader: they come when they come, and not again."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources.stream import OnUnreadable, Skipped, check_settings, gather
from pointillist.data.sources.usable import check_usable
from pointillist.errors import UnreadableFileError

log = logging.getLogger(__name__)


class IteratorSource:
    """Signals in the order in which an iterable gives them.

    Parameters
    ----------
    iterable : iterable
        Of signals ([channels,] *space), or of batches of them. An item that is a tuple or list, as a DataLoader's
        with labels, stands for its first entry. What can be iterated over again serves for several epochs.
    batched : bool or None
        Whether an item is a batch, whose first axis counts signals. None: if the iterable has a ``batch_size``, as a
        DataLoader has.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> endless = (np.random.default_rng(i).standard_normal(60) for i in range(6))
    >>> model = pt.OnlineCSC(n_filters=4, filter_size=5, penalty=0.5, random_state=0).fit(pt.IteratorSource(endless))
    >>> model.n_seen_
    6
    """

    exact: ClassVar[bool] = False

    def __init__(self, iterable: Iterable[Any], *, batched: bool | None = None) -> None:
        self._iterable = iterable
        self._batched = getattr(iterable, "batch_size", None) is not None if batched is None else batched

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
    # A tensor that lives on a device or wants a gradient does not turn into an array by itself.
    if hasattr(first, "detach"):
        first = first.detach().cpu()
    return np.asarray(first)


class IteratorStream:
    """Batches of an `IteratorSource`: a `Stream` without an order of its own.

    Its state counts the signals that were handed out. Restored, it passes over as many of the iterator, and warns that these
    need not be the ones that were learned from.

    Parameters
    ----------
    source : IteratorSource
    batch_size, n_epochs, on_unreadable, least, prefetch
        As in `Stream`; the batches of the iterator itself, if any, do not matter.
    """

    exact: ClassVar[bool] = False
    n_batches: ClassVar[int | None] = None

    def __init__(
        self,
        source: IteratorSource,
        *,
        batch_size: int = 1,
        n_epochs: int = 1,
        on_unreadable: OnUnreadable = "stop",
        least: Sequence[int] = (),
        prefetch: int = 2,
    ) -> None:
        check_settings(batch_size, n_epochs, on_unreadable, prefetch)
        if n_epochs > 1 and source.once:
            raise ValueError(f"n_epochs must be 1 for signals that come only once, got {n_epochs}")
        self.source = source
        self.batch_size, self.n_epochs, self.prefetch = batch_size, n_epochs, prefetch
        self.on_unreadable: OnUnreadable = on_unreadable
        self.least = tuple(least)
        self.skipped = Skipped()
        self._epoch, self._position = 0, 0

    def state(self) -> dict[str, Any]:
        """How much was handed out: the epoch, and signals of it."""
        return {"epoch": self._epoch, "position": self._position, "skipped": dict(self.skipped)}

    def restore(self, state: dict[str, Any]) -> None:
        """Pass over what was handed out when `state` was taken."""
        self._epoch, self._position = int(state["epoch"]), int(state["position"])
        self.skipped = Skipped(state["skipped"])
        if self._epoch or self._position:
            log.warning(
                "an iterator cannot be resumed exactly: its first %d signals are passed over, whatever they are now",
                self._position,
            )

    def __iter__(self) -> Iterator[list[NDArray]]:
        """Batches of signals as the iterator gives them."""
        for epoch in range(self._epoch, self.n_epochs):
            signals = islice(iter(self.source), self._position, None)
            for items in self._read_ahead(signals):
                self._position += len(items)
                read = gather([self._judge(item) for item in items], self.on_unreadable)
                self.skipped.note(read.skipped)
                if read.signals:
                    yield read.signals
            self._epoch, self._position = epoch + 1, 0

    def _judge(self, signal: NDArray) -> NDArray | UnreadableFileError:
        try:
            check_usable(signal, self.least, lambda: f"a signal of the iterator, around number {self._position},")
        except UnreadableFileError as error:
            return error
        return signal

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
