"""Learning on a Dask cluster: workers read and encode their own part of a batch, the client adds and updates.

The codes of a signal do not depend on where they are solved for, nor on the signals beside it, and the client adds what
comes back in the order of the signals: the filters are those of one process, to the bit, for any number of workers and
whatever happens to them. Tasks are pure functions that bring all they need along, so that Dask does those of a lost worker
again. Dask is imported only where a cluster is used.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pointillist.data.damage import OnError
from pointillist.data.sources import UnreadBatch, read_batch
from pointillist.data.sources.stream import Least
from pointillist.kernels.compiling import working_time
from pointillist.learners.step import Brief, Feed, LearnerState, Step
from pointillist.solvers.base import Result, merge_results
from pointillist.validation import Batch

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of a run on a cluster; ``python -m benchmarks.cluster`` measures them."""

    patience: float = 60.0
    """Seconds to wait for a scheduler, and for the first worker."""
    pieces: int = 2
    """Pieces of a batch for each thread: signals take different times, and nobody is to wait long for the last."""


TUNING = Tuning()


@contextmanager
def connect(cluster: Client | str) -> Iterator[Client]:
    """The client itself, or one for the scheduler at an address such as ``tcp://host:8786``, closed afterwards."""
    if not isinstance(cluster, str):
        if not hasattr(cluster, "submit"):
            raise ValueError(f"cluster must be a dask.distributed Client or an address, got {cluster!r}")
        yield cluster
        return
    client_class = _distributed().Client
    try:
        client = client_class(cluster, timeout=TUNING.patience)
    except (OSError, TimeoutError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConnectionError(
            f"cluster {cluster!r} does not answer ({reason}); is its dask scheduler running?"
        ) from error
    with client:
        yield client


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Client]:
    """A client of workers on this machine, each a process with one thread, that live as long as the context.

    They listen on the loopback address only, since a scheduler runs code for whoever reaches it, and ignore Ctrl-C, which a
    terminal sends to all processes: the client decides what it means.
    """
    distributed = _distributed()
    before: Any = None
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
                )
            )
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
        yield stack.enter_context(distributed.Client(cluster))


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a cluster needs Dask: pip install 'pointillist[cluster]'") from error
    return distributed


def coded_steps(client: Client, step: Step, feed: Feed, state: LearnerState) -> Iterator[tuple[float, Batch, Result]]:
    """Yield for each batch when its step began, the batch, and its codes for the filters that `state` has by then."""
    try:
        client.wait_for_workers(1, timeout=TUNING.patience)
    except TimeoutError as error:
        raise ConnectionError(
            f"the cluster has no workers after {TUNING.patience:.0f} s: start some with dask worker SCHEDULER-ADDRESS"
        ) from error
    stream = feed.elsewhere
    source = None if stream is None else stream.source
    # What stays the same is the result of a task, which Dask makes again where it was lost, with a copy for every worker.
    setup = client.submit(Setup, replace(step, n_jobs=1), source, feed.stream.least, feed.stream.on_error, pure=False)
    client.replicate(setup)
    work: Iterable[Any] = feed if stream is None else stream.unread()
    for whole in work:
        begin = working_time()
        pieces = split(whole, TUNING.pieces * sum(client.nthreads().values()))
        # The filters go with each task: Dask gives tasks that need the same data to the few workers that have them.
        tasks = client.map(partial(_encoded, state.brief()), pieces, setup=setup, pure=False)
        try:
            answers: list[tuple[Batch, Result | None, list[str]]] = client.gather(tasks)
        except CancelledError as error:
            raise ConnectionError(f"the cluster lost its scheduler in step {state.step + 1}") from error
        results = [result for _, result, _ in answers if result is not None]
        if stream is not None:
            stream.hand_out(whole, (why for _, _, skipped in answers for why in skipped))
        if results:
            batch = whole if stream is None else join([piece for piece, result, _ in answers if result is not None])
            bounds = np.cumsum([0, *[len(result.codes) for result in results]]).tolist()
            yield begin, batch, merge_results(results, [range(*span) for span in pairwise(bounds)])


@dataclass(frozen=True)
class Setup:
    """The settings that stay the same during a run."""

    step: Step
    source: Any  # None where the client sends the signals
    least: Least | None
    on_error: OnError


def _encoded(brief: Brief, piece: UnreadBatch | Batch, setup: Setup) -> tuple[Batch | None, Result | None, list[str]]:
    """A piece of a batch that was read here, its codes, and why signals were left out of it."""
    if isinstance(piece, Batch):
        return None, setup.step.encode(brief, piece), []
    read = read_batch(setup.source, piece, setup.least, setup.on_error)
    if not read.signals:
        return None, None, read.skipped
    batch = setup.step.check(read.signals)
    return batch, setup.step.encode(brief, batch), read.skipped


def split(whole: Any, count: int) -> list[Any]:
    """A `Batch` or `UnreadBatch` in at most `count` pieces of about the same number of signals, in order."""
    length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
    pieces = [part.tolist() for part in np.array_split(np.arange(length), min(max(count, 1), length))]
    if isinstance(whole, Batch):
        return [whole.take(piece) for piece in pieces]
    return [replace(whole, indices=tuple(whole.indices[i] for i in piece)) for piece in pieces]


def join(batches: Sequence[Batch]) -> Batch:
    """Join batches; where one has weights, weights of one are made for the others."""
    signals = [signal for batch in batches for signal in batch.signals]
    if all(batch.weights is None for batch in batches):
        return Batch(signals, None)
    ones = [batch.weights or [np.ones(one.shape, one.dtype) for one in batch.signals] for batch in batches]
    return Batch(signals, [weight for some in ones for weight in some])
