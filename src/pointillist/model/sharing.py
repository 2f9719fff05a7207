"""Short work that is shared out between threads again and again."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from heapq import heapify, heappop, heappush
from typing import Any

_pools: dict[int, ThreadPoolExecutor] = {}
"""Threads that wait for work, by their number: starting them anew takes as long as a short piece of work does."""
if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pools.clear)


def _pool(n_threads: int) -> ThreadPoolExecutor:
    """The threads that are kept, as many as asked for; none starts before there is work for it."""
    return _pools.get(n_threads) or _pools.setdefault(n_threads, ThreadPoolExecutor(n_threads, "pointillist"))


def _first(left: deque[int]) -> int | None:
    """The first of what is left, taken away; None if another thread was faster, or there is nothing."""
    try:
        return left.popleft()
    except IndexError:
        return None


def shared_map(n_jobs: int) -> Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]:
    """Give a `map` whose items are shared out between this thread and n_jobs − 1 others.

    This thread works as well: systems put those that it wakes on other cores then, and it waits for fewer of them. Others
    that are busy with something else are not waited for.
    """

    def mapper(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        todo = list(items)
        answers, left = [None] * len(todo), deque(range(len(todo)))

        def take() -> None:
            try:
                while (i := _first(left)) is not None:
                    answers[i] = work(todo[i])
            finally:
                left.clear()  # after an exception nobody begins with anything else

        others: list[Future[None]] = []
        try:
            for _ in range(min(n_jobs, len(todo)) - 1):
                others.append(_pool(n_jobs - 1).submit(take))
            take()
        finally:
            left.clear()
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()
        return answers

    return mapper


def map_in_order(
    mapper: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]],
    work: Callable[[Any], Any],
    items: Sequence[Any],
    after: Sequence[Sequence[int]],
) -> list[Any]:
    """Work on all items, each as soon as those of the numbers `after` it asks for are done, which are smaller than its own.

    Of items that can be worked on the first is taken. The threads are those of a `mapper`.
    """
    if mapper is map:
        return [work(item) for item in items]
    queue = _Queue(after)
    answers: list[Any] = [None] * len(items)

    def take(_: int) -> None:
        try:
            while (i := queue.next()) is not None:
                answers[i] = work(items[i])
                queue.finish(i)
        finally:
            queue.close()  # without an exception there is nothing left anyway

    for _ in mapper(take, range(len(items))):
        pass
    return answers


class _Queue:
    """Numbers of items that can be worked on, given what each of them has to wait for; threads share it."""

    def __init__(self, after: Sequence[Sequence[int]]) -> None:
        self._changed = threading.Condition()
        self._missing = [len(some) for some in after]
        self._followers: list[list[int]] = [[] for _ in after]
        for i, some in enumerate(after):
            for j in some:
                self._followers[j].append(i)
        self._ready = [i for i, count in enumerate(self._missing) if count == 0]
        heapify(self._ready)
        self._left = len(self._missing)  # items that nobody has begun with

    def next(self) -> int | None:
        """The next item, waited for if need be; None when all are taken."""
        with self._changed:
            while self._left and not self._ready:
                self._changed.wait()
            if not self._left:
                return None
            self._left -= 1
            if not self._left:
                self._changed.notify_all()
            return heappop(self._ready)

    def finish(self, i: int) -> None:
        """Tell that item i is done."""
        with self._changed:
            for follower in self._followers[i]:
                self._missing[follower] -= 1
                if not self._missing[follower]:
                    heappush(self._ready, follower)
                    self._changed.notify()

    def close(self) -> None:
        """Let nobody take another item."""
        with self._changed:
            self._left = 0
            self._changed.notify_all()
