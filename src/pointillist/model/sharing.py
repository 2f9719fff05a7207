"""Short work that is shared out between threads again and again."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def shared_map(n_jobs: int) -> Iterator[Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]]:
    """Give a `map` whose items are shared out between this thread and n_jobs − 1 others, which live as long as the context.

    This thread works as well: systems put those that it wakes on other cores then, and it waits for fewer of them.
    """
    with ThreadPoolExecutor(max(n_jobs - 1, 1)) as pool:  # no thread begins before there is work for it

        def mapper(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
            todo = list(items)
            answers, left = [None] * len(todo), deque(range(len(todo)))

            def take() -> None:
                while left:
                    try:
                        i = left.popleft()
                    except IndexError:  # another thread was faster
                        return
                    answers[i] = work(todo[i])

            others = [pool.submit(take) for _ in range(min(n_jobs, len(todo)) - 1)]
            take()
            for other in others:
                other.result()
            return answers

        yield mapper
