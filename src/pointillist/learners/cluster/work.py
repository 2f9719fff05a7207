"""What workers are told and what they do: functions of a piece of a batch, the setup of the run and the step's brief."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pointillist.data.damage import OnError
from pointillist.data.sources import Source, UnreadBatch, read_batch
from pointillist.data.sources.stream import Least
from pointillist.learners.inputs import Batch
from pointillist.learners.step import Step
from pointillist.solvers.base import Result, merge_results


@dataclass(frozen=True)
class Setup:
    """The settings that stay the same during a run; every worker gets them once."""

    step: Step
    source: Source | None  # None where the client sends the signals
    least: Least | None
    on_error: OnError


@dataclass
class Brief:
    """What changes from step to step and the codes depend on: sent to all workers once a step."""

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


def code(piece: UnreadBatch | Batch, setup: Setup, brief: Brief) -> Coded:
    """Encode a piece of a batch, which is read first where that is left to the worker."""
    if isinstance(piece, Batch):
        return Coded(piece, setup.step.encode(brief, piece), [])
    assert setup.source is not None
    read = read_batch(setup.source, piece, setup.least, setup.on_error)
    if not read.signals:
        return Coded(None, None, read.skipped)
    batch = setup.step.check(read.signals)
    return Coded(batch, setup.step.encode(brief, batch), read.skipped)


def code_for_the_client(piece: UnreadBatch | Batch, setup: Setup, brief: Brief) -> Coded:
    """Solve a piece as `code` does, and leave out of the answer what the client has sent: it need not go back."""
    coded = code(piece, setup, brief)
    return replace(coded, batch=None) if isinstance(piece, Batch) else coded


def split(whole: UnreadBatch | Batch, count: int) -> Sequence[UnreadBatch | Batch]:
    """A batch in at most `count` pieces of about the same number of signals, in order."""
    length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
    bounds = np.linspace(0, length, min(max(count, 1), length) + 1).astype(int).tolist()
    spans = list(pairwise(bounds))
    if isinstance(whole, Batch):
        return [whole.take(range(first, last)) for first, last in spans]
    return [UnreadBatch(whole.epoch, whole.offset + first, whole.indices[first:last]) for first, last in spans]


def join(batches: Sequence[Batch]) -> Batch:
    """Join batches; where one has weights, weights of one are made for the others."""
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
    """Join results of pieces, in order."""
    bounds = np.cumsum([0, *[len(result.codes) for result in results]]).tolist()
    return merge_results(results, [range(first, last) for first, last in pairwise(bounds)])
