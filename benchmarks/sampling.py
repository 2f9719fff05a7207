"""What sampling buys: ``python -m benchmarks.sampling [--quick]``.

How long does coding in a step take for shares and kinds of draws, and where is learning after a time? Filters are learned
online from natural patches, one in a step, and judged on patches that nobody learned from. Seconds are those of the CPU in
one thread, so that other work on the machine does not count; judging stops the clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper.timing import first_at_most
from threadpoolctl import threadpool_limits

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.tables import Findings, Table, chart
from pointillist.learners.estimators import training_step

SHARES = (1.0, 0.3, 0.1, 0.03)
KINDS = ("bundles", "codes", "positions", "stretches", "cells")
FOLLOWED = ("codes", "cells")
"""Kinds that learning is followed with beside the default one."""
STEPS = {"early": 5, "late": 60}
"""Steps of learning whose coding is measured: one with much of the ridge left, and one after most of it has faded."""
JUDGED_TIMES = 12
LEVELS = (0.25, 0.5, 1.0)
"""Levels that sampling races to: those of all codes after these parts of their time."""


class Runs(NamedTuple):
    """How much is learned from: the patches that all codes see, and the seeds that curves are means over."""

    patches: int
    seeds: int


RUNS = {100: Runs(300, 2), 400: Runs(100, 1)}
"""By the number of filters."""

Curve = tuple[list[float], list[float]]
"""CPU seconds of learning, and held-out objectives."""


def run(context: Context) -> Findings:
    """Measure coding for all shares and kinds, then follow learning with the default kind and the paper's."""
    runs, patches = context.pick(RUNS, {16: Runs(6, 1)}), context.inputs.patches
    pool, judged = patches("train", context.pick(1000, 12)), patches("test", context.pick(8, 2))
    found = Findings(settings={"shares": SHARES, "kinds": KINDS, "runs": {n: one._asdict() for n, one in runs.items()}})
    with threadpool_limits(1):
        for n_filters, one in runs.items():
            found.tables.append(_coding(context, n_filters, pool[: context.pick(40, 4)]))
            curves = _curves(context, n_filters, one, pool, judged)
            found.tables.append(_levels(n_filters, one, curves, len(judged)))
            drawn = chart(f"Sampling, K = {n_filters}", "CPU seconds of learning", "held-out objective", curves)
            found.charts.append(drawn)
            context.show(found.tables[-1])
    return found


def _model(n_filters: int, draws: pt.Draws, seed: int = 0) -> pt.OnlineCSC:
    return pt.OnlineCSC(n_filters, FILTER_SIZE, PENALTY, sampling=draws, n_jobs=1, random_state=seed)


def _coding(context: Context, n_filters: int, patches: NDArray) -> Table:
    """Milliseconds of coding in a step, and their share of what all codes take, early and late in learning."""
    model, timed = _model(n_filters, pt.Draws(1.0)), patches[: context.pick(8, 2)]
    table = Table(
        f"Sampling, K = {n_filters}: CPU milliseconds of coding in a step",
        ["step", "drawn", *[f"p = {p:g}" for p in SHARES], *[f"p = {p:g}, of all" for p in SHARES[1:]]],
        note=f"Means over {len(timed)} patches, the best of five; filters learned from {len(patches)} patches.",
    )
    for patch in patches:
        model.partial_fit(patch[None])
    for when, number in STEPS.items():
        model.state_.step = number
        drawn = [pt.Draws(1.0), *[pt.Draws(p, kind) for kind in KINDS for p in SHARES[1:]]]
        context.say(f"K = {n_filters}, coding, {when}")
        every, *some = _milliseconds(model, drawn, timed)
        for i, kind in enumerate(KINDS):
            own = some[i * (len(SHARES) - 1) :][: len(SHARES) - 1]
            table.add(when, kind, every, *own, *[one / every for one in own])
    return table


def _milliseconds(model: pt.OnlineCSC, drawn: Sequence[pt.Draws], patches: NDArray) -> list[float]:
    """The mean time of coding a patch with the filters and in the step of a model, for several draws in turns."""
    steps = [training_step(model.set_params(sampling=draws)) for draws in drawn]
    batches, best = [steps[0].check(patch[None]) for patch in patches], [np.inf] * len(steps)
    for _ in range(5):
        for i, step in enumerate(steps):
            begin = time.thread_time()
            for batch in batches:
                step.encode(model.state_, batch)
            best[i] = min(best[i], time.thread_time() - begin)
    return [1e3 * seconds / len(patches) for seconds in best]


def _curves(context: Context, n_filters: int, size: Runs, pool: NDArray, judged: NDArray) -> dict[str, Curve]:
    """Learn from so many patches with all codes and, with fewer, for as long: the mean over seeds of each curve."""
    followed = {f"p = {p:g}": pt.Draws(p) for p in SHARES}
    followed |= {f"p = 0.1, {kind}": pt.Draws(0.1, kind) for kind in FOLLOWED}
    curves: dict[str, Curve] = {}
    limit = np.inf
    for name, draws in followed.items():
        context.say(f"K = {n_filters}, {name}")
        runs = []
        for seed in range(size.seeds):
            most = size.patches if draws.share == 1 else len(pool) if not runs else runs[0][2]
            runs.append(_learn(_model(n_filters, draws, seed), pool, judged, most, limit if not runs else np.inf))
        if draws.share == 1:
            limit = runs[0][0][-1]
        curves[name] = tuple(np.mean([one[i] for one in runs], axis=0).tolist() for i in range(2))  # type: ignore[assignment]
    return curves


def _learn(
    model: pt.OnlineCSC, pool: NDArray, judged: NDArray, most: int, limit: float
) -> tuple[list[float], list[float], int]:
    """CPU seconds, held-out objectives and the number of patches of a run that ends after so many patches or seconds."""
    spent, seconds, seen, kept = 0.0, [], [], []
    order = np.random.default_rng(model.random_state).permutation(len(pool))
    for number, i in enumerate(order[:most], 1):
        begin = time.thread_time()
        model.partial_fit(pool[i][None])
        spent += time.thread_time() - begin
        seconds.append(spent)
        seen.append(number)
        kept.append(model.filters_)
        if spent >= limit:
            break
    due = np.unique(np.round(np.geomspace(2, seen[-1], JUDGED_TIMES)).astype(int)) - 1
    coder: dict[str, Any] = {"penalty": PENALTY, "n_jobs": 1}
    values = [float(np.mean(pt.encode(judged, kept[i], **coder).objective)) for i in due]
    return [seconds[i] for i in due], values, seen[-1]


def _levels(n_filters: int, size: Runs, curves: dict[str, Curve], n_judged: int) -> Table:
    """Seconds to the levels that all codes reach on their way, and where each run ends."""
    table = Table(
        f"Sampling, K = {n_filters}: CPU seconds of learning to a held-out objective",
        ["held-out objective", *curves],
        note=f"Levels that all codes reach in a quarter, a half and all of the time of {size.patches} patches, then the "
        f"lowest of each run in that time. Means over {n_judged} unseen patches; seeds: {size.seeds}. A dash: not reached.",
    )
    seconds, values = curves["p = 1"]
    for part in LEVELS:
        reached = [v for s, v in zip(seconds, values, strict=True) if s <= 1.0001 * part * seconds[-1]]
        level = min(reached, default=values[0])
        table.add(level, *[first_at_most(*curve, level) for curve in curves.values()])
    table.add("lowest", *[min(curve[1]) for curve in curves.values()])
    return table


def main() -> None:
    options = parser("benchmarks.sampling", "What sampling buys, in coding and in learning.")
    context = Context.of(options.parse_args())
    begin = time.perf_counter()
    found = run(context)
    context.record("sampling", found, context.inputs.name, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
