"""What workers are told and what they do: pure functions of a piece of a batch, the job and the step's brief."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pointillist.data.skipping import OnError
from pointillist.data.sources import Source, UnreadBatch, read_batch
from pointillist.data.sources.stream import Least
from pointillist.learners.inputs import Batch
from pointillist.learners.step import Step
from pointillist.solvers.base import Result


@dataclass(frozen=True)
class Job:
    """What stays the same during a run; every worker gets it once."""

    step: Step
    source: Source | None  # None where the client sends the signals
    least: Least | None
    on_error: OnError


@dataclass
class Brief:
    """What the codes of a step depend on, besides the signals; broadcast once a step."""

    filters: NDArray
    penalty: float | NDArray
    seed: int
    step: int


@dataclass(frozen=True)
class Coded:
    """A piece of a batch, solved: its usable signals with their codes, and what was left out."""

    batch: Batch | None
    result: Result | None
    skipped: list[str]


def code(piece: UnreadBatch | Batch, job: Job, brief: Brief) -> Coded:
    """Read, where that is left to the worker, and encode; pure."""
    if isinstance(piece, Batch):
        return Coded(piece, job.step.encode(brief, piece), [])
    assert job.source is not None
    read = read_batch(job.source, piece, job.least, job.on_error)
    if not read.signals:
        return Coded(None, None, read.skipped)
    batch = job.step.check(read.signals)
    return Coded(batch, job.step.encode(brief, batch), read.skipped)


def code_for_the_client(piece: UnreadBatch | Batch, job: Job, brief: Brief) -> Coded:
    """Solve a piece as `code` does, and leave out of the answer what the client has sent: it need not go back."""
    coded = code(piece, job, brief)
    return replace(coded, batch=None) if isinstance(piece, Batch) else coded


def split(whole: UnreadBatch | Batch, count: int) -> Sequence[UnreadBatch | Batch]:
    """A batch in at most `count` pieces of about the same number of signals, in order."""
    length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
    bounds = np.linspace(0, length, min(max(count, 1), length) + 1).astype(int).tolist()
    spans = list(pairwise(bounds))
    if isinstance(whole, Batch):
        return [whole.take(range(first, last)) for first, last in spans]
    return [UnreadBatch(whole.epoch, whole.position + first, whole.indices[first:last]) for first, last in spans]


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


def merge(results: Sequence[Result]) -> Result:
    """One result of several, in order."""
    bounds = np.cumsum([0, *[len(result.codes) for result in results]]).tolist()
    return Result.merge(results, [range(first, last) for first, last in pairwise(bounds)])
