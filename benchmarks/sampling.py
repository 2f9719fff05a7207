"""What sampling buys: held-out objective over time for several p, everything else equal."""

from __future__ import annotations

from dataclasses import replace

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
    update = pt.FilterUpdate(init=start, n_sweeps=3)
    models: dict[str, tuple[pt.BatchCSC | pt.OnlineCSC, int, dict[str, int]]] = {
        "batch": (pt.BatchCSC(max_iter=400, update=update), 2, {}),
        "online": (pt.OnlineCSC(batch_size=2, update=replace(update, forgetting=2.0)), 5, {"n_epochs": 100}),
    }
    for learner, (model, every, fit) in models.items():
        model.set_params(n_filters=len(start), filter_size=FILTER_SIZE, penalty=PENALTY, random_state=0)
        table = Table(
            f"Sampling, {learner} learning on {inputs.name}: held-out objective",
            ["p", "s per iteration", *[f"after {mark:.3g} s" for mark in marks], "lowest"],
        )
        curves = {}
        for p in fractions:
            context.say(f"{learner}, p = {p}")
            model.set_params(sampling=p)
            path = judge.descend(model, inputs.train, inputs.judged, f"p = {p}", every=every, limit=limit, **fit)
            curves[path.name] = (path.seconds, path.values)
            values = [_value_at(path, mark) for mark in marks]
            table.add(f"{p:g}", model.history_[-1]["seconds"] / model.n_iter_, *values, min(path.values))
        found.tables.append(table)
        found.charts.append(chart(f"Sampling, {learner}", "seconds of learning", "held-out objective", curves))
    return found


def _value_at(path: judge.Descent, seconds: float) -> float | None:
    """The lowest value up to a time."""
    return min((v for t, v in zip(path.seconds, path.values, strict=True) if t <= seconds), default=None)
