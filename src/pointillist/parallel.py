"""Threads: how many a caller may have, and work that is shared out between them.

Items are the same whatever the number of threads, so answers are too.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from multiprocessing.dummy import Process as PoolThread
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from pointillist.validation import is_integer

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""`map`, or that of a pool of threads."""

_pools: dict[int, ThreadPoolExecutor] = {}
"""Threads that wait for work, by their number: starting them anew takes as long as a short piece of work does."""
if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pools.clear)


def _pool(n_threads: int) -> ThreadPoolExecutor:
    """The threads that are kept, as many as asked for; none starts before there is work for it."""
    return _pools.get(n_threads) or _pools.setdefault(n_threads, ThreadPoolExecutor(n_threads, "pointillist"))


class SharedMap:
    """A `map` whose items are shared out between the thread that calls it and n_jobs − 1 others.

    The caller works as well: systems put threads that it wakes on other cores then, and it waits for fewer of them. Others
    that are busy with something else are not waited for.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def __call__(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        todo = list(items)
        answers, stopped = [None] * len(todo), threading.Event()
        numbers = iter(range(len(todo)))  # whose next() no other thread interrupts

        def take() -> None:
            try:
                for i in numbers:
                    if stopped.is_set():  # after an exception nobody begins with anything else
                        return
                    answers[i] = work(todo[i])
            except BaseException:
                stopped.set()
                raise

        others: list[Future[None]] = []
        try:
            for _ in range(min(self.n_jobs, len(todo)) - 1):
                others.append(_pool(self.n_jobs - 1).submit(take))
            take()
        finally:
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()
        return answers

    def ask(self, work: Callable[[], Any]) -> None:
        """Have another thread do something when it can; nobody waits for it, and what it raises is lost."""
        _pool(self.n_jobs - 1).submit(work)


def effective_jobs(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` means, as joblib counts them.

    Parameters
    ----------
    n_jobs : int or None
        A number of threads; -1 is all cores, -2 all but one, and so on; None is what the surrounding
        ``joblib.parallel_config`` says, one thread without it. In a worker of joblib, "all cores" are the worker's fair
        share of them, so that ``GridSearchCV(n_jobs=2)`` starts no more threads than there are cores.
    """
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0 or abs(n_jobs) >= 2**31):
        raise ValueError(
            "n_jobs must be a positive number of threads, -1 for all cores, -2 for all but one, or None for what "
            f"joblib's context says, got {n_jobs!r}"
        )
    if n_jobs is None or n_jobs > 0:
        return int(joblib.effective_n_jobs(n_jobs))
    cores = int(min(joblib.effective_n_jobs(-1), joblib.cpu_count()))
    if getattr(get_active_backend()[0], "nesting_level", 0):  # in a worker of joblib
        if isinstance(threading.current_thread(), PoolThread):
            cores = max(cores // sum(isinstance(thread, PoolThread) for thread in threading.enumerate()), 1)
        else:  # joblib tells the processes that it starts by this variable how many threads each of them may have
            cores = min(cores, int(os.environ.get("NUMBA_NUM_THREADS", 1)))
    return max(cores + 1 + int(n_jobs), 1)


def parallel(work: Callable[[Item], Answer], items: Iterable[Item], n_jobs: int) -> list[Answer]:
    """Answers of `work` for all items, in threads with one thread of BLAS in each."""
    with one_blas_thread():
        return SharedMap(n_jobs)(work, items)


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS on one thread: no oversubscription, and bits that do not depend on the number of threads."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: once is enough
