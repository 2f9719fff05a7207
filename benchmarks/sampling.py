"""What sampling buys: held-out objective over time for several p, everything else equal."""

from __future__ import annotations

import pointillist as pt
from benchmarks import judge
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.tables import Findings, Table, chart

FRACTIONS = (1.0, 0.5, 0.2, 0.1, 0.05)


def run(context: Context) -> Findings:
    inputs = context.inputs
    start, fractions = inputs.start(inputs.scale.n_filters), FRACTIONS[:: context.pick(1, 2)]
    limit = context.pick(8.0, 1.0)
    marks = [limit / 8, limit / 4, limit / 2, limit]
    found = Findings(settings={"fractions": fractions, "limit": limit})
    online = {"n_epochs": 1, "batch_size": 2, "forgetting": 2.0}
    for learner, kind, passes, given, every in (
        ("batch", pt.BatchCSC, {"max_iter": 400}, {"max_iter": 1}, 2),
        ("online", pt.OnlineCSC, {"n_epochs": 100}, online, 5),
    ):
        table = Table(
            f"Sampling, {learner} learning on {inputs.name}: held-out objective",
            ["p", "s per iteration", *[f"after {mark:.3g} s" for mark in marks], "lowest"],
        )
        curves = {}
        for p in fractions:
            context.say(f"{learner}, p = {p}")
            options = {"sampling": p, "init": start, "random_state": 0, "n_sweeps": 3, **given}
            model = kind(inputs.scale.n_filters, FILTER_SIZE, PENALTY, **options)
            model.fit(inputs.train[:2])  # compiles
            model.set_params(**passes)
            path = judge.descend(model, inputs.train, inputs.judged, f"p = {p}", every=every, limit=limit)
            curves[path.name] = (path.seconds, path.values)
            values = [_value_at(path, mark) for mark in marks]
            table.add(f"{p:g}", model.history_[-1]["seconds"] / model.n_iter_, *values, min(path.values))
        found.tables.append(table)
        found.charts.append(chart(f"Sampling, {learner}", "seconds of learning", "held-out objective", curves))
    return found


def _value_at(path: judge.Descent, seconds: float) -> float | None:
    """The lowest value up to a time."""
    return min((v for t, v in zip(path.seconds, path.values, strict=True) if t <= seconds), default=None)
