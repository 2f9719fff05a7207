"""Fig. 5: PSNR of unseen patches against the number of patches learned from, and what mini-batches save."""

from __future__ import annotations

from pointillist.report.blocks import Cell, Chart, Curve, Row, Table, Text, Verdict
from pointillist.reproduce import rivals
from pointillist.reproduce.judging import Judgement, Path, first_at_most
from pointillist.reproduce.lab import Lab, Outcome

TITLE = "Fig. 5: more patches, mini-batches"
STALLED = 0.25
"""dB that the under-complete dictionary may still gain over the last three quarters of the patches, to count as stalled."""
ORDER = 8.0
"""Times as fast that count as about one order of magnitude."""


def run(lab: Lab) -> Outcome:
    """Judge what the learners had after 1, 2, 4, … steps, for two sizes of dictionary and two of mini-batch."""
    scale = lab.scale
    few, many = scale.n_filters, scale.n_overcomplete
    large = {count: lab.learned(count, batch_size=scale.batch_size, n_patches=scale.n_patches) for count in (few, many)}
    single = lab.learned(many, batch_size=1, n_patches=scale.n_single)
    rival = lab.learned_by_rival()
    lab.say("judging on unseen patches")
    tested = lab.inputs.patches("test", scale.n_tested)
    judged = {path.name: path.judged(tested) for path in (rival, *large.values(), single)}
    growth = Chart(
        "Two sizes of dictionary",
        "patches seen",
        "PSNR (dB)",
        [
            _curve(large[few], judged, "seen", f"K = {few}", "c0"),
            _curve(large[many], judged, "seen", f"K = {many}", "c2"),
            _curve(rival, judged, "seen", f"{rivals.tuned_name()}, K = {few}", "c1", "dashed"),
        ],
        log_x=True,
        caption=f"Mini-batches of {scale.batch_size}; {rivals.rival_name()} takes one patch at a time.",
    )
    batches = Chart(
        f"Two sizes of mini-batch, K = {many}",
        "seconds of learning",
        "PSNR (dB)",
        [
            _curve(single, judged, "seconds", "η = 1", "c3"),
            _curve(large[many], judged, "seconds", f"η = {scale.batch_size}", "c2"),
        ],
        log_x=True,
        caption=f"One patch in a step for {scale.n_single} patches, {scale.batch_size} in a step for {scale.n_patches}.",
    )
    words = f"PSNR of {scale.n_tested} patches of other photographs for λ = 1, after 1, 2, 4, … steps and the last."
    verdicts = [_bottleneck(large[few], large[many], judged), _faster(single, large[many], judged, scale.batch_size)]
    paths = (rival, *large.values(), single)
    return Outcome(TITLE, verdicts, [Text(words), Row([growth, batches]), _table(paths, judged)])


def _curve(
    path: Path, judged: dict[str, list[Judgement]], clock: str, label: str, colour: str, style: str = "line"
) -> Curve:
    return Curve(label, getattr(path, clock), [one.psnr for one in judged[path.name]], colour, style)


def _table(paths: tuple[Path, ...], judged: dict[str, list[Judgement]]) -> Table:
    rows: list[list[Cell]] = [
        [
            path.name,
            path.seen[-1],
            path.seconds[-1],
            1000 * path.seconds[-1] / path.seen[-1],
            f"{judged[path.name][-1].psnr:.2f}",
            judged[path.name][-1].objective,
        ]
        for path in paths
    ]
    return Table(["", "patches", "s", "ms per patch", "PSNR (dB)", "unseen objective"], rows, "At the end")


def _bottleneck(few: Path, many: Path, judged: dict[str, list[Judgement]]) -> Verdict:
    """Whether the small dictionary stops to gain while the large one ends higher."""
    early = next(i for i, seen in enumerate(few.seen) if seen >= few.seen[-1] / 4)
    gain = judged[few.name][-1].psnr - judged[few.name][early].psnr
    ahead = judged[many.name][-1].psnr - judged[few.name][-1].psnr
    return Verdict(
        "The under-complete dictionary stops to gain; the over-complete one ends considerably higher",
        "no progress beyond a number of images, and a considerable improvement by K = 400",
        f"{gain:+.2f} dB after the first quarter; the larger one ends {ahead:+.2f} dB higher",
        gain <= STALLED and ahead > STALLED,
        f"{few.name} has {judged[few.name][early].psnr:.2f} dB after {few.seen[early]} patches and "
        f"{judged[few.name][-1].psnr:.2f} after {few.seen[-1]}, {many.name} {judged[many.name][-1].psnr:.2f}; "
        f"{STALLED} dB is the limit for both.",
    )


def _faster(single: Path, many: Path, judged: dict[str, list[Judgement]], batch_size: int) -> Verdict:
    """The best ratio of times to a level that one patch at a time reached, as the paper reads its curves."""
    losses = [-one.psnr for one in judged[many.name]]
    level = judged[single.name][-1].psnr
    when = first_at_most(many.seconds, losses, -level)
    ratio = None if when is None else single.seconds[-1] / when
    alone, together = (1000 * path.seconds[-1] / path.seen[-1] for path in (single, many))
    return Verdict(
        f"Mini-batches of {batch_size} reach a level about ten times as fast as single images",
        "one order of magnitude (η = 20)",
        "not reached" if ratio is None else f"{ratio:.1f} times",
        ratio is not None and ratio >= ORDER,
        f"single patches end at {level:.2f} dB after {single.seconds[-1]:.1f} s; mini-batches "
        + (
            f"end at {-losses[-1]:.2f} dB after {many.seconds[-1]:.1f} s."
            if when is None
            else f"are there after {when:.1f} s; {ORDER:g} times counts as about ten."
        )
        + f" A patch takes {alone:.0f} ms on its own and {together:.0f} ms in a mini-batch, which moves the filters "
        f"once for {batch_size} patches.",
    )
