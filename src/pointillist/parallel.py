"""Short work that is shared out between threads again and again."""

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
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


class SharedMap:
    """A `map` whose items are shared out between the thread that calls it and n_jobs − 1 others.

    The caller works as well: systems put threads that it wakes on other cores then, and it waits for fewer of them. Others
    that are busy with something else are not waited for.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def __call__(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
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
            for _ in range(min(self.n_jobs, len(todo)) - 1):
                others.append(_pool(self.n_jobs - 1).submit(take))
            take()
        finally:
            left.clear()
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()
        return answers

    def ask(self, work: Callable[[], Any]) -> None:
        """Have another thread do something when it can; nobody waits for it, and what it raises is lost."""
        _pool(self.n_jobs - 1).submit(work)
