"""Online learning: SPORCO's learner makes passes over the images; how long do we take to a dictionary as good?"""

from __future__ import annotations

from typing import Any

from paper.rivals import choose_threads, learn_online

import pointillist as pt
from benchmarks import judge
from benchmarks.context import Context
from benchmarks.inputs import CIRCULAR, FILTER_SIZE, PENALTY
from benchmarks.measure import threads
from benchmarks.peers import ONLINE
from benchmarks.tables import Findings, Table, chart

PASSES = 2
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


def run(context: Context) -> Findings:
    """Race our learners to what SPORCO's has after each pass over the images."""
    inputs = context.inputs
    start = inputs.start(inputs.scale.n_filters)
    used = choose_threads(inputs.train[:1], start)
    settings = list(ONLINE)[: context.pick(len(ONLINE), 1)]
    runs = {f"SPORCO {setting}": (setting, inputs.train) for setting in settings}
    runs["SPORCO tuned, tapered"] = "tuned", inputs.tapered
    rivals = []
    for name, (setting, images) in runs.items():
        context.say(name)
        steps, each = ONLINE[setting], len(images)
        learned = learn_online(images, start, steps, passes=PASSES, due=lambda step, each=each: step % each == 0)
        rivals.append(judge.valued(learned, inputs.judged, name))
    limit, target = context.pick(6.0, 2.0), min(min(rival.values) for rival in rivals)
    mine = []
    for name, options in OURS.items():
        context.say(f"ours, {name}")
        model = pt.OnlineCSC(len(start), FILTER_SIZE, PENALTY, random_state=0)
        model.set_params(n_epochs=context.pick(30, 4), **options, update__init=start)
        goal = {"limit": limit, "target": target}
        mine.append(judge.descend(model, inputs.train, inputs.judged, name, **goal))

    table = Table(
        f"Online learning on {inputs.name}: seconds to a held-out objective, at most {threads()} threads",
        ["SPORCO setting", "passes", "held out", "SPORCO s", *[f"ours s, {m.name}" for m in mine], "ratio, our best"],
        note="Objective of the held-out images for each dictionary, by one exact coder, when learning is over: SPORCO's "
        f"after each pass, ours after each step. A dash: not reached in {limit:g} s. {CIRCULAR}",
    )
    for rival in rivals:
        for number, (seconds, value) in enumerate(zip(rival.seconds, rival.values, strict=True), 1):
            table.add(rival.name, number, value, *judge.times_to(value, seconds, mine))
    curves = chart("Online learning", "seconds of learning", "held-out objective", judge.curves(rivals, mine))
    tried = {name: vars(steps) for name, steps in ONLINE.items()}
    return Findings([table], [curves], {"ours": OURS, "sporco": tried, "passes": PASSES, "sporco threads": used})
