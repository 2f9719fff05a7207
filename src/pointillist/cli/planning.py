"""What a run of ``pointillist learn`` will need, and settings that keep it within a limit.

Sizes alone do not tell that: signals are looked at, and some throw-away steps are taken. So this is done only for ``--plan``
and ``--max-memory``.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.cli import forecast
from pointillist.cli.forecast import middle, room, show_plan
from pointillist.cli.learning_request import LearnRequest, Survival
from pointillist.cli.learning_summary import update_words
from pointillist.data.sources import Source, Stream, read_batch
from pointillist.data.sources.derived import DEFAULT_CACHE, Survey, survey
from pointillist.learners import BatchCSC, FilterUpdate, OnlineCSC
from pointillist.learners.calibration import measure_pace, warm_up
from pointillist.learners.plan import Plan, RunSizes, duration, in_bytes, within
from pointillist.parallel import effective_jobs
from pointillist.reprs import sizes
from pointillist.system import memory_peak

PREFETCH = 2
_ON_DEVICE = 64  # signals at most that a GPU's pace is measured with


def make_plan(
    request: LearnRequest, model: BatchCSC | OnlineCSC, source: Source, others: Source | None, n_steps: int
) -> Plan:
    """What the run needs, with settings that keep it within the limit that the request sets.

    Parameters
    ----------
    request : LearnRequest
    model : BatchCSC or OnlineCSC
        The learner as it is asked for; it is left as it is.
    source, others : Source
        Training and held-out signals.
    n_steps : int
        Steps of the run as it is asked for.

    Raises
    ------
    ValueError
        If nothing keeps the run within the limit.
    """
    seen, box = survey(source), request.box
    # First of all: what reading signals leaves behind in the allocator is no part of the program.
    channels, space = _divided(seen.largest, box)
    small = [max(side, min(4 * side, length)) for side, length in zip(box, space, strict=True)]
    base = warm_up(model, [*channels, *small])
    peak = memory_peak()
    if request.limit is not None:  # what cannot fit is refused before anything is read
        within(_run_sizes(request, model, seen, n_steps, itemsize=4), request.limit, base, peak)
    signals = _first_signals(request, source, _together(model, seen))
    run = _run_sizes(request, model, seen, n_steps, signals[0].dtype.itemsize)
    if others is not None:
        run = replace(run, held_out=int(survey(others).keepable))
    plan = Plan(run, base, peak=peak)
    if request.limit is not None:
        run, given_up = within(run, request.limit, base, peak)
        plan = Plan(run, base, peak=peak, limit=request.limit, given_up=given_up)
    return replace(plan, seconds=_seconds(run, model, seen, signals))


def _together(model: BatchCSC | OnlineCSC, seen: Survey) -> int:
    """Signals that a pace is measured with; a device codes all signals of a step at once."""
    if model.device == "cpu":
        return 2 * effective_jobs(model.n_jobs)
    return max(2, min(_batch_size(model, seen), _ON_DEVICE))


def _batch_size(model: BatchCSC | OnlineCSC, seen: Survey) -> int:
    return min(model.batch_size, seen.n_signals) if isinstance(model, OnlineCSC) else seen.n_signals


def _seconds(run: RunSizes, model: BatchCSC | OnlineCSC, seen: Survey, signals: list[NDArray]) -> float:
    """About how long the run takes, from a few steps with some of its signals."""
    cut = [middle(signal, run.size) for signal in signals]
    pace = measure_pace(model, cut)
    scale = seen.samples / float(np.mean([signal.size for signal in cut]))
    each = seen.n_signals * (round(run.n_steps * run.batch_size / seen.n_signals) or 1)
    return replace(pace, signal=pace.signal * scale).seconds(run.n_steps, each)


def _run_sizes(
    request: LearnRequest, model: BatchCSC | OnlineCSC, seen: Survey, n_steps: int, itemsize: int
) -> RunSizes:
    channels, space = _divided(seen.largest, request.box)
    update = model.update or FilterUpdate()
    return RunSizes(
        n_filters=sum(model.n_filters) if isinstance(model.n_filters, list) else int(model.n_filters),
        channels=prod(channels),
        size=request.box,
        signal=tuple(max(pair) for pair in zip(space, request.box, strict=True)),
        n_signals=seen.n_signals,
        n_steps=n_steps,
        batch_size=_batch_size(model, seen),
        n_jobs=effective_jobs(model.n_jobs),
        prefetch=PREFETCH if isinstance(model, OnlineCSC) else 0,
        cache=min(DEFAULT_CACHE, int(seen.keepable * itemsize)),
        reading=seen.reading,
        itemsize=itemsize,
        sampling=model.sampling,
        boundary=model.boundary,
        statistics=update.statistics,
        robust=model.robust is not None,
        checkpoints=request.survival != Survival(),
    )


def _divided(shape: tuple[int, ...], box: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of a signal as that of its channels, empty where it has none, and that of its space."""
    return shape[: -len(box)], shape[-len(box) :]


def _first_signals(request: LearnRequest, source: Source, count: int) -> list[NDArray]:
    """A few usable signals to try things on; warning of the others is left to the run."""
    signals: list[NDArray] = []
    reasons: list[str] = []
    for unread in Stream(source, shuffle=False).unread():
        read = read_batch(source, unread, lambda signal: request.box, request.wanted.on_error)
        signals += read.signals
        reasons += read.skipped
        if len(signals) == count:
            break
    if not signals:
        raise ValueError(f"none of the {len(source)} signals can be used; the first: {reasons[0]}")
    return signals


def apply(record: dict[str, Any], model: BatchCSC | OnlineCSC) -> None:
    """Give the model the settings that a memory limit chose, as `Plan.record` has them."""
    if isinstance(model, OnlineCSC):
        model.set_params(batch_size=int(record["batch_size"]))
    if int(record["n_jobs"]) < effective_jobs(model.n_jobs):
        model.set_params(n_jobs=int(record["n_jobs"]))


def show(plan: Plan, output: Path, model: BatchCSC | OnlineCSC) -> None:
    """Print the whole plan of a model to be learned, for ``--plan``."""
    run, special = plan.run, update_words(model)
    channels = f" in {run.channels} channels" if model.channels else ""
    lines = [
        f"{run.n_filters} filters of {sizes(run.size)}{channels}{special}, {run.n_steps:,} steps of {run.batch_size} "
        f"of {run.n_signals:,} signals, {sizes(run.signal)} at most, {run.n_jobs} threads",
        f"disk: {in_bytes(run.disk())}{' with checkpoints' if run.checkpoints else ''}, {room(output)}",
        f"time: about {duration(plan.seconds or 0)} on this machine",
    ]
    show_plan(plan, lines)


def warn_early(plan: Plan, output: Path) -> None:
    """Say what may end the run badly."""
    run = plan.run
    forecast.warn_early(plan, output, disk=run.disk(), seconds=plan.seconds or 0.0, survives=run.checkpoints)
