"""Tables of the inpainting benchmark: gains over the biharmonic fill by kind of damage and size, and every score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.fills import BASELINE, OURS, Score
from benchmarks.tables import Table
from pointillist.plot.page import Cell

ALLOWED = -0.3
"""Decibels that no picture should be more than below the biharmonic fill."""


@dataclass(frozen=True)
class Mended:
    """Scores of all methods on one damaged photograph."""

    picture: str
    megapixels: float
    kind: str
    scores: dict[str, Score]

    @property
    def gain(self) -> float | None:
        """Decibels above the biharmonic fill; None if one of the two did not run."""
        if OURS not in self.scores or BASELINE not in self.scores:
            return None
        return self.scores[OURS].psnr - self.scores[BASELINE].psnr


def line(scores: dict[str, Score]) -> str:
    """All methods in one line."""
    parts = [f"{name} {score.psnr:.2f} dB {score.ssim:.3f} {score.seconds:.2f} s" for name, score in scores.items()]
    return "; ".join(parts)


def summaries(rows: list[Mended]) -> list[Table]:
    """Two tables for each size: the methods' means by kind of damage, and our gains over the biharmonic fill."""
    found = []
    for megapixels in sorted({row.megapixels for row in rows}):
        chosen = [row for row in rows if row.megapixels == megapixels]
        title = f"{megapixels:g} megapixels, {len({row.picture for row in chosen})} pictures"
        found += [_means(title, chosen), _gains(title, chosen)]
    return found


def _by_kind(rows: list[Mended]) -> dict[str, list[Mended]]:
    kinds = {kind: [row for row in rows if row.kind == kind] for kind in dict.fromkeys(row.kind for row in rows)}
    return {**kinds, "all": rows}


def _means(title: str, rows: list[Mended]) -> Table:
    """Mean PSNR, SSIM and seconds of every method."""
    methods = _common(rows)
    titles = [f"{name} {unit}" for unit in ("dB", "SSIM", "s") for name in methods]
    table = Table(f"{title}: means on the missing pixels", ["damage", *titles])
    for kind, chosen in _by_kind(rows).items():
        cells = [
            f"{np.mean([getattr(row.scores[name], field) for row in chosen]):{form}}"
            for field, form in (("psnr", ".2f"), ("ssim", ".3f"), ("seconds", ".2f"))
            for name in methods
        ]
        table.add(kind, *cells)
    return table


def _gains(title: str, rows: list[Mended]) -> Table:
    """Our decibels above the biharmonic fill: mean, and over the pictures."""
    table = Table(
        f"{title}: ours above the biharmonic fill",
        ["damage", "mean dB", "median dB", "worst dB", "worst picture", "above", f"below {ALLOWED} dB", "SSIM"],
    )
    for kind, chosen in _by_kind(rows).items():
        pairs = {f"{row.picture}, {row.kind}": row.gain for row in chosen if row.gain is not None}
        if pairs:
            values = np.array(list(pairs.values()))
            worst = min(pairs, key=lambda name: pairs[name])
            numbers = [f"{value:+.2f}" for value in (values.mean(), np.median(values), values.min())]
            likeness = [row.scores[OURS].ssim - row.scores[BASELINE].ssim for row in chosen if row.gain is not None]
            share: list[Cell] = [
                f"{np.mean(values > 0):.0%}",
                int(np.sum(values < ALLOWED)),
                f"{np.mean(likeness):+.3f}",
            ]
            table.add(kind, *numbers, worst, *share)
    return table


def _common(rows: list[Mended]) -> list[str]:
    """Methods that ran on every row."""
    return [name for name in rows[0].scores if all(name in row.scores for row in rows)]


def whole(rows: list[Mended]) -> Table:
    """PSNR of every picture, size, damage and method, the worst gains first."""
    methods = _common(rows)
    table = Table("PSNR in dB on the missing pixels", ["picture", "MP", "damage", *methods, "gain"])
    for row in sorted(rows, key=lambda row: row.gain or 0.0):
        gain = None if row.gain is None else f"{row.gain:+.2f}"
        table.add(row.picture, row.megapixels, row.kind, *[f"{row.scores[name].psnr:.2f}" for name in methods], gain)
    return table
