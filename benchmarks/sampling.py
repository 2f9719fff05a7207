"""What sampling buys: time of coding in a step, and held-out objective over time, for shares and kinds of draws.

Filters are learned online from random crops of the shipped photographs for learning, contrast normalised, and judged on
crops of the shipped photographs for testing. Seconds are those of the CPU in one thread, so that other work on the machine
does not count; judging stops the clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.tables import Findings, Table, chart
from pointillist.reproduce.timing import first_at_most

SHARES = (1.0, 0.3, 0.1, 0.03)
KINDS = ("bundles", "codes", "positions", "stretches", "cells")
JUDGED = 8
STEPS = {"early": 5, "late": 60}
"""Steps of learning whose coding is measured: one with a ridge, and one after it has faded."""


def run(context: Context) -> Findings:
    """Measure coding for all shares and kinds, then follow learning with the default kind and the paper's."""
    counts, side = context.pick((100, 400), (16,)), context.pick(100, 48)
    held_out = crops("test", JUDGED, side, seed=1)
    found = Findings(settings={"shares": SHARES, "kinds": KINDS, "counts": counts, "side": side})
    for n_filters in counts:
        train = crops("train", context.pick(150, 12), side, seed=0)
        found.tables.append(_coding(context, n_filters, train[: context.pick(12, 4)]))
        curves = {}
        for name, draws in _followed():
            context.say(f"K = {n_filters}, {name}")
            curves[name] = _curve(n_filters, draws, train, held_out)
        found.tables.append(_levels(n_filters, curves))
        found.charts.append(
            chart(f"Sampling, K = {n_filters}", "CPU seconds of learning", "held-out objective", curves)
        )
    return found


def crops(split: Any, count: int, side: int, seed: int) -> NDArray:
    """Square crops of the shipped photographs, contrast normalised, in turn from each: (count, side, side) float32."""
    rng, photographs = np.random.default_rng(seed), list(pt.photographs(split).values())
    pictures = [pt.contrast_normalise(photograph) for photograph in photographs]
    cut = []
    for i in range(count):
        picture = pictures[i % len(pictures)]
        row, column = (int(rng.integers(length - side + 1)) for length in picture.shape)
        cut.append(picture[row : row + side, column : column + side])
    return np.stack(cut).astype(np.float32)


def _model(n_filters: int, draws: pt.Draws) -> pt.OnlineCSC:
    return pt.OnlineCSC(n_filters, FILTER_SIZE, PENALTY, sampling=draws, n_jobs=1, random_state=0)


def _coding(context: Context, n_filters: int, train: NDArray) -> Table:
    """Milliseconds of coding in a step, and their share of what all codes take, early and late in learning."""
    table = Table(
        f"Sampling, K = {n_filters}: CPU milliseconds of coding in a step",
        ["step", "drawn", *[f"p = {p:g}" for p in SHARES], *[f"p = {p:g}, of all" for p in SHARES[1:]]],
        note=f"Means over {len(train)} crops, the best of three; filters were learned from these. Early: with a ridge.",
    )
    model = _model(n_filters, pt.Draws(1.0))
    for crop in train:
        model.partial_fit(crop[None])
    for when, number in STEPS.items():
        model.state_.step = number
        every = _milliseconds(model, pt.Draws(1.0), train)
        for kind in KINDS:
            context.say(f"K = {n_filters}, coding of {kind}, {when}")
            some = [_milliseconds(model, pt.Draws(p, kind), train) for p in SHARES[1:]]
            table.add(when, kind, every, *some, *[one / every for one in some])
    return table


def _milliseconds(model: pt.OnlineCSC, draws: pt.Draws, train: NDArray) -> float:
    """The mean time of coding a crop with the filters and in the step of a model."""
    step = model.set_params(sampling=draws).training_step()
    batches = [step.check(crop[None]) for crop in train]

    def passed() -> float:
        begin = time.thread_time()
        for batch in batches:
            step.encode(model.state_, batch)
        return time.thread_time() - begin

    return 1e3 * min(passed() for _ in range(3)) / len(train)


def _followed() -> Iterator[tuple[str, pt.Draws]]:
    for p in SHARES:
        yield f"p = {p:g}", pt.Draws(p)
    yield "p = 0.1, codes", pt.Draws(0.1, "codes")


def _curve(n_filters: int, draws: pt.Draws, train: NDArray, held_out: NDArray) -> tuple[list[float], list[float]]:
    """CPU seconds of learning and held-out objectives, judged in steps that lie evenly on a logarithmic axis."""
    model, seconds, values, spent = _model(n_filters, draws), [], [], 0.0
    due = _due(len(train))
    for number, crop in enumerate(train, 1):
        begin = time.thread_time()
        model.partial_fit(crop[None])
        spent += time.thread_time() - begin
        if number in due:
            seconds.append(spent)
            values.append(float(np.sum(model.encode(held_out).objective)))
    return seconds, values


def _due(last: int) -> set[int]:
    return {int(number) for number in np.unique(np.round(np.geomspace(2, last, 12)))}


def _levels(n_filters: int, curves: dict[str, tuple[list[float], list[float]]]) -> Table:
    """Seconds to the levels that all codes reach on their way, and to the lowest of each."""
    table = Table(
        f"Sampling, K = {n_filters}: CPU seconds of learning to a held-out objective",
        ["held-out objective", *curves],
        note="Levels that learning with all codes reaches on its way, and the lowest of each run. A dash: not reached.",
    )
    lowest = np.minimum.accumulate(curves["p = 1"][1])
    levels = sorted(
        {*lowest[[len(lowest) // 3, 2 * len(lowest) // 3]], *[min(values) for _, values in curves.values()]}
    )
    for level in reversed(levels):
        table.add(float(level), *[first_at_most(*curve, level) for curve in curves.values()])
    return table
