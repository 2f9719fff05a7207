"""Fig. 2: online learning, one image at a time: objective and PSNR of unseen images over time."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.report.blocks import Block, Cell, Chart, Curve, Row, Table, Text, Verdict
from pointillist.reproduce import rivals
from pointillist.reproduce.inputs import PENALTY
from pointillist.reproduce.judging import Judgement, Path, first_at_most, follow
from pointillist.reproduce.lab import Lab, Outcome

TITLE = "Fig. 2: online learning"
# The paper's: a tenth of the codes, its ADMM, and an average over all images.
LEARNERS: dict[str, dict[str, Any]] = {
    "the paper's (SOCSC)": {"solver": "admm", "sampling": 0.1, "update": FilterUpdate(forgetting=1.0)},
    "our defaults": {"update": FilterUpdate()},
}
PAPER, OURS = LEARNERS
COMPARABLE_OBJECTIVE, COMPARABLE_PSNR = 0.03, 0.5
"""Relative difference of objectives and difference of PSNR (dB) that count as comparable."""


def run(lab: Lab) -> Outcome:
    """Learn online by every method and judge on unseen images along the way."""
    scale, inputs = lab.scale, lab.inputs
    start = inputs.start(scale.n_filters)
    every = max(1, scale.n_images // 5)
    paths = {}
    for name, steps in ((rivals.rival_name(), rivals.DEFAULT), (rivals.tuned_name(), rivals.TUNED)):
        lab.say(f"online, {name}")
        paths[name] = rivals.learn_online(
            inputs.train, start, steps, passes=scale.rival_passes, due=lambda step: step % every == 0
        )
    for name, settings in LEARNERS.items():
        lab.say(f"online, {name}")
        passes = scale.passes if name == OURS else scale.rival_passes
        model = OnlineCSC(scale.n_filters, scale.filter_size, PENALTY, random_state=0, **settings)
        model.set_params(update__init=start)
        clone(model).fit(inputs.train[:1])  # compiles
        paths[name] = follow(model, inputs.train, name, due=lambda step: step % every == 0, n_epochs=passes)
    lab.say("judging on unseen images")
    judged = {name: path.judged(inputs.judged) for name, path in paths.items()}
    return Outcome(TITLE, _verdicts(lab, paths, judged), _blocks(lab, paths, judged))


def _blocks(lab: Lab, paths: dict[str, Path], judged: dict[str, list[Judgement]]) -> list[Block]:
    colours = {name: f"c{i}" for i, name in zip((1, 3, 2, 0), paths, strict=True)}
    styles = dict.fromkeys(paths, "line") | {rivals.rival_name(): "dashed", rivals.tuned_name(): "dashed"}
    charts = [
        Chart(
            title,
            "seconds of learning",
            label,
            [
                Curve(name, path.seconds, [getattr(one, value) for one in judged[name]], colours[name], styles[name])
                for name, path in paths.items()
            ],
            log_x=True,
        )
        for title, label, value in (
            ("Objective of unseen images", "objective", "objective"),
            ("PSNR of unseen images", "PSNR (dB)", "psnr"),
        )
    ]
    one_pass = {name: _after_one_pass(lab, path) for name, path in paths.items()}
    rows: list[list[Cell]] = [
        [
            name,
            paths[name].seconds[at],
            judged[name][at].objective,
            f"{judged[name][at].psnr:.2f}",
            paths[name].seconds[-1],
            judged[name][-1].objective,
            f"{judged[name][-1].psnr:.2f}",
        ]
        for name, at in one_pass.items()
    ]
    columns = ["", "one pass: s", "objective", "PSNR (dB)", "all passes: s", "objective", "PSNR (dB)"]
    words = (
        f"Each step draws one of {lab.scale.n_images} images. Filters are judged on {lab.scale.n_judged} images of another "
        f"set by one exact coder, with the clocks stopped. {rivals.online_note()}"
    )
    return [Text(words), Row(charts), Table(columns, rows, "After one pass, and at the end")]


def _after_one_pass(lab: Lab, path: Path) -> int:
    return next(i for i, seen in enumerate(path.seen) if seen >= lab.scale.n_images)


def _verdicts(lab: Lab, paths: dict[str, Path], judged: dict[str, list[Judgement]]) -> list[Verdict]:
    rival = rivals.rival_name()
    at = {name: _after_one_pass(lab, path) for name, path in paths.items()}
    spent = {name: path.seconds[at[name]] for name, path in paths.items()}
    ratio = spent[rival] / spent[PAPER]
    levels = [
        _level(name, spent[name], judged[name][at[name]].objective, paths[OURS], judged[OURS])
        for name in (rival, rivals.tuned_name())
    ]
    last = {name: values[-1] for name, values in judged.items()}
    apart = {name: last[name].objective / last[rival].objective - 1 for name in LEARNERS}
    louder = {name: last[name].psnr - last[rival].psnr for name in LEARNERS}
    return [
        Verdict(
            "One pass over the images is at least six times as fast as online learning in the frequency domain "
            "(the paper's method)",
            "6 times (70 s against 440 s)",
            f"{ratio:.1f} times",
            ratio >= 6,
            f"one pass takes {spent[PAPER]:.2f} s, {rival} {spent[rival]:.2f} s.",
        ),
        *levels,
        Verdict(
            "Both end at similar objectives and PSNR",
            "similar",
            ", ".join(f"{name}: {100 * apart[name]:+.1f} %, {louder[name]:+.2f} dB" for name in LEARNERS),
            all(apart[name] <= COMPARABLE_OBJECTIVE and louder[name] >= -COMPARABLE_PSNR for name in LEARNERS),
            f"{rival} ends at {last[rival].objective:,.0f} and {last[rival].psnr:.2f} dB; at most "
            f"{100 * COMPARABLE_OBJECTIVE:.0f} % more objective and {COMPARABLE_PSNR} dB less count as similar.",
        ),
    ]


def _level(rival: str, spent: float, level: float, ours: Path, judged: list[Judgement]) -> Verdict:
    """How much sooner our defaults have the quality that a rival has after one pass."""
    when = first_at_most(ours.seconds, [one.objective for one in judged], level)
    faster = None if when is None else spent / when
    return Verdict(
        f"The quality after one pass of {rival} is reached at least six times as fast (our defaults)",
        "6 times",
        "not reached" if faster is None else f"{faster:.1f} times",
        faster is not None and faster >= 6,
        f"{rival} has an objective of {level:,.0f} on unseen images after {spent:.2f} s; our defaults "
        + (f"end at {judged[-1].objective:,.0f}." if when is None else f"are there after {when:.2f} s."),
    )
