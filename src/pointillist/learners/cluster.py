"""Learning on a Dask cluster: workers read and encode their own part of a batch, the client adds and updates.

The codes of a signal do not depend on where they are solved for, nor on the signals beside it, and the client adds what
comes back in the order of the signals: the filters are those of one process, to the bit, for any number of workers and
whatever happens to them. Tasks are pure functions of small inputs, so that Dask does those of a lost worker again. Dask is
imported only where a cluster is used.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources import Part, Read, Source, read_part
from pointillist.data.sources.stream import OnUnreadable
from pointillist.learners.base import Batch, ConvolutionalLearner, LearnerState
from pointillist.learners.feed import Feed
from pointillist.solvers.base import Result

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

_PIECES_PER_THREAD = 2
"""Signals take different times: with two pieces for each thread nobody waits long for the last."""
_ATTEMPTS = 3
_PATIENCE = 60.0
"""Seconds to wait for the first worker."""


@dataclass(frozen=True)
class Job:
    """What stays the same during a run; every worker gets it once."""

    learner: ConvolutionalLearner
    source: Source | None  # None where the client sends the signals
    least: tuple[int, ...]
    on_unreadable: OnUnreadable


@dataclass
class Brief:
    """What the codes of a step depend on, besides the signals; broadcast once a step."""

    filters: NDArray
    penalty: float | NDArray
    seed: int
    step: int


@dataclass(frozen=True)
class Coded:
    """A piece of a batch, solved: the signals (None where the client has them), their codes, and what was left out."""

    batch: Batch | None
    result: Result | None
    skipped: list[str]


def code_piece(piece: Part | Batch, job: Job, brief: Brief) -> Coded:
    """What a worker does; pure."""
    if isinstance(piece, Batch):
        return Coded(None, job.learner._encode(brief, piece), [])
    assert job.source is not None
    read = read_part(job.source, piece, job.least, job.on_unreadable)
    if not read.signals:
        return Coded(None, None, read.skipped)
    batch = job.learner._batch(read.signals, None)
    return Coded(batch, job.learner._encode(brief, batch), read.skipped)


def coded_steps(
    client: Client, learner: ConvolutionalLearner, feed: Feed, state: LearnerState
) -> Iterator[tuple[float, Batch, Result]]:
    """For each batch when its step began, its signals and their codes for the filters that `state` has by then."""
    stream = feed.elsewhere
    parameters = {**learner.get_params(deep=False), "callbacks": (), "cluster": None, "n_jobs": 1}
    job = Job(
        type(learner)(**parameters),
        None if stream is None else stream.source,
        feed.stream.least,
        feed.stream.on_unreadable,
    )
    crew = _Crew(client, job)
    work: Iterator[Part | Batch] = iter(feed) if stream is None else stream.parts()
    for whole in work:
        begin = time.perf_counter()
        coded = crew.code(whole, Brief(state.filters, state.penalty, state.seed, state.step))
        if stream is not None and isinstance(whole, Part):
            stream.hand_out(whole, Read([], [why for piece in coded for why in piece.skipped]))
        solved = [piece for piece in coded if piece.result is not None]
        if solved:
            batch = whole if isinstance(whole, Batch) else join([piece.batch for piece in solved if piece.batch])
            yield begin, batch, _merge([piece.result for piece in solved if piece.result])


class _Crew:
    """The workers, and what they were told."""

    def __init__(self, client: Client, job: Job) -> None:
        self._client, self._job = client, job
        self._shared: Any = None

    def code(self, whole: Part | Batch, brief: Brief) -> list[Coded]:
        """All pieces of a batch, in order."""
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(whole, brief)
            except CancelledError:
                # Dask does the tasks of a lost worker again, but cannot bring back what it was told, once nobody knows.
                log.warning("the cluster lost all its workers: doing step %d again", brief.step + 1)
                self._shared = None
        raise ConnectionError(f"the cluster lost all its workers {_ATTEMPTS} times in step {brief.step + 1}")

    def _attempt(self, whole: Part | Batch, brief: Brief) -> list[Coded]:
        client = self._client
        if self._shared is None:
            _wait_for_workers(client)
            self._shared = self._tell(self._job)
        told = self._tell(brief)
        pieces = split(whole, _PIECES_PER_THREAD * sum(client.nthreads().values()))
        coded: list[Coded] = client.gather(client.map(code_piece, pieces, job=self._shared, brief=told, pure=False))
        return coded

    def _tell(self, value: Any) -> Any:
        """Broadcast: tasks go to those who know what they need, so all must."""
        return self._client.scatter(value, broadcast=True, hash=False)


def split(whole: Part | Batch, count: int) -> Sequence[Part | Batch]:
    """A batch in at most `count` pieces of about the same number of signals, in order."""
    length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
    bounds = np.linspace(0, length, min(max(count, 1), length) + 1).astype(int).tolist()
    spans = list(pairwise(bounds))
    if isinstance(whole, Batch):
        return [whole.take(range(first, last)) for first, last in spans]
    return [Part(whole.epoch, whole.position + first, whole.indices[first:last]) for first, last in spans]


def join(batches: Sequence[Batch]) -> Batch:
    """One batch of several; where one has weights all get some."""
    signals = [signal for batch in batches for signal in batch.signals]
    if all(batch.weights is None for batch in batches):
        return Batch(signals, None)
    weights = [
        weight
        for batch in batches
        for weight in batch.weights or [np.ones(signal.shape, signal.dtype) for signal in batch.signals]
    ]
    return Batch(signals, weights)


def _merge(results: Sequence[Result]) -> Result:
    bounds = np.cumsum([0, *[len(result.codes) for result in results]]).tolist()
    return Result.merge(results, [range(first, last) for first, last in pairwise(bounds)])


def _wait_for_workers(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        raise ConnectionError(
            f"the cluster has no workers after {_PATIENCE:.0f} s: start some with dask worker SCHEDULER-ADDRESS"
        ) from error


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
        client = client_class(cluster, timeout=_PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConnectionError(
            f"cluster {cluster!r} does not answer ({reason}); is its dask scheduler running?"
        ) from error
    with client:
        yield client


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Client]:
    """A client of workers on this machine, each a process with one thread, that live as long as the context."""
    distributed = _distributed()
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a cluster needs Dask: pip install 'pointillist[cluster]'") from error
    return distributed
