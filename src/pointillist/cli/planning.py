"""What a run of ``pointillist learn`` will need, and settings that keep it within a limit."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointillist.cli.console import out, warn
from pointillist.cli.inputs import CACHE, Wanted, sizes
from pointillist.data.sources import Source, Stream, read_part
from pointillist.data.sources.survey import Survey
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.calibration import measure_pace, memory_peak, warm_up
from pointillist.learners.plan import Plan, Run, duration, in_bytes, within
from pointillist.solvers.base import effective_jobs

CALIBRATION_SIDE = 256
"""Larger signals are cut to this side for the calibration, whose time then follows their samples."""
PREFETCH = 2
_ON_DEVICE = 64  # signals at most that a GPU's pace is measured with
LONG = 600.0
"""Seconds from which on a run had better keep checkpoints."""


def size_up(
    model: BatchCSC | OnlineCSC,
    source: Source,
    seen: Survey,
    wanted: Wanted,
    *,
    box: tuple[int, ...],
    n_steps: int,
    held_out: int,
    checkpoints: bool,
    limit: int | None,
) -> Plan:
    """What the run needs by its sizes, with settings that keep it within a limit; the kernels are warm afterwards.

    Parameters
    ----------
    box : tuple of int
        Size of the filters.
    n_steps : int
        Steps of the run as it is asked for.
    held_out : int
        Samples of the held-out signals.
    limit : int or None
        Bytes to stay within; raises ValueError where that cannot be.
    """
    # First of all: what reading signals leaves behind in the allocator is no part of the program.
    base = warm_up(model, [max(side, min(4 * side, length)) for side, length in zip(box, seen.largest, strict=True)])
    peak = memory_peak()
    first = _first_signals(source, wanted, box, 1)[0]
    run = _run(model, seen, box, n_steps, held_out, checkpoints, first.dtype.itemsize)
    if limit is None:
        return Plan(run, base, peak=peak)
    run, given_up = within(run, limit, base, peak)
    return Plan(run, base, peak=peak, limit=limit, given_up=given_up)


def time_it(plan: Plan, model: BatchCSC | OnlineCSC, source: Source, seen: Survey, wanted: Wanted) -> Plan:
    """The plan with about how long the run takes, from a few steps with some of its signals."""
    run = plan.run
    # A device codes all signals of a step at once.
    together = 2 * run.n_jobs if model.device == "cpu" else max(2, min(run.batch_size, _ON_DEVICE))
    signals = _first_signals(source, wanted, run.size, together)
    cut = [_middle(signal, run.size) for signal in signals]
    pace = measure_pace(model, cut)
    scale = seen.samples / float(np.mean([signal.size for signal in cut]))
    each = seen.n_signals * (round(run.n_steps * run.batch_size / seen.n_signals) or 1)
    return replace(plan, seconds=replace(pace, signal=pace.signal * scale).seconds(run.n_steps, each))


def _run(
    model: BatchCSC | OnlineCSC,
    seen: Survey,
    box: tuple[int, ...],
    n_steps: int,
    held_out: int,
    checkpoints: bool,
    itemsize: int,
) -> Run:
    online = isinstance(model, OnlineCSC)
    n_filters = sum(model.n_filters) if isinstance(model.n_filters, list) else int(model.n_filters)
    return Run(
        n_filters=n_filters,
        channels=1,
        size=box,
        signal=tuple(max(pair) for pair in zip(seen.largest, box, strict=True)),
        n_signals=seen.n_signals,
        n_steps=n_steps,
        batch_size=min(model.batch_size, seen.n_signals) if isinstance(model, OnlineCSC) else seen.n_signals,
        n_jobs=effective_jobs(model.n_jobs),
        prefetch=PREFETCH if online else 0,
        cache=min(CACHE, int(seen.keepable * itemsize)),
        reading=seen.reading,
        itemsize=itemsize,
        sampling=float(model.sampling),
        boundary=model.boundary,
        statistics=model.statistics,
        held_out=held_out,
        checkpoints=checkpoints,
    )


def _first_signals(source: Source, wanted: Wanted, box: Sequence[int], count: int) -> list[NDArray]:
    """A few usable signals to try things on; warning of the others is left to the run."""
    signals: list[NDArray] = []
    reasons: list[str] = []
    for part in Stream(source, shuffle=False).parts():
        read = read_part(source, part, box, wanted.on_unreadable)
        signals += read.signals
        reasons += read.skipped
        if len(signals) == count:
            break
    if not signals:
        raise ValueError(f"none of the {len(source)} signals can be used; the first: {reasons[0]}")
    return signals


def _middle(signal: NDArray, box: Sequence[int]) -> NDArray:
    sides = [min(length, max(CALIBRATION_SIDE, 2 * side)) for length, side in zip(signal.shape, box, strict=True)]
    corner = [(length - side) // 2 for length, side in zip(signal.shape, sides, strict=True)]
    cut = signal[tuple(slice(first, first + side) for first, side in zip(corner, sides, strict=True))]
    return cut if np.ptp(cut) > 0 else signal


def show(plan: Plan, output: Path) -> None:
    """The whole plan, as ``--plan`` prints it."""
    from rich.table import Table

    run = plan.run
    table = Table(title="memory at its peak, at most", title_justify="left")
    table.add_column("for")
    table.add_column("", justify="right")
    for name, size in plan.parts().items():
        table.add_row(name, in_bytes(size))
    table.add_section()
    table.add_row("in all, with what allocators keep", in_bytes(plan.memory))
    out().print(table)
    lines = [
        f"{run.n_filters} filters of {sizes(run.size)}, {run.n_steps:,} steps of {run.batch_size} "
        f"of {run.n_signals:,} signals, {sizes(run.signal)} at most, {run.n_jobs} threads",
        f"disk: {in_bytes(run.disk())}{' with checkpoints' if run.checkpoints else ''}, "
        f"{in_bytes(_free(output))} free in {output.resolve().parent}",
        f"time: about {duration(plan.seconds or 0)} on this machine",
    ]
    lines += [f"to stay within {in_bytes(plan.limit or 0)}: {words}" for words in plan.given_up]
    out().print("\n".join(lines), markup=False, soft_wrap=True)


def warn_early(plan: Plan, output: Path) -> None:
    """Say what may end the run badly."""
    if plan.run.disk() > _free(output):
        warn(
            f"the run needs {in_bytes(plan.run.disk())} on disk, {output.resolve().parent} has {in_bytes(_free(output))}"
        )
    if (plan.seconds or 0) > LONG and not plan.run.checkpoints:
        warn(f"the run takes about {duration(plan.seconds or 0)}: --checkpoint-every 60s would let it survive a crash")
    if plan.given_up:
        warn(f"to stay within {in_bytes(plan.limit or 0)}: {'; '.join(plan.given_up)}")


def _free(output: Path) -> int:
    return shutil.disk_usage(output.resolve().parent).free
