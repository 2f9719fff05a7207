"""Learning on a Dask cluster: workers read and encode their own part of a batch, the client adds and updates.

The codes of a signal do not depend on where they are solved for, nor on the signals beside it, and the client adds what
comes back in the order of the signals: the filters are those of one process, to the bit, for any number of workers and
whatever happens to them. Of large batches, whose codes take more bytes than the statistics, codes stay with the workers
and sums come back: pieces, whose size follows from the settings alone, are summed up and added two by two in a fixed order,
which agrees with one process to rounding. Tasks are pure functions of small inputs, so that Dask does those of a lost worker
again. Dask is imported only where a cluster is used.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pointillist.data.damage import OnError
from pointillist.data.sources import ReadBatch, Source, UnreadBatch, read_batch
from pointillist.data.sources.stream import Least
from pointillist.dictionary.robust import Robust, Windows, window_errors, without_outliers
from pointillist.dictionary.statistics import objectives
from pointillist.kernels.compiling import working_time
from pointillist.learners.step import Brief, LearnerState, LocalCodes, Step
from pointillist.solvers.base import Result, merge_results
from pointillist.validation import Batch

if TYPE_CHECKING:
    from distributed import Client

    from pointillist.learners.estimators import Feed

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of a run on a cluster; ``python -m benchmarks.cluster`` measures them."""

    patience: float = 60.0
    """Seconds to wait for a scheduler, and for the first worker."""
    telling: float = 30.0
    """Seconds to wait until all workers know the filters of a step."""
    setting_up: float = 600.0
    """Seconds to wait until all workers have the settings of a run, and its signals where these are in memory."""
    tries: int = 5
    """Times that workers are told something, or a step is begun: by then a scheduler has noticed who is gone."""
    pieces: int = 2
    """Pieces of a batch for each thread: signals take different times, and nobody is to wait long for the last."""
    returned: float = 2.5
    """Bytes that come back for one byte of a signal, about: itself, its residual and its codes."""
    worth: int = 2**26
    """Bytes of a batch's codes below which they come back, however small the statistics: that keeps the bits."""
    least: int = 32
    """Least pieces of a batch that workers sum up: enough for many workers."""
    most: int = 2048
    """Most pieces of a batch that workers sum up: few enough for one scheduler."""


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


def _wait_for_workers(client: Client) -> None:
    """Wait until there is somebody to do the work."""
    try:
        client.wait_for_workers(1, timeout=TUNING.patience)
    except TimeoutError as error:
        raise ConnectionError(
            f"the cluster has no workers after {TUNING.patience:.0f} s: start some with dask worker SCHEDULER-ADDRESS"
        ) from error


def tell(client: Client, value: Any, patience: float | None = None) -> Any:
    """Send a value to all workers, because Dask gives tasks only to workers that have what the tasks need.

    Each worker is sent its own copy, under one key. A worker that is lost meanwhile, or does not answer within `patience`
    seconds, goes without it; Dask's own way of sending to all may wait for ever for such a one, and lets nobody else in.
    """
    key, pause = f"pointillist-{uuid4().hex}", 0.2

    async def send(address: str) -> Any:
        sent = client.scatter({key: value}, workers=[address], hash=False, timeout=pause, asynchronous=True)
        return await asyncio.wait_for(sent, TUNING.telling if patience is None else patience)

    async def send_to(addresses: list[str]) -> list[Any]:
        return await asyncio.gather(*map(send, addresses), return_exceptions=True)

    for _ in range(TUNING.tries):
        answers = client.sync(send_to, list(client.nthreads()))
        told = [answer[key] for answer in answers if isinstance(answer, dict)]
        if told:
            return told[0]
        for answer in answers:
            if not isinstance(answer, OSError | KeyError):  # those say that a worker is gone, or busy
                raise answer
        log.info("no worker could be told what to do: telling them again")
        time.sleep(pause)
        _wait_for_workers(client)
    raise ConnectionError(f"the cluster lost all its workers {TUNING.tries} times while they were told what to do")


@dataclass(frozen=True)
class Setup:
    """The settings that stay the same during a run; every worker gets them once."""

    step: Step
    source: Source | None  # None where the client sends the signals
    least: Least | None
    on_error: OnError


def coded_steps(
    client: Client, step: Step, batch_size: int, feed: Feed, state: LearnerState
) -> Iterator[tuple[float, LocalCodes | RemoteCodes]]:
    """Yield for each batch when its step began, and its codes for the filters that `state` has by then.

    A step whose workers were all lost is done again; Dask itself repeats the tasks of a single lost worker.
    """
    stream = feed.elsewhere
    setup = Setup(
        replace(step, n_jobs=1), None if stream is None else stream.source, feed.stream.least, feed.stream.on_error
    )
    size, shared = _piece_size(batch_size, state, feed), None
    work: Iterator[UnreadBatch | Batch] = iter(feed) if stream is None else stream.unread()
    for whole in work:
        begin = working_time()
        for _ in range(TUNING.tries):
            try:
                if shared is None:
                    _wait_for_workers(client)
                    shared = tell(client, setup, TUNING.setting_up)
                told = {"setup": shared, "brief": tell(client, state.brief()), "pure": False}
                if size is None:
                    codes, skipped = _codes_here(client, step, whole, told)
                else:
                    codes, skipped = _codes_there(client, whole, size, told)
                break
            except CancelledError:
                log.warning("the cluster lost all its workers: doing step %d again", state.step + 1)
                shared = None
        else:
            raise ConnectionError(f"the cluster lost all its workers {TUNING.tries} times in step {state.step + 1}")
        if stream is not None and isinstance(whole, UnreadBatch):
            stream.hand_out(whole, ReadBatch([], skipped))
        if codes is not None:
            yield begin, codes


def _piece_size(batch_size: int, state: LearnerState, feed: Feed) -> int | None:
    """Signals in a piece, or None where the codes of a batch take fewer bytes than the statistics, or few anyway.

    It rests on the settings and the first signal only, so that a resumed run decides alike.
    """
    patches = feed.patches()
    if patches is None:
        return None
    statistics = sum(array.nbytes for array in state.statistics.arrays().values())
    returned = TUNING.returned * patches[0].nbytes
    if batch_size * returned < max(statistics, TUNING.worth):
        return None
    return ceil(max(statistics / (TUNING.least * returned), batch_size / TUNING.most))


def split(whole: UnreadBatch | Batch, count: int) -> Sequence[UnreadBatch | Batch]:
    """A batch in at most `count` pieces of about the same number of signals, in order."""
    length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
    bounds = np.linspace(0, length, min(max(count, 1), length) + 1).astype(int).tolist()
    if isinstance(whole, Batch):
        return [whole.take(range(first, last)) for first, last in pairwise(bounds)]
    return [
        UnreadBatch(whole.epoch, whole.offset + first, whole.indices[first:last]) for first, last in pairwise(bounds)
    ]


def join(batches: Sequence[Batch]) -> Batch:
    """Join batches; where one has weights, weights of one are made for the others."""
    signals = [signal for batch in batches for signal in batch.signals]
    if all(batch.weights is None for batch in batches):
        return Batch(signals, None)
    ones = [batch.weights or [np.ones(one.shape, one.dtype) for one in batch.signals] for batch in batches]
    return Batch(signals, [weight for some in ones for weight in some])


def _solved(piece: UnreadBatch | Batch, setup: Setup, brief: Brief) -> tuple[Batch | None, Result | None, list[str]]:
    """A piece of a batch with its codes, and what was left out of it; it is read first where that is left to the worker."""
    skipped: list[str] = []
    if not isinstance(piece, Batch):
        assert setup.source is not None
        read = read_batch(setup.source, piece, setup.least, setup.on_error)
        if not read.signals:
            return None, None, read.skipped
        piece, skipped = setup.step.check(read.signals), read.skipped
    return piece, setup.step.encode(brief, piece), skipped


def _answered(piece: UnreadBatch | Batch, setup: Setup, brief: Brief) -> tuple[Batch | None, Result | None, list[str]]:
    """A piece solved, without what the client has sent: that need not go back."""
    batch, result, skipped = _solved(piece, setup, brief)
    return None if isinstance(piece, Batch) else batch, result, skipped


def _codes_here(
    client: Client, step: Step, whole: UnreadBatch | Batch, told: dict[str, Any]
) -> tuple[LocalCodes | RemoteCodes | None, list[str]]:
    """Solve for a batch on the workers and bring codes, signals and residuals to the client."""
    pieces = split(whole, TUNING.pieces * sum(client.nthreads().values()))
    answers = client.gather(client.map(_answered, pieces, **told))
    skipped = [why for _, _, some in answers for why in some]
    results: list[Result] = [result for _, result, _ in answers if result is not None]
    if not results:
        return None, skipped
    batch = whole if isinstance(whole, Batch) else join([batch for batch, _, _ in answers if batch is not None])
    bounds = np.cumsum([0, *[len(result.codes) for result in results]]).tolist()
    return step.codes(batch, merge_results(results, [range(*span) for span in pairwise(bounds)])), skipped


@dataclass(frozen=True)
class Summary:
    """Report to the client of a part whose codes stay with a worker."""

    count: int
    nnz: int
    gap: float  # sum over the signals
    usage: NDArray
    skipped: list[str]


@dataclass(frozen=True)
class Part:
    """A piece of a batch with its codes, which stays with the worker that solved it."""

    codes: LocalCodes | None
    skipped: list[str]
    step: Step
    brief: Brief

    @classmethod
    def solved(cls, piece: UnreadBatch | Batch, setup: Setup, brief: Brief) -> Self:
        batch, result, skipped = _solved(piece, setup, brief)
        codes = None if batch is None or result is None else setup.step.codes(batch, result)
        return cls(codes, skipped, setup.step, brief)

    def summary(self) -> Summary:
        if self.codes is None:
            return Summary(0, 0, 0.0, np.zeros(0), self.skipped)
        count = len(self.codes)
        return Summary(count, self.codes.nnz, count * self.codes.gap, self.codes.usage(), self.skipped)

    def sums(self, counts: NDArray) -> dict[str, NDArray]:
        """The statistics of this part."""
        sums = self.step.empty(self.brief.filters.shape)
        sums.add(self._coded, self.brief.filters, counts)
        return sums.arrays()

    def objective(self, brief: Brief) -> float:
        """The objective, summed over the signals, for the filters of a later brief."""
        return float(np.sum(objectives(self._coded, brief.filters, brief.penalty)))

    def residuals(self) -> list[NDArray]:
        return list(self._coded.residuals)

    def windows(self, robust: Robust) -> list[Windows]:
        return window_errors(self._coded, self.brief.filters, self.brief.penalty, robust)

    def without(self, counted: Sequence[NDArray], support: NDArray | None) -> Self:
        """The part of which only some cells count; see `without_outliers`."""
        assert self.codes is not None
        kept = without_outliers(self._coded, self.brief.filters, counted, support)
        return replace(self, codes=replace(self.codes, coded=kept))

    @property
    def _coded(self) -> Any:
        assert self.codes is not None
        return self.codes.coded


def _codes_there(
    client: Client, whole: UnreadBatch | Batch, size: int, told: dict[str, Any]
) -> tuple[LocalCodes | RemoteCodes | None, list[str]]:
    """Solve for a batch in pieces of about `size` signals, whose codes stay with the workers."""
    length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
    parts = client.map(Part.solved, split(whole, ceil(length / size)), **told)
    summaries: list[Summary] = client.gather(client.map(Part.summary, parts, pure=False))
    skipped = [why for summary in summaries for why in summary.skipped]
    kept = [i for i, summary in enumerate(summaries) if summary.count]
    if not kept:
        return None, skipped
    numbers = whole.numbers if isinstance(whole, Batch) else None
    return RemoteCodes(client, [parts[i] for i in kept], [summaries[i] for i in kept], numbers), skipped


@dataclass(frozen=True)
class RemoteCodes:
    """The codes of a step that stay with the workers."""

    client: Client
    parts: list[Any]  # futures of `Part`, with at least one signal each
    summaries: list[Summary]
    numbers: Sequence[int] | None = None  # of the signals, where the client has them

    def __len__(self) -> int:
        return sum(summary.count for summary in self.summaries)

    def add_to(self, state: LearnerState, counts: NDArray) -> None:
        sums = self.client.map(Part.sums, self.parts, self._divided(counts), pure=False)
        while len(sums) > 1:
            pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [self.client.submit(_added, *pair, pure=False) if len(pair) == 2 else pair[0] for pair in pairs]
        state.statistics.load(_added(state.statistics.arrays(), sums[0].result()))

    def usage(self) -> NDArray:
        return np.sum([summary.usage for summary in self.summaries], axis=0)

    def residuals(self) -> Sequence[NDArray]:
        return [
            one for some in self.client.gather(self.client.map(Part.residuals, self.parts, pure=False)) for one in some
        ]

    def objective(self, state: LearnerState) -> float:
        told = tell(self.client, state.brief())
        return sum(self.client.gather(self.client.map(Part.objective, self.parts, brief=told, pure=False)))

    def windows(self, robust: Robust, state: LearnerState) -> list[Windows]:
        found = self.client.gather(self.client.map(Part.windows, self.parts, robust=robust, pure=False))
        return [one for some in found for one in some]

    def without(self, counted: Sequence[NDArray], state: LearnerState) -> Self:
        divided = self._divided(counted)
        chosen = [i for i, part in enumerate(divided) if any(cells.any() for cells in part)]
        support = state.constraints.support
        parts = [
            self.client.submit(Part.without, self.parts[i], divided[i], support=support, pure=False) for i in chosen
        ]
        return replace(
            self, parts=parts, summaries=self.client.gather(self.client.map(Part.summary, parts, pure=False))
        )

    def _divided(self, each: Any) -> list[Any]:
        """What there is one of for each signal, by parts."""
        bounds = np.cumsum([0, *[summary.count for summary in self.summaries]]).tolist()
        return [each[first:last] for first, last in pairwise(bounds)]

    @property
    def nnz(self) -> int:
        return sum(summary.nnz for summary in self.summaries)

    @property
    def gap(self) -> float:
        return sum(summary.gap for summary in self.summaries) / len(self)


def _added(first: dict[str, NDArray], second: dict[str, NDArray]) -> dict[str, NDArray]:
    return {name: first[name] + second[name] for name in first}
