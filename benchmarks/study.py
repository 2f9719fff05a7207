"""Defaults by measurement: a grid of the online learner's settings, judged by held-out objective and time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks import judge
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.tables import Findings, Table, chart
from pointillist.plot.figures import Chart

GRID: dict[str, tuple[Any, ...]] = {
    "learning": (0.2, 0.05),
    "sampling": (0.1, 0.2, 0.5),
    "update__forgetting": (1.0, 2.0, 4.0),
    "update__n_sweeps": (1, 3),
    "batch_size": (1, 5),
}


def run(context: Context) -> Findings:
    inputs = context.inputs
    grid = {name: values[:: context.pick(1, 2)] for name, values in GRID.items()}
    if context.quick:
        grid = {**grid, "update__n_sweeps": (1,), "batch_size": (1,)}
    names = list(grid)
    settings = [dict(zip(names, values, strict=True)) for values in product(*grid.values())]
    defaults = {name: pt.OnlineCSC().get_params()[name] for name in names}
    found = Findings(settings={"grid": grid, "defaults": defaults})
    sets = {inputs.name: (inputs.train, inputs.judged, 2)}
    natural = (inputs.patches("train", context.pick(40, 4)), inputs.patches("test", context.pick(4, 1)), 1)
    sets["natural patches"] = natural
    for label, (train, held_out, passes) in sets.items():
        context.say(f"{len(settings)} settings on {label}")
        tried = [defaults, *settings]
        costs = [_learn(context, train, held_out, passes, setting) for setting in tried]
        front = pareto(costs)
        table = Table(
            f"Settings of online learning that nothing beats in both time and objective, {label}",
            ["setting", *names, "seconds", "held out"],
            note=f"Of {len(settings)}, {passes} pass(es) each; the defaults first.",
        )
        for i in [0, *[i for i in front if i]]:
            shown = "defaults" if i == 0 else f"#{i}"
            table.add(shown, *[str(tried[i][name]) for name in names], *costs[i])
        found.tables.append(table)
        found.charts.append(_chart(label, costs, front))
        settings = [tried[i] for i in front if i]  # only those that did well meet the next set
    return found


def _learn(context: Context, train: NDArray, held_out: NDArray, passes: int, setting: dict[str, Any]) -> list[float]:
    """Seconds of learning and the held-out objective."""
    start = context.inputs.start(context.inputs.scale.n_filters)
    model = pt.OnlineCSC(len(start), FILTER_SIZE, PENALTY, n_epochs=passes, random_state=0)
    model.set_params(**setting, update__init=start)
    model.fit(train)
    return [model.history_[-1]["seconds"], judge.objective(held_out, model.filters_)]


def pareto(costs: list[list[float]]) -> list[int]:
    """Indices that no other beats in both costs, by the first cost."""
    front, lowest = [], np.inf
    for i in sorted(range(len(costs)), key=lambda i: costs[i]):
        if costs[i][1] < lowest:
            lowest = costs[i][1]
            front.append(i)
    return front


def _chart(label: str, costs: list[list[float]], front: list[int]) -> Chart:
    best = ([costs[i][0] for i in front], [costs[i][1] for i in front])
    curves = {"Pareto front": best, "defaults": ([costs[0][0]], [costs[0][1]])}
    return chart(f"Settings of online learning, {label}", "seconds of learning", "held-out objective", curves)
