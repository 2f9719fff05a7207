"""Pictures taken apart into boxes: which parts hold damage, how boxes grow and nest, and how they are worked on in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.solvers.base import one_blas_thread
from pointillist.solvers.tiles import Progress

Box = tuple[slice, slice]
Item = TypeVar("Item")
Answer = TypeVar("Answer")


def cells(shape: tuple[int, ...], side: int) -> list[Box]:
    """Squares of that side that cover a picture in raster order, smaller at its far borders."""
    spans = [[slice(start, min(start + side, n)) for start in range(0, n, side)] for n in shape]
    return [(rows, columns) for rows in spans[0] for columns in spans[1]]


def cells_with(mask: NDArray, side: int) -> list[Box]:
    """Those squares of that side that hold a true pixel of the mask (height, width), in raster order."""
    starts = [np.arange(0, n, side) for n in mask.shape]
    held = np.logical_or.reduceat(np.logical_or.reduceat(mask, starts[0], axis=0), starts[1], axis=1)
    height, width = mask.shape
    return [
        (slice(top, min(top + side, height)), slice(left, min(left + side, width)))
        for top, left in (side * np.argwhere(held)).tolist()
    ]


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
) -> list[Answer]:
    """Apply `work` to all items in threads; answers come in the order of the items.

    Progress is told from the calling thread. What it raises, an interruption too, ends the work as soon as the items
    that have begun are done.
    """
    if n_jobs == 1 or len(items) < 2:
        answers = []
        with one_blas_thread():
            for done, item in enumerate(items, 1):
                answers.append(work(item))
                if progress is not None:
                    progress(done / len(items))
        return answers
    with one_blas_thread():
        pool = ThreadPoolExecutor(n_jobs)
        try:
            waiting = [pool.submit(work, item) for item in items]
            for done, future in enumerate(as_completed(waiting), 1):
                future.result()
                if progress is not None:
                    progress(done / len(items))
            return [future.result() for future in waiting]
        finally:
            pool.shutdown(cancel_futures=True)
