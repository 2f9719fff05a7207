"""The steps of a run on a cluster; a step whose workers were lost is done again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pointillist.data.sources import ReadBatch, UnreadBatch
from pointillist.learners.cluster.connecting import tell, wait_for_workers
from pointillist.learners.cluster.sums import CodesThere, worth_size
from pointillist.learners.cluster.work import Brief, Coded, Setup, code_for_the_client, join, merge, split
from pointillist.learners.feed import Feed
from pointillist.learners.inputs import Batch
from pointillist.learners.state import LearnerState, StepCodes
from pointillist.learners.step import Step

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

Solved = tuple[StepCodes | None, list[str]]

_PIECES_PER_THREAD = 2
"""Signals take different times: with two pieces for each thread nobody waits long for the last."""
_ATTEMPTS = 3
_SETTING_UP = 600.0
"""Seconds to wait until all workers have the settings of a run, and its signals where these are in memory."""


def coded_steps(
    client: Client, step: Step, batch_size: int, feed: Feed, state: LearnerState
) -> Iterator[tuple[float, StepCodes]]:
    """Yield for each batch when its step began, and its codes for the filters that `state` has by then."""
    stream = feed.elsewhere
    source = None if stream is None else stream.source
    crew = _Crew(client, Setup(replace(step, n_jobs=1), source, feed.stream.least, feed.stream.on_error))
    size = worth_size(batch_size, state, feed)
    work: Iterator[UnreadBatch | Batch] = iter(feed) if stream is None else stream.unread()
    for whole in work:
        begin = state.now()
        brief = Brief(state.filters, state.penalty, state.seed, state.step)
        solve = partial(_codes_here, step, client) if size is None else partial(CodesThere.solve, size, client)
        codes, skipped = crew.attempt(solve, whole, brief)
        if stream is not None and isinstance(whole, UnreadBatch):
            stream.hand_out(whole, ReadBatch([], skipped))
        if codes is not None:
            yield begin, codes


class _Crew:
    """The workers of a cluster, with the settings that they were sent."""

    def __init__(self, client: Client, setup: Setup) -> None:
        self._client, self._setup = client, setup
        self._shared: Any = None

    def attempt(self, solve: Callable[..., Solved], whole: UnreadBatch | Batch, brief: Brief) -> Solved:
        """Solve a batch, again where all workers were lost; Dask itself repeats the tasks of a single lost worker."""
        for _ in range(_ATTEMPTS):
            try:
                if self._shared is None:
                    wait_for_workers(self._client)
                    self._shared = tell(self._client, self._setup, _SETTING_UP)
                return solve(whole, self._shared, tell(self._client, brief))
            except CancelledError:
                log.warning("the cluster lost all its workers: doing step %d again", brief.step + 1)
                self._shared = None
        raise ConnectionError(f"the cluster lost all its workers {_ATTEMPTS} times in step {brief.step + 1}")


def _codes_here(step: Step, client: Client, whole: UnreadBatch | Batch, setup: Any, brief: Any) -> Solved:
    """Solve for a batch on the workers and bring codes, signals and residuals to the client."""
    pieces = split(whole, _PIECES_PER_THREAD * sum(client.nthreads().values()))
    coded: list[Coded] = client.gather(client.map(code_for_the_client, pieces, setup=setup, brief=brief, pure=False))
    skipped = [why for piece in coded for why in piece.skipped]
    results = [piece.result for piece in coded if piece.result is not None]
    if not results:
        return None, skipped
    batch = whole if isinstance(whole, Batch) else join([piece.batch for piece in coded if piece.batch is not None])
    return step.codes(batch, merge(results)), skipped
