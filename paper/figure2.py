"""Fig. 2: online learning, one image at a time: objective and PSNR of unseen images over time."""

from __future__ import annotations

from typing import Any

from paper import rivals
from paper.inputs import PENALTY
from paper.judging import Judgement, Trajectory, follow
from paper.lab import Lab, Outcome, speed_verdict
from paper.timing import first_at_most
from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Block, Cell, SideBySide, Table, Text, Verdict
from pointillist.sampling import Draws

TITLE = "Fig. 2: online learning"
# The paper's: a tenth of the codes, its ADMM, and an average over all images.
LEARNERS: dict[str, dict[str, Any]] = {
    "the paper's (SOCSC)": {"solver": "admm", "sampling": Draws(0.1, "codes"), "update": FilterUpdate(forgetting=1.0)},
    "our defaults": {"update": FilterUpdate()},
}
PAPER, OURS = LEARNERS
COMPARABLE_OBJECTIVE, COMPARABLE_PSNR = 0.03, 0.5
"""Relative difference of objectives and difference of PSNR (dB) that count as comparable."""

Learned = dict[str, Trajectory]
Judged = dict[str, list[Judgement]]


def run(lab: Lab) -> Outcome:
    """Learn online by every method and judge on unseen images along the way."""
    scale, inputs = lab.scale, lab.inputs
    start = inputs.start(scale.n_filters)
    every = max(1, scale.n_images // 5)

    def due(step: int) -> bool:
        return step % every == 0

    learned: Learned = {}
    for name, steps in ((rivals.rival_name(), rivals.DEFAULT), (rivals.tuned_name(), rivals.TUNED)):
        lab.say(f"online, {name}")
        learned[name] = rivals.learn_online(inputs.train, start, steps, passes=scale.rival_passes, due=due)
    for name, settings in LEARNERS.items():
        lab.say(f"online, {name}")
        passes = scale.passes if name == OURS else scale.rival_passes
        model = OnlineCSC(scale.n_filters, scale.filter_size, PENALTY, n_epochs=passes, random_state=0, **settings)
        model.set_params(update__init=start)
        learned[name] = follow(model, inputs.train, name, due=due)
    lab.say("judging on unseen images")
    judged = {name: path.judged(inputs.judged) for name, path in learned.items()}
    one_pass = {
        name: next(i for i, seen in enumerate(path.seen) if seen >= scale.n_images) for name, path in learned.items()
    }
    return Outcome(TITLE, _verdicts(learned, judged, one_pass), _blocks(lab, learned, judged, one_pass))


def _blocks(lab: Lab, learned: Learned, judged: Judged, one_pass: dict[str, int]) -> list[Block]:
    colours = {name: f"c{i}" for i, name in zip((1, 3, 2, 0), learned, strict=True)}
    styles = {name: "line" if name in LEARNERS else "dashed" for name in learned}
    charts = [
        Chart(
            title,
            "seconds of learning",
            label,
            [
                Curve(name, path.seconds, [getattr(one, value) for one in judged[name]], colours[name], styles[name])
                for name, path in learned.items()
            ],
            log_x=True,
        )
        for title, label, value in (
            ("Objective of unseen images", "objective", "objective"),
            ("PSNR of unseen images", "PSNR (dB)", "psnr"),
        )
    ]
    rows: list[list[Cell]] = []
    for name, path in learned.items():
        cells: list[Cell] = [name]
        for at in (one_pass[name], -1):
            cells += [path.seconds[at], judged[name][at].objective, f"{judged[name][at].psnr:.2f}"]
        rows.append(cells)
    columns = ["", "one pass: s", "objective", "PSNR (dB)", "all passes: s", "objective", "PSNR (dB)"]
    words = (
        f"Each step draws one of {lab.scale.n_images} images. Filters are judged on {lab.scale.n_judged} images of another "
        f"set by one exact coder, with the clocks stopped. {rivals.online_note()}"
    )
    return [Text(words), SideBySide(charts), Table(columns, rows, "After one pass, and at the end")]


def _verdicts(learned: Learned, judged: Judged, one_pass: dict[str, int]) -> list[Verdict]:
    rival, tuned = rivals.rival_name(), rivals.tuned_name()
    spent = {name: path.seconds[one_pass[name]] for name, path in learned.items()}
    last = {name: values[-1] for name, values in judged.items()}
    apart = {name: last[name].objective / last[rival].objective - 1 for name in LEARNERS}
    louder = {name: last[name].psnr - last[rival].psnr for name in LEARNERS}
    return [
        speed_verdict(
            "One pass over the images is at least six times as fast as online learning in the frequency domain "
            "(the paper's method)",
            "6 times (70 s against 440 s)",
            spent[rival] / spent[PAPER],
            6,
            f"one pass takes {spent[PAPER]:.2f} s, {rival} {spent[rival]:.2f} s.",
        ),
        *(
            level_verdict(name, spent[name], judged[name][one_pass[name]].objective, learned[OURS], judged[OURS])
            for name in (rival, tuned)
        ),
        Verdict(
            "Both end at similar objectives and PSNR",
            "similar",
            ", ".join(f"{name}: {100 * apart[name]:+.1f} %, {louder[name]:+.2f} dB" for name in LEARNERS),
            all(apart[name] <= COMPARABLE_OBJECTIVE and louder[name] >= -COMPARABLE_PSNR for name in LEARNERS),
            f"{rival} ends at {last[rival].objective:,.0f} and {last[rival].psnr:.2f} dB; at most "
            f"{100 * COMPARABLE_OBJECTIVE:.0f} % more objective and {COMPARABLE_PSNR} dB less count as similar.",
        ),
    ]


def level_verdict(rival: str, spent: float, level: float, ours: Trajectory, judged: list[Judgement]) -> Verdict:
    """Verdict on the time in which our defaults have the quality that a rival has after one pass."""
    when = first_at_most(ours.seconds, [one.objective for one in judged], level)
    return speed_verdict(
        f"The quality after one pass of {rival} is reached at least six times as fast (our defaults)",
        "6 times",
        None if when is None else spent / when,
        6,
        f"{rival} has an objective of {level:,.0f} on unseen images after {spent:.2f} s; our defaults "
        + (f"end at {judged[-1].objective:,.0f}." if when is None else f"are there after {when:.2f} s."),
    )
