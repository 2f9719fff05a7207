"""What sampling buys: held-out objective over time for several p, everything else equal."""

from __future__ import annotations

import pointillist as pt
from benchmarks import judge
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.plots import Figure
from benchmarks.tables import Report, Table

FRACTIONS = (1.0, 0.5, 0.2, 0.1, 0.05)


def run(context: Context) -> Report:
    inputs = context.inputs
    start, fractions = inputs.start(inputs.n_filters), FRACTIONS[:: context.count(1, 2)]
    limit = context.pick(8.0, 1.0)
    marks = [limit / 8, limit / 4, limit / 2, limit]
    report = Report(settings={"fractions": fractions, "limit": limit})
    for kind in (pt.BatchCSC, pt.OnlineCSC):
        learner = "batch" if kind is pt.BatchCSC else "online"
        table = Table(
            f"Sampling, {learner} learning on {inputs.name}: held-out objective",
            ["p", "s per iteration", *[f"after {mark:.3g} s" for mark in marks], "lowest"],
        )
        curves = {}
        for p in fractions:
            context.say(f"{learner}, p = {p}")
            update = pt.FilterUpdate(init=start, n_sweeps=3, forgetting=None if learner == "batch" else 2.0)
            options = {"max_iter": 1} if learner == "batch" else {"batch_size": 2}
            model = kind(
                inputs.n_filters, FILTER_SIZE, PENALTY, sampling=p, update=update, random_state=0, **options
            ).fit(inputs.train[:2])
            passes = {} if learner == "batch" else {"n_epochs": 100}
            if learner == "batch":
                model.set_params(max_iter=400)
            every = 2 if learner == "batch" else 5
            path = judge.follow(model, inputs.train, inputs.held_out, f"p = {p}", every=every, limit=limit, **passes)
            curves[path.name] = (path.seconds, path.values)
            values = [_value_at(path, mark) for mark in marks]
            table.add(f"{p:g}", model.history_[-1]["seconds"] / model.n_iter_, *values, min(path.values))
        report.tables.append(table)
        report.figures.append(
            Figure(f"sampling_{learner}", f"Sampling, {learner}", "seconds of learning", "held-out objective", curves)
        )
    return report


def _value_at(path: judge.Trajectory, seconds: float) -> float | None:
    """The lowest value up to a time."""
    return min((v for t, v in zip(path.seconds, path.values, strict=True) if t <= seconds), default=None)
