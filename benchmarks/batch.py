"""Batch learning: the fastest of SPORCO's batch learners beside ours, by held-out and training objective."""

from __future__ import annotations

from typing import Any

from paper.rivals import SporcoBatch, choose_threads

import pointillist as pt
from benchmarks import judge, online
from benchmarks.context import Context
from benchmarks.inputs import CIRCULAR, FILTER_SIZE, PENALTY
from benchmarks.measure import threads
from benchmarks.tables import Findings, Table, chart

ONLINE = "our online learner, circular"

OURS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "3 sweeps": {"update__n_sweeps": 3},
    "3 sweeps, circular": {"update__n_sweeps": 3, "boundary": "circular"},
    ONLINE: online.OURS["circular, long ridge"],
}
SPORCO = {"consensus": "cns", "proximal gradient": "pgm"}
"""SPORCO's methods. Only consensus was tuned; the other takes its best ρ."""

# What the paper authors' own program reached on fruit and city, and how long it took, on another machine.
AUTHORS_LEVEL, AUTHORS_SECONDS = 4995.0, 290.0


def run(context: Context) -> Findings:
    """Race our learners to the levels that the best of SPORCO's reaches."""
    inputs = context.inputs
    start = inputs.start(inputs.scale.n_filters)
    used = choose_threads(inputs.train, start)
    early, late = context.pick(50.0, 1.0), context.pick(150.0, 2.0)
    name, best, table = _best_method(context, early)
    context.say(f"SPORCO {name}, on to {late:.0f} s")
    best.run(late)
    marks = (early / 8, early / 4, early / 2, early, (early + late) / 2, late)
    rival = judge.valued(best.trajectory(name, marks), inputs.judged, f"SPORCO {name}")
    goals = best.trajectory(name, (early, late))
    levels = [(judge.objective(inputs.judged, f), judge.objective(inputs.train, f)) for f in goals.filters]
    authors = inputs.folder is not None and not context.quick
    target = min(min(rival.values), AUTHORS_LEVEL if authors else rival.values[-1])
    limit, passes = context.pick(30.0, 3.0), context.pick(60, 8)
    goal = {"limit": limit, "target": target, "training": min(trained for _, trained in levels)}
    mine = []
    for name, options in OURS.items():
        context.say(f"ours, {name}")
        model: pt.OnlineCSC | pt.BatchCSC
        if name == ONLINE:
            model, every = pt.OnlineCSC(n_epochs=passes, random_state=0), 5
        else:
            model, every = pt.BatchCSC(max_iter=passes, random_state=0), 2
        model.set_params(n_filters=len(start), filter_size=FILTER_SIZE, penalty=PENALTY, update__init=start, **options)
        mine.append(judge.descend(model, inputs.train, inputs.judged, name, every=every, **goal))

    race = Table(
        f"Batch learning on {inputs.name}: seconds to an objective, at most {threads()} threads",
        ["level", "objective", "rival s", *[f"ours s, {m.name}" for m in mine], "ratio, our best"],
        note=f"Each dictionary valued by one exact coder with the clocks stopped; a dash: not reached in {limit:.0f} s. "
        + CIRCULAR,
    )
    for seconds, (held_out, trained) in zip(goals.seconds, levels, strict=True):
        level = f"{rival.name}, {seconds:.0f} s"
        race.add(f"{level}: held out", held_out, *judge.times_to(held_out, seconds, mine))
        race.add(f"{level}: training", trained, *judge.times_to(trained, seconds, mine, trained=True))
    if authors:
        name = "the paper authors' program (another machine): held out"
        race.add(name, AUTHORS_LEVEL, *judge.times_to(AUTHORS_LEVEL, AUTHORS_SECONDS, mine))
    curves = chart("Batch learning", "seconds of learning", "held-out objective", judge.curves([rival], mine))
    return Findings([table, race], [curves], {"ours": OURS, "sporco": SPORCO, "sporco threads": used})


def _best_method(context: Context, seconds: float) -> tuple[str, SporcoBatch, Table]:
    """The best of SPORCO's batch methods after some seconds; the others are let go, since each holds gigabytes."""
    inputs = context.inputs
    table = Table(
        f"SPORCO's batch learners after {seconds:.0f} s", ["method", "iterations", "seconds", "held out", "training"]
    )
    best: tuple[float, str, SporcoBatch] | None = None
    for name, method in list(SPORCO.items())[: context.pick(len(SPORCO), 1)]:
        context.say(f"SPORCO {name}")
        learner = SporcoBatch(inputs.train, inputs.start(inputs.scale.n_filters), method)
        learner.run(seconds)
        spent, filters = learner.snapshots[-1]
        value, training = (judge.objective(images, filters) for images in (inputs.judged, inputs.train))
        table.add(name, len(learner.snapshots), spent, value, training)
        if best is None or value < best[0]:
            best = value, name, learner
    assert best is not None
    return best[1], best[2], table
