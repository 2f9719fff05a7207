"""Fig. 5: PSNR of unseen patches against the number of patches learned from, and what mini-batches save."""

from __future__ import annotations

from paper import rivals
from paper.judging import Judgement, Trajectory
from paper.lab import Lab, Outcome, speed_verdict
from paper.timing import first_at_most
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Cell, SideBySide, Table, Text, Verdict

TITLE = "Fig. 5: more patches, mini-batches"
STALLED = 0.25
"""dB that the under-complete dictionary may still gain over the last three quarters of the patches, to count as stalled."""
ORDER = 8.0
"""Times as fast that count as about one order of magnitude."""

Judged = dict[str, list[Judgement]]
"""Judgements of the filters along a trajectory, by its name."""


def run(lab: Lab) -> Outcome:
    """Judge what the learners had after 1, 2, 4, … steps, for two sizes of dictionary and two of mini-batch."""
    scale, size = lab.scale, lab.scale.batch_size
    few, many = lab.two_sizes()
    single = lab.learned(scale.n_overcomplete, batch_size=1, n_patches=scale.n_single)
    rival = lab.learned_by_rival()
    lab.say("judging on unseen patches")
    tested = lab.inputs.patches("test", scale.n_tested)
    paths = (rival, few, many, single)
    judged = {path.name: path.judged(tested) for path in paths}
    decibels = {name: [one.psnr for one in some] for name, some in judged.items()}
    growth = Chart(
        "Two sizes of dictionary",
        "patches seen",
        "PSNR (dB)",
        [
            Curve(f"K = {scale.n_filters}", few.seen, decibels[few.name], "c0"),
            Curve(f"K = {scale.n_overcomplete}", many.seen, decibels[many.name], "c2"),
            Curve(f"{rivals.tuned_name()}, K = {scale.n_filters}", rival.seen, decibels[rival.name], "c1", "dashed"),
        ],
        log_x=True,
        caption=f"Mini-batches of {size}; {rivals.rival_name()} takes one patch at a time.",
    )
    batches = Chart(
        f"Two sizes of mini-batch, K = {scale.n_overcomplete}",
        "seconds of learning",
        "PSNR (dB)",
        [
            Curve("η = 1", single.seconds, decibels[single.name], "c3"),
            Curve(f"η = {size}", many.seconds, decibels[many.name], "c2"),
        ],
        log_x=True,
        caption=f"One patch in a step for {scale.n_single} patches, {size} in a step for {scale.n_patches}.",
    )
    words = f"PSNR of {scale.n_tested} patches of other photographs for λ = 1, after 1, 2, 4, … steps and the last."
    verdicts = [_bottleneck(few, many, judged), batch_verdict(single, many, judged, size)]
    return Outcome(TITLE, verdicts, [Text(words), SideBySide([growth, batches]), _table(paths, judged)])


def _table(paths: tuple[Trajectory, ...], judged: Judged) -> Table:
    rows: list[list[Cell]] = []
    for path in paths:
        seen, seconds, last = path.seen[-1], path.seconds[-1], judged[path.name][-1]
        rows.append([path.name, seen, seconds, 1000 * seconds / seen, f"{last.psnr:.2f}", last.objective])
    return Table(["", "patches", "s", "ms per patch", "PSNR (dB)", "unseen objective"], rows, "At the end")


def _bottleneck(few: Trajectory, many: Trajectory, judged: Judged) -> Verdict:
    """Verdict that the small dictionary stops to gain while the large one ends higher."""
    early = next(i for i, seen in enumerate(few.seen) if seen >= few.seen[-1] / 4)
    before, last, larger = judged[few.name][early].psnr, judged[few.name][-1].psnr, judged[many.name][-1].psnr
    gain, ahead = last - before, larger - last
    return Verdict(
        "The under-complete dictionary stops to gain; the over-complete one ends considerably higher",
        "no progress beyond a number of images, and a considerable improvement by K = 400",
        f"{gain:+.2f} dB after the first quarter; the larger one ends {ahead:+.2f} dB higher",
        gain <= STALLED and ahead > STALLED,
        f"{few.name} has {before:.2f} dB after {few.seen[early]} patches and {last:.2f} after {few.seen[-1]}, "
        f"{many.name} {larger:.2f}; {STALLED} dB is the limit for both.",
    )


def batch_verdict(single: Trajectory, many: Trajectory, judged: Judged, batch_size: int) -> Verdict:
    """The ratio of times to the level that one patch at a time reached, as the paper reads its curves."""
    losses = [-one.psnr for one in judged[many.name]]
    level = judged[single.name][-1].psnr
    when = first_at_most(many.seconds, losses, -level)
    alone, together = (1000 * path.seconds[-1] / path.seen[-1] for path in (single, many))
    reached = (
        f"end at {-losses[-1]:.2f} dB after {many.seconds[-1]:.1f} s."
        if when is None
        else f"are there after {when:.1f} s; {ORDER:g} times counts as about ten."
    )
    return speed_verdict(
        f"Mini-batches of {batch_size} reach a level about ten times as fast as single images",
        "one order of magnitude (η = 20)",
        None if when is None else single.seconds[-1] / when,
        ORDER,
        f"single patches end at {level:.2f} dB after {single.seconds[-1]:.1f} s; mini-batches {reached} A patch takes "
        f"{alone:.0f} ms on its own and {together:.0f} ms in a mini-batch, which moves the filters once for {batch_size} "
        "patches.",
    )
