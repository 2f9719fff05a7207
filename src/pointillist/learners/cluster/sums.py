"""Large batches, whose codes take more bytes than the statistics: codes stay with the workers, and sums come back.

The batch is cut into pieces whose size follows from the settings alone. Every piece gives statistics of its own, and these
are added two by two, in a fixed order: the filters do not depend on the number of workers. They agree with those of one
process to rounding, since that adds one signal after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources import UnreadBatch
from pointillist.dictionary.robust import Robust, Windows, window_errors, without_outliers
from pointillist.dictionary.statistics import objectives
from pointillist.learners.cluster.connecting import tell
from pointillist.learners.cluster.work import Brief, Coded, Setup, code, split
from pointillist.learners.feed import Feed
from pointillist.learners.inputs import Batch
from pointillist.learners.state import LearnerState

if TYPE_CHECKING:
    from distributed import Client

_RETURNED = 2.5
"""Bytes that come back for one byte of a signal, about: itself, its residual and its codes."""
_LEAST, _MOST = 32, 2048
"""Least and most pieces of a batch that workers sum up: enough for many workers, few enough for one scheduler."""
_WORTH = 2**26
"""Bytes of a batch's codes below which they come back, however small the statistics: that keeps the bits of one process."""


def worth_size(batch_size: int, state: LearnerState, feed: Feed) -> int | None:
    """Signals in a piece, or None where the codes of a batch take fewer bytes than the statistics, or few anyway.

    It rests on the settings and the first signal only, so that a resumed run decides alike.
    """
    patches = feed.patches()
    if patches is None:
        return None
    statistics = sum(array.nbytes for array in state.statistics.arrays().values())
    returned = _RETURNED * patches[0].nbytes
    if batch_size * returned < max(statistics, _WORTH):
        return None
    return ceil(max(statistics / (_LEAST * returned), batch_size / _MOST))


@dataclass(frozen=True)
class Summary:
    """What the client is told of a piece whose codes stay with a worker."""

    count: int
    nnz: int
    gap: float  # sum over the signals
    usage: NDArray
    skipped: list[str]


def summarise(coded: Coded) -> Summary:
    if coded.result is None:
        return Summary(0, 0, 0.0, np.zeros(0), coded.skipped)
    codes = coded.result.codes
    return Summary(len(codes), codes.nnz, float(np.sum(coded.result.gap)), codes.usage(), coded.skipped)


def sums_of(coded: Coded, weights: NDArray, setup: Setup, brief: Brief) -> dict[str, NDArray]:
    """The statistics of one piece of a batch, as arrays."""
    sums = setup.step.empty(brief.filters.shape)
    assert coded.batch is not None
    assert coded.result is not None
    sums.add(setup.step.coded(coded.batch, coded.result), brief.filters, weights)
    return sums.arrays()


def add_sums(first: dict[str, NDArray], second: dict[str, NDArray]) -> dict[str, NDArray]:
    return {name: first[name] + second[name] for name in first}


def objective_of(coded: Coded, setup: Setup, brief: Brief) -> float:
    """The objective of one piece, summed over its signals, for the filters of a later brief."""
    assert coded.batch is not None
    assert coded.result is not None
    batch = setup.step.coded(coded.batch, coded.result)
    return float(np.sum(objectives(batch, brief.filters, brief.penalty)))


def residuals_of(coded: Coded) -> list[NDArray]:
    return [] if coded.result is None else coded.result.residuals


def windows_of(coded: Coded, robust: Robust, setup: Setup, brief: Brief) -> list[Windows]:
    """The windows of the signals of one piece, with their errors."""
    assert coded.batch is not None
    assert coded.result is not None
    return window_errors(setup.step.coded(coded.batch, coded.result), brief.filters, brief.penalty, robust)


def counted_part(
    coded: Coded, counted: Sequence[NDArray], support: NDArray | None, setup: Setup, brief: Brief
) -> Coded:
    """A piece in which only some cells count; see `without_outliers`."""
    assert coded.batch is not None
    assert coded.result is not None
    kept = without_outliers(setup.step.coded(coded.batch, coded.result), brief.filters, counted, support)
    members = [i for i, cells in enumerate(counted) if cells.any()]
    weights = None if kept.weights is None else list(kept.weights)
    result = replace(
        coded.result,
        codes=kept.codes,
        objective=coded.result.objective[members],
        gap=coded.result.gap[members],
        statuses=tuple(coded.result.statuses[i] for i in members),
        iterations=coded.result.iterations[members],
        residuals=list(kept.residuals),
    )
    return Coded(Batch(list(kept.signals), weights), result, coded.skipped)


@dataclass(frozen=True)
class CodesThere:
    """The codes of a step, which stay with the workers: `StepCodes` for the client."""

    client: Client
    setup: Any
    brief: Any
    pieces: list[Any]  # futures of `Coded`, with at least one signal each
    summaries: list[Summary]
    numbers: Sequence[int] | None = None  # of the signals, where the client has them

    @classmethod
    def solve(
        cls, size: int, client: Client, whole: UnreadBatch | Batch, setup: Any, brief: Any
    ) -> tuple[CodesThere | None, list[str]]:
        length = len(whole) if isinstance(whole, Batch) else len(whole.indices)
        pieces = client.map(code, split(whole, ceil(length / size)), setup=setup, brief=brief, pure=False)
        summaries: list[Summary] = client.gather(client.map(summarise, pieces, pure=False))
        skipped = [why for summary in summaries for why in summary.skipped]
        kept = [i for i, summary in enumerate(summaries) if summary.count]
        if not kept:
            return None, skipped
        numbers = whole.numbers if isinstance(whole, Batch) else None
        return cls(client, setup, brief, [pieces[i] for i in kept], [summaries[i] for i in kept], numbers), skipped

    def __len__(self) -> int:
        return sum(summary.count for summary in self.summaries)

    def add_to(self, state: LearnerState, counts: NDArray) -> None:
        parts = np.split(counts, np.cumsum([summary.count for summary in self.summaries])[:-1])
        told = {"setup": self.setup, "brief": self.brief, "pure": False}
        sums = [
            self.client.submit(sums_of, piece, part, **told) for piece, part in zip(self.pieces, parts, strict=True)
        ]
        while len(sums) > 1:
            pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [self.client.submit(add_sums, *pair, pure=False) if len(pair) == 2 else pair[0] for pair in pairs]
        state.statistics.load(add_sums(state.statistics.arrays(), sums[0].result()))

    def usage(self) -> NDArray:
        return np.sum([summary.usage for summary in self.summaries], axis=0)

    def residuals(self) -> Sequence[NDArray]:
        fetched = self.client.gather(self.client.map(residuals_of, self.pieces, pure=False))
        return [residual for some in fetched for residual in some]

    def objective(self, state: LearnerState) -> float:
        brief = Brief(state.filters, state.penalty, state.seed, state.step)
        told = tell(self.client, brief)
        return sum(
            self.client.gather(self.client.map(objective_of, self.pieces, setup=self.setup, brief=told, pure=False))
        )

    def windows(self, robust: Robust, state: LearnerState) -> list[Windows]:
        told = {"robust": robust, "setup": self.setup, "brief": self.brief, "pure": False}
        return [one for some in self.client.gather(self.client.map(windows_of, self.pieces, **told)) for one in some]

    def without(self, counted: Sequence[NDArray], state: LearnerState) -> Self:
        told = {"support": state.constraints.support, "setup": self.setup, "brief": self.brief, "pure": False}
        bounds = np.cumsum([0, *[summary.count for summary in self.summaries]]).tolist()
        parts = [counted[first:last] for first, last in pairwise(bounds)]
        chosen = [i for i, part in enumerate(parts) if any(cells.any() for cells in part)]
        pieces = [self.client.submit(counted_part, self.pieces[i], parts[i], **told) for i in chosen]
        summaries = self.client.gather(self.client.map(summarise, pieces, pure=False))
        return replace(self, pieces=pieces, summaries=summaries)

    @property
    def nnz(self) -> int:
        return sum(summary.nnz for summary in self.summaries)

    @property
    def gap(self) -> float:
        return sum(summary.gap for summary in self.summaries) / len(self)
