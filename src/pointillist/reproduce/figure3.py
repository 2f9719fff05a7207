"""Fig. 3: non-zeros and PSNR of test pictures, for an under- and an over-complete dictionary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pointillist.report.blocks import Block, Cell, Chart, Curve, Row, Table, Text, Verdict
from pointillist.reproduce.inputs import PENALTY
from pointillist.reproduce.judging import Judgement, judge
from pointillist.reproduce.lab import Lab, Outcome

TITLE = "Fig. 3: over-complete dictionaries"
FEWER, BETTER = 0.08, 1.0
"""The paper's claims: at least so much fewer non-zeros, and so many more dB."""

Matched = dict[str, tuple[float, Judgement]]
"""By what was made equal: the penalty that does so, and what came out."""
Published = dict[str, Judgement]
"""Dictionaries of others by name, for whoever asks whether the claims depend on how good ours are."""
CONSENSUS = "100 filters of consensus learning (2017)"


def run(lab: Lab) -> Outcome:
    """Code the test pictures with both dictionaries at one penalty, and at one number of non-zeros."""
    scale, pictures = lab.scale, lab.inputs.pictures
    few, many = (
        lab.learned(count, batch_size=scale.batch_size, n_patches=scale.n_patches).filters[-1]
        for count in (scale.n_filters, scale.n_overcomplete)
    )
    lab.say("coding the test pictures")
    under, over = judge(pictures, few), judge(pictures, many)
    wanted = sum(under.each_large)
    matched = {
        "as many non-zeros": _matched(pictures, many, lambda found: sum(found.each_large) > wanted),
        "the same PSNR": _matched(pictures, many, lambda found: found.psnr > under.psnr),
    }
    banks = {"the paper's own 400 filters": lab.inputs.published, CONSENSUS: lab.inputs.consensus}
    published = {name: judge(pictures, bank) for name, bank in banks.items() if bank is not None}
    pixels = sum(picture.size for picture in pictures)
    words = (
        f"{scale.n_filters} and {scale.n_overcomplete} filters of {scale.filter_size}×{scale.filter_size}, learned online "
        f"from {scale.n_patches} natural patches, code {len(pictures)} test pictures with λ = 1. Codes of at least 0.1 "
        "count as non-zero, as in the paper."
    )
    blocks: list[Block] = [
        Text(words),
        Row(_charts(lab, under, over)),
        _table(lab, under, over, matched, published, pixels),
    ]
    return Outcome(TITLE, _verdicts(lab, under, over, matched, published, pixels), blocks)


def _matched(pictures: list[NDArray], filters: NDArray, spare: Callable[[Judgement], bool]) -> tuple[float, Judgement]:
    """The penalty that may just be so high that nothing is left to spare, within about two per cent, and its judgement."""
    low, high = PENALTY / 2, 4 * PENALTY
    for _ in range(6):
        middle = float(np.sqrt(low * high))
        found = judge(pictures, filters, middle)
        low, high = (middle, high) if spare(found) else (low, middle)
    return middle, found


def _charts(lab: Lab, under: Judgement, over: Judgement) -> list[Chart]:
    numbers = list(range(1, len(under.each_psnr) + 1))
    names = [f"K = {lab.scale.n_filters}", f"K = {lab.scale.n_overcomplete}"]
    return [
        Chart(
            title,
            "picture",
            label,
            [
                Curve(name, numbers, getattr(one, value), colour, style)
                for name, one, colour in zip(names, (under, over), ("c5", "c0"), strict=True)
            ],
        )
        # Counts start at zero, decibels do not.
        for title, label, value, style in (
            ("Non-zeros of each picture", "codes of at least 0.1", "each_large", "bars"),
            ("PSNR of each picture", "PSNR (dB)", "each_psnr", "line"),
        )
    ]


def _table(lab: Lab, under: Judgement, over: Judgement, matched: Matched, published: Published, pixels: int) -> Table:
    few, many = lab.scale.n_filters, lab.scale.n_overcomplete
    lines = [(f"{few} filters", PENALTY, under, few), (f"{many} filters, the same λ", PENALTY, over, many)]
    lines += [(f"{many} filters, {words}", price, one, many) for words, (price, one) in matched.items()]
    lines += [
        (f"{name}, the same λ", PENALTY, one, few if name == CONSENSUS else many) for name, one in published.items()
    ]
    base = sum(under.each_large)
    rows: list[list[Cell]] = [
        [
            name,
            f"{price:.2f}",
            f"{one.psnr:.2f}",
            sum(one.each_large),
            f"{100 * (sum(one.each_large) / base - 1):+.1f} %",
            f"{100 * sum(one.each_large) / (count * pixels):.3f} %",
        ]
        for name, price, one, count in lines
    ]
    columns = ["", "λ", "PSNR (dB)", "non-zeros", f"against {few} filters", "of all variables"]
    return Table(columns, rows, "All test pictures")


def _verdicts(
    lab: Lab, under: Judgement, over: Judgement, matched: Matched, published: Published, pixels: int
) -> list[Verdict]:
    few, many = lab.scale.n_filters, lab.scale.n_overcomplete
    before, after = sum(under.each_large), sum(over.each_large)
    fewer, gain = 1 - after / before, over.psnr - under.psnr
    share = before / (few * pixels)
    theirs = "".join(
        f"; {name} use {sum(one.each_large):,} and reach {one.psnr:.2f} dB" for name, one in published.items()
    )
    equal = 1 - sum(matched["the same PSNR"][1].each_large) / before
    louder = matched["as many non-zeros"][1].psnr - under.psnr
    better = np.sum(np.array(over.each_psnr) > np.array(under.each_psnr))
    return [
        Verdict(
            f"Codes are highly sparse: about 0.2 % of all variables are non-zero with {few} filters",
            "0.2 % (K = 100)",
            f"{100 * share:.2f} %",
            share <= 0.003,
            f"{before:,} of {few * pixels:,} codes are at least 0.1; up to 0.3 % counts as about 0.2 %.",
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
