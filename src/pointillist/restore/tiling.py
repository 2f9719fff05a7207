"""Pictures cut into tiles: which of them hold damage, how boxes grow and nest, and how they are worked on in turn."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.parallel import one_blas_thread
from pointillist.solvers.tiles import Progress

Box = tuple[slice, slice]
Item = TypeVar("Item")
Answer = TypeVar("Answer")

_AHEAD = 3  # items for each thread that are begun before the first is asked for


def tiles(shape: tuple[int, ...], side: int) -> list[Box]:
    """Squares of that side that cover a picture in raster order, smaller at its far borders."""
    spans = [[slice(start, min(start + side, n)) for start in range(0, n, side)] for n in shape]
    return [(rows, columns) for rows in spans[0] for columns in spans[1]]


def tiles_with(mask: NDArray, side: int) -> list[Box]:
    """Those squares of that side that hold a true pixel of the mask (height, width), in raster order."""
    starts = [np.arange(0, n, side) for n in mask.shape]
    held = np.logical_or.reduceat(np.logical_or.reduceat(mask, starts[0], axis=0), starts[1], axis=1)
    height, width = mask.shape
    return [
        (slice(top, min(top + side, height)), slice(left, min(left + side, width)))
        for top, left in (side * np.argwhere(held)).tolist()
    ]


def spans(length: int, side: int) -> list[slice]:
    """Spans of `side` samples, or of all if these are fewer, spread over `length` without overlapping."""
    side = min(side, length)
    return [slice(int(start), int(start) + side) for start in np.linspace(0, length - side, max(1, length // side))]


def widened(box: Box, margin: int, shape: tuple[int, ...]) -> Box:
    """A box with a margin on all sides, as far as the picture goes."""
    rows, columns = (
        slice(max(ends.start - margin, 0), min(ends.stop + margin, n)) for ends, n in zip(box, shape, strict=True)
    )
    return rows, columns


def moved_in(box: Box, side: int, shape: tuple[int, ...]) -> Box:
    """The square of that side that begins where a box does; at the far borders it ends with the picture instead."""
    firsts = [max(min(ends.start, n - side), 0) for ends, n in zip(box, shape, strict=True)]
    rows, columns = (slice(first, min(first + side, n)) for first, n in zip(firsts, shape, strict=True))
    return rows, columns


def inside(box: Box, outer: Box) -> Box:
    """A box in the coordinates of one that holds it."""
    rows, columns = (slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, outer, strict=True))
    return rows, columns


def in_turn(
    work: Callable[[Item], Answer], items: Sequence[Item], n_jobs: int, progress: Progress | None = None
) -> Iterator[Answer]:
    """Answers to all items, made in threads a few items ahead, in the order of the items.

    Progress is told from the calling thread. What it or the caller raises, an interruption too, ends the work as soon as
    the items that have begun are done.
    """
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        waiting: deque[Future[Answer]] = deque()
        todo = iter(items)
        try:
            for done in range(1, len(items) + 1):
                waiting.extend(pool.submit(work, item) for item in islice(todo, _AHEAD * n_jobs - len(waiting)))
                yield waiting.popleft().result()
                if progress is not None:
                    progress(done / len(items))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run_all(work: Callable[[Item], None], items: Sequence[Item], n_jobs: int, progress: Progress | None = None) -> None:
    """Do work that has no answer on all items, as `in_turn` does."""
    for _ in in_turn(work, items, n_jobs, progress):
        pass


def share_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """Make the progress callback of work that goes from `begin` to `end` of the whole."""
    return None if progress is None else lambda share: progress(begin + (end - begin) * share)
