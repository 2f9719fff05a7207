"""Mini-batches on a CUDA device: moved there while another is learned from, or kept there for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from pointillist.arrays import any_resident
from pointillist.cuda.device import Device, open_device
from pointillist.solvers.resident import upload

AnyBatch = TypeVar("AnyBatch", bound=Any)

_RESIDENT_PART = 0.25  # of the free memory that signals may take for good


def prefetch(batches: Iterable[Any], device: str = "cuda") -> Iterator[Any]:
    """Mini-batches from a stream on a device, each moved there while the caller is busy with the one before.

    Parameters
    ----------
    batches : iterable
        Of arrays (n_signals, [channels,] *space) or lists of arrays, which a thread takes one ahead of the caller.
    device : str
        "cuda" or "cuda:N".

    Yields
    ------
    CuPy arrays or lists of them, which `encode` and the learners take with the same `device`; float64 stays, everything else
    becomes float32.

    Examples
    --------
    >>> import pointillist as pt
    >>> model = pt.OnlineCSC(100, 11, device="cuda")
    >>> for batch in pt.prefetch(stream, device="cuda"):  # doctest: +SKIP
    ...     model.partial_fit(batch)
    """
    opened = open_device(device)
    return _ahead(batches, opened, lambda batch: batch if any_resident(batch) else upload(batch, opened))


def ahead(batches: Iterable[AnyBatch], device: str | None) -> Iterable[AnyBatch]:
    """Move batches to the device ahead of time, as `prefetch` does with arrays; without a device they stay as they are."""
    if device is None:
        return batches
    opened = open_device(device)
    return _ahead(batches, opened, lambda batch: _moved(batch, opened))


def placed(batch: AnyBatch, device: str | None) -> AnyBatch:
    """Put a batch that is learned from again and again on the device, if that leaves most of the memory free."""
    if device is None:
        return batch
    opened = open_device(device)
    size = sum(array.nbytes for array in [*batch.signals, *(batch.weights or [])])
    return _moved(batch, opened) if size <= _RESIDENT_PART * opened.free_memory() else batch


def _moved(batch: AnyBatch, device: Device) -> AnyBatch:
    if any_resident(batch.signals):
        return batch
    with device.use():
        weights = None if batch.weights is None else upload(batch.weights, device)
        return replace(batch, signals=upload(batch.signals, device), weights=weights)


def _ahead(items: Iterable[Any], device: Device, move: Callable[[Any], Any]) -> Iterator[Any]:
    waiting = iter(items)

    def next_item() -> tuple[Any, ...]:
        """Move the next item through page-locked memory, on a stream of its own; an empty tuple after the last."""
        for item in waiting:
            with device.use(), device.mover:
                return (move(item),)
        return ()

    with ThreadPoolExecutor(1, thread_name_prefix="pointillist-move") as mover:
        coming = mover.submit(next_item)
        while arrived := coming.result():
            coming = mover.submit(next_item)
            yield arrived[0]
