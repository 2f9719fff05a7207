"""Online learning: SPORCO's learner makes passes over the images; how long do we take to a dictionary as good?"""

from __future__ import annotations

from typing import Any

import pointillist as pt
from benchmarks import judge, peers
from benchmarks.context import Context
from benchmarks.inputs import CIRCULAR, FILTER_SIZE, PENALTY
from benchmarks.measure import first_at_most, threads
from benchmarks.plots import Figure
from benchmarks.tables import Report, Table

OURS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "γ = 6, 3 sweeps": {"update__forgetting": 6.0, "update__n_sweeps": 3},
    "γ = 6, pairs": {"update__forgetting": 6.0, "update__n_sweeps": 3, "batch_size": 2},
    "circular, long ridge": {
        "update__forgetting": 6.0,
        "update__n_sweeps": 3,
        "boundary": "circular",
        "learning__half_life": 100,
    },
}


def run(context: Context) -> Report:
    inputs = context.inputs
    start, passes = inputs.start(inputs.n_filters), 2
    used = peers.choose_threads(inputs.train[:1], start)
    rivals = []
    for setting in list(peers.ONLINE)[: context.count(len(peers.ONLINE), 1)]:
        context.say(f"SPORCO {setting}")
        rivals.append(peers.learn_online(setting, inputs.train, start, inputs.held_out, passes=passes))
    context.say("SPORCO tuned, tapered")
    rivals.append(peers.learn_online("tuned", inputs.tapered, start, inputs.held_out, passes=passes))
    rivals[-1].name += ", tapered"
    target = min(min(rival.values) for rival in rivals)
    mine = []
    for name, options in OURS.items():
        context.say(f"ours, {name}")
        model = pt.OnlineCSC(inputs.n_filters, FILTER_SIZE, PENALTY, random_state=0)
        model.set_params(**options, update__init=start).fit(inputs.train[:2])  # compiles
        limit = context.pick(6.0, 2.0)
        step = max(1, 2 // model.batch_size)
        goal = {"limit": limit, "target": target, "n_epochs": context.count(30, 4)}
        mine.append(judge.follow(model, inputs.train, inputs.held_out, name, every=step, **goal))

    table = Table(
        f"Online learning on {inputs.name}: seconds to a held-out objective, at most {threads()} threads",
        ["SPORCO setting", "passes", "held out", "SPORCO s", *[f"ours s, {m.name}" for m in mine], "ratio, our best"],
        note="Objective of the held-out images for each dictionary, by one exact coder. Clocks stand still while it "
        f"judges; a dash: not reached in the limit. {CIRCULAR}",
    )
    for rival in rivals:
        for number, (seconds, value) in enumerate(zip(rival.seconds, rival.values, strict=True), 1):
            times = [first_at_most(m.seconds, m.values, value) for m in mine]
            fastest = min((t for t in times if t is not None), default=None)
            table.add(rival.name, number, value, seconds, *times, fastest and seconds / fastest)
    curves = {t.name: (t.seconds, t.values) for t in rivals} | {f"ours, {t.name}": (t.seconds, t.values) for t in mine}
    figure = Figure("online", "Online learning", "seconds of learning", "held-out objective", curves)
    return Report(
        [table],
        [figure],
        {
            "ours": OURS,
            "sporco": {name: vars(steps) for name, steps in peers.ONLINE.items()},
            "passes": passes,
            "sporco threads": used,
        },
    )
