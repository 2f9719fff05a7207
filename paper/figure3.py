"""Fig. 3: non-zeros and PSNR of test pictures, for an under- and an over-complete dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.inputs import PENALTY
from paper.judging import Judgement, judge
from paper.lab import Lab, Outcome
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Cell, SideBySide, Table, Text, Verdict

TITLE = "Fig. 3: over-complete dictionaries"
FEWER, BETTER = 0.08, 1.0
"""The paper's claims: at least so much fewer non-zeros, and so many more dB."""
CONSENSUS = "100 filters of consensus learning (2017)"


@dataclass(frozen=True)
class Coded:
    """The test pictures coded with both dictionaries."""

    few: int  # filters of the smaller dictionary
    many: int
    under: Judgement  # of the smaller dictionary
    over: Judgement  # of the larger one at the same penalty
    matched: dict[str, tuple[float, Judgement]]  # by what was made equal: the larger one's penalty, and what came out
    published: dict[str, Judgement]  # dictionaries of others: do the claims depend on how good ours are?
    pixels: int  # of all pictures together


def run(lab: Lab) -> Outcome:
    """Code the test pictures with both dictionaries at one penalty, and at one number of non-zeros."""
    scale, pictures = lab.scale, lab.inputs.pictures
    few, many = (path.filters[-1] for path in lab.two_sizes())
    lab.say("coding the test pictures")
    under, over = judge(pictures, few), judge(pictures, many)
    banks = {"the paper's own 400 filters": lab.inputs.published, CONSENSUS: lab.inputs.consensus}
    published = {name: judge(pictures, bank) for name, bank in banks.items() if bank is not None}
    matched = match(pictures, many, under)
    pixels = sum(picture.size for picture in pictures)
    coded = Coded(scale.n_filters, scale.n_overcomplete, under, over, matched, published, pixels)
    words = (
        f"{scale.n_filters} and {scale.n_overcomplete} filters of {scale.filter_size}×{scale.filter_size}, learned online "
        f"from {scale.n_patches} natural patches, code {len(pictures)} test pictures with λ = 1. Codes of at least 0.1 "
        "count as non-zero, as in the paper."
    )
    return Outcome(TITLE, coding_verdicts(coded), [Text(words), SideBySide(_charts(coded)), _table(coded)])


def match(
    pictures: Sequence[NDArray], filters: NDArray, under: Judgement, **options: Any
) -> dict[str, tuple[float, Judgement]]:
    """Penalties, within about two per cent, and judgements of filters that do just as much as another dictionary does."""
    matched = {}
    for words, value in (("as many non-zeros", "large"), ("the same PSNR", "psnr")):
        low, high = PENALTY / 2, 4 * PENALTY
        for _ in range(6):
            middle = float(np.sqrt(low * high))
            found = judge(pictures, filters, middle, **options)
            low, high = (middle, high) if getattr(found, value) > getattr(under, value) else (low, middle)
        matched[words] = middle, found
    return matched


def _charts(coded: Coded) -> list[Chart]:
    numbers = list(range(1, len(coded.under.each_psnr) + 1))
    banks = ((f"K = {coded.few}", coded.under, "c5"), (f"K = {coded.many}", coded.over, "c0"))
    return [
        Chart(
            title,
            "picture",
            label,
            [Curve(name, numbers, getattr(one, value), colour, style) for name, one, colour in banks],
        )
        # Counts start at zero, decibels do not.
        for title, label, value, style in (
            ("Non-zeros of each picture", "codes of at least 0.1", "each_large", "bars"),
            ("PSNR of each picture", "PSNR (dB)", "each_psnr", "line"),
        )
    ]


def _table(coded: Coded) -> Table:
    few, many = coded.few, coded.many
    lines = [
        (f"{few} filters", PENALTY, coded.under, few),
        (f"{many} filters, the same λ", PENALTY, coded.over, many),
        *((f"{many} filters, {words}", price, one, many) for words, (price, one) in coded.matched.items()),
        *(
            (f"{name}, the same λ", PENALTY, one, few if name == CONSENSUS else many)
            for name, one in coded.published.items()
        ),
    ]
    rows: list[list[Cell]] = [
        [
            name,
            f"{price:.2f}",
            f"{one.psnr:.2f}",
            one.large,
            f"{100 * (one.large / coded.under.large - 1):+.1f} %",
            f"{100 * one.large / (count * coded.pixels):.3f} %",
        ]
        for name, price, one, count in lines
    ]
    columns = ["", "λ", "PSNR (dB)", "non-zeros", f"against {few} filters", "of all variables"]
    return Table(columns, rows, "All test pictures")


def coding_verdicts(coded: Coded) -> list[Verdict]:
    """Verdicts about the number of codes and the quality that they give."""
    few, many, under, over = coded.few, coded.many, coded.under, coded.over
    before, after = under.large, over.large
    fewer, gain = 1 - after / before, over.psnr - under.psnr
    share = before / (few * coded.pixels)
    theirs = "".join(f"; {name} use {one.large:,} and reach {one.psnr:.2f} dB" for name, one in coded.published.items())
    equal = 1 - coded.matched["the same PSNR"][1].large / before
    louder = coded.matched["as many non-zeros"][1].psnr - under.psnr
    better = np.sum(np.array(over.each_psnr) > np.array(under.each_psnr))
    return [
        Verdict(
            f"Codes are highly sparse: about 0.2 % of all variables are non-zero with {few} filters",
            "0.2 % (K = 100)",
            f"{100 * share:.2f} %",
            share <= 0.003,
            f"{before:,} of {few * coded.pixels:,} codes are at least 0.1; up to 0.3 % counts as about 0.2 %.",
        ),
        Verdict(
            "The over-complete dictionary needs 8 to 10 % fewer non-zeros",
            "8 to 10 % fewer",
            f"{100 * fewer:.1f} % fewer" if fewer >= 0 else f"{-100 * fewer:.1f} % more",
            fewer >= FEWER,
            f"at the same λ, {many} filters use {after:,} codes, {few} filters {before:,}; at the same PSNR they use "
            f"{100 * abs(equal):.1f} % {'fewer' if equal >= 0 else 'more'}{theirs}.",
        ),
        Verdict(
            "The over-complete dictionary reconstructs better, by over 1 dB on average",
            "over 1 dB",
            f"{gain:+.2f} dB at the same λ, {louder:+.2f} dB with as many non-zeros",
            gain >= BETTER,
            f"PSNR rises from {under.psnr:.2f} to {over.psnr:.2f} dB, and rises for {better} of {len(under.each_psnr)} "
            f"pictures{theirs}.",
        ),
    ]
