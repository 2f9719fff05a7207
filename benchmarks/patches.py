"""Online learning from many natural patches: ``python -m benchmarks.patches [--quick]``.

SPORCO's online learner sees one patch after the other, with the settings that were tuned by hand and with the best of a
search around them. How long do we take to dictionaries as good as its own after 20, 50, 100 and 200 patches? The patches
are contrast-normalised: crops of the shipped photographs and, where POINTILLIST_DATA names a folder that has them, those of
many natural photographs. What is learned is judged on patches of other photographs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from paper.inputs import Inputs, Scale
from paper.judging import Trajectory, drawn
from paper.rivals import TUNED, Steps, as_ours, as_sporco, choose_threads, online_learner

import pointillist as pt
from benchmarks import judge
from benchmarks.context import Context, parser
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.measure import threads
from benchmarks.tables import Findings, Table, chart

DATA = "natural patches, contrast-normalised"
LEVELS = (20, 50, 100, 200)
"""Patches after which SPORCO's dictionaries are what we race to."""
AROUND: dict[str, tuple[float, ...]] = {
    "iterations": (0.5, 2.0),
    "rho": (0.5, 2.0),
    "first": (0.5, 2.0),
    "delay": (0.5, 2.0),
}
"""What each setting of SPORCO is multiplied with in the search, one setting after the other, the better one kept."""
OURS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "γ = 6": {"update__forgetting": 6.0},
    "3 sweeps": {"update__n_sweeps": 3},
    "γ = 6, 3 sweeps, pairs": {"update__forgetting": 6.0, "update__n_sweeps": 3, "batch_size": 2},
}


@dataclass(frozen=True)
class Stream:
    """What is learned from, where learning starts, and what dictionaries are judged on."""

    name: str
    train: NDArray
    judged: NDArray
    start: NDArray

    @classmethod
    def of(cls, context: Context, folder: Path | None = None) -> Stream:
        """Patches of the size of the run, of the shipped photographs or from a folder."""
        side, n_filters = context.pick((100, 100), (32, 8))
        inputs = Inputs(Scale(n_filters=n_filters, side=side), folder)
        n_train, n_judged = context.pick((300, 16), (20, 2))
        name = "the shipped photographs" if folder is None else "many natural photographs"
        return cls(name, inputs.patches("train", n_train), inputs.patches("test", n_judged), inputs.start(n_filters))


def run(context: Context) -> Findings:
    """Race to SPORCO on the patches of every source that there is."""
    found = Findings(settings={"ours": OURS})
    for folder in dict.fromkeys([context.inputs.folder, None]):
        stream = Stream.of(context, folder)
        context.say(f"patches of {stream.name}")
        race(context, stream, found)
    return found


def race(context: Context, stream: Stream, found: Findings) -> None:
    """Tune SPORCO, let it learn, and race our learners to its levels."""
    levels = context.pick(LEVELS, (2, 5))
    used = choose_threads(stream.train[:1], stream.start)
    tuned, searched = search(context, stream, context.pick(50, 2))
    settings = {"SPORCO, tuned by hand": TUNED}
    if tuned != TUNED:
        settings["SPORCO, searched"] = tuned
    rivals = []
    for name, steps in settings.items():
        context.say(f"{name}: {words(steps)}")
        learned = learn(stream, steps, lambda spent, seen: seen >= max(levels), due=lambda seen: seen in levels)
        rivals.append(judge.valued(learned, stream.judged, name))
    target, limit = min(min(one.values) for one in rivals), context.pick(30.0, 3.0)
    mine = [_ours(context, stream, name, target, limit) for name in list(OURS)[: context.pick(len(OURS), 1)]]
    table = Table(
        f"Online learning from patches of {stream.name}: seconds to a held-out objective, at most {threads()} threads",
        [
            "SPORCO setting",
            "patches",
            "held out",
            "SPORCO s",
            *[f"ours s, {one.name}" for one in mine],
            "ratio, our best",
        ],
        note=f"{len(stream.start)} filters; objective of {len(stream.judged)} patches of other photographs for each "
        "dictionary, by one exact coder with all clocks stopped; "
        f"a dash: not reached in {limit:.0f} s. Both start from the same random filters and see the same patches.",
    )
    for rival in rivals:
        for seen, seconds, value in zip(levels, rival.seconds, rival.values, strict=True):
            table.add(rival.name, seen, value, *judge.times_to(value, seconds, mine))
    curves = judge.curves(rivals, mine)
    title = f"Learning from patches of {stream.name}"
    found.tables += [searched, table]
    found.charts.append(chart(title, "seconds of learning", "held-out objective", curves))
    sporco = {name: vars(steps) for name, steps in settings.items()}
    found.settings[stream.name] = {"sporco": sporco, "sporco threads": used}


def _ours(context: Context, stream: Stream, name: str, target: float, limit: float) -> judge.Descent:
    context.say(f"ours, {name}")
    model = pt.OnlineCSC(len(stream.start), FILTER_SIZE, PENALTY, random_state=0)
    model.set_params(**OURS[name], n_epochs=context.pick(4, 1), update__init=stream.start)
    every = max(1, context.pick(5, 2) // model.batch_size)
    goal = {"limit": limit, "target": target}
    return judge.descend(model, stream.train, stream.judged, name, every=every, **goal)


def search(context: Context, stream: Stream, patches: int) -> tuple[Steps, Table]:
    """The setting of SPORCO with the lowest objective after the time that the one tuned by hand takes for some patches."""
    first = learn(stream, TUNED, lambda spent, seen: seen >= patches)
    seconds = first.seconds[-1]
    table = Table(
        f"SPORCO's online learner on patches of {stream.name} after {seconds:.1f} s",
        ["setting", "patches", "held out"],
        note="Each setting is changed in turn, and the better one is kept. The first was tuned by hand on other images.",
    )
    best, value = TUNED, judge.valued(first, stream.judged, "").values[-1]
    table.add(words(best), first.seen[-1], value)
    for name, factors in list(AROUND.items())[: context.pick(len(AROUND), 1)]:
        base = best
        for factor in factors:
            changed = type(getattr(base, name))(factor * getattr(base, name))
            steps = replace(base, **{name: changed})
            context.say(f"SPORCO, {words(steps)}")
            learned = learn(stream, steps, lambda spent, seen: spent >= seconds)
            reached = judge.valued(learned, stream.judged, "").values[-1]
            table.add(words(steps), learned.seen[-1], reached)
            if reached < value:
                best, value = steps, reached
    return best, table


def learn(
    stream: Stream,
    steps: Steps,
    done: Callable[[float, int], bool],
    due: Callable[[int], bool] = lambda seen: False,
) -> Trajectory:
    """Let SPORCO learn until it is `done`, by its clock and the patches seen; filters are kept when due and at the end."""
    learner, trajectory, passes = online_learner(as_sporco(stream.start), steps), Trajectory("SPORCO"), 10
    for seen, i in enumerate(drawn(len(stream.train), passes), 1):
        learner.solve(stream.train[i])
        spent = learner.timer.elapsed("solve_wo_eval")
        finished = done(spent, seen)
        if finished or due(seen):
            trajectory.add(spent, seen, as_ours(learner.getdict()))
        if finished:
            break
    return trajectory


def words(steps: Steps) -> str:
    """A setting in words."""
    return f"{steps.iterations} iterations, ρ = {steps.rho:g}, η = {steps.first:g} / ({steps.delay:g} + t)"


def main() -> None:
    options = parser("benchmarks.patches", "Online learning from natural patches, beside SPORCO.")
    context = Context.of(options.parse_args())
    begin = time.perf_counter()
    found = run(context)
    context.record("patches", found, DATA, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
