"""Tables of the inpainting benchmark: gains over the biharmonic fill by kind of damage and size, and every score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.fills import BASELINE, OURS, Score
from benchmarks.tables import Cell, Table

ALLOWED = -0.3
"""Decibels that no picture should be more than below the biharmonic fill."""


@dataclass(frozen=True)
class Row:
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

    def plain(self) -> dict[str, Any]:
        """The row as JSON can hold it."""
        return asdict(self)


def line(scores: dict[str, Score]) -> str:
    """All methods in one line."""
    parts = [f"{name} {score.psnr:.2f} dB {score.ssim:.3f} {score.seconds:.2f} s" for name, score in scores.items()]
    return "; ".join(parts)


def summaries(rows: list[Row]) -> list[Table]:
    """One table for each size: means by kind of damage, gain over the biharmonic fill, and its worst picture."""
    found = []
    for megapixels in sorted({row.megapixels for row in rows}):
        chosen = [row for row in rows if row.megapixels == megapixels]
        methods = list(chosen[0].scores)
        table = Table(
            f"{megapixels:g} megapixels: means over {len({row.picture for row in chosen})} pictures, missing pixels only",
            ["damage", *[f"{name} dB" for name in methods], *[f"{name} SSIM" for name in methods]]
            + ["gain dB", "worst dB", "worst picture", "share above", f"below {ALLOWED} dB", "our s", "biharmonic s"],
            note="Gain: ours above the biharmonic fill, mean and worst over the pictures.",
        )
        for kind in dict.fromkeys(row.kind for row in chosen):
            table.add(kind, *_means([row for row in chosen if row.kind == kind], methods))
        table.add("all", *_means(chosen, methods))
        found.append(table)
    return found


def _means(rows: list[Row], methods: Iterable[str]) -> list[Cell]:
    methods = list(methods)
    decibels = [f"{np.mean([row.scores[name].psnr for row in rows]):.2f}" for name in methods]
    likeness = [f"{np.mean([row.scores[name].ssim for row in rows]):.3f}" for name in methods]
    gains = {f"{row.picture} {row.kind}": row.gain for row in rows if row.gain is not None}
    compared: list[Cell] = [None] * 5
    if gains:
        values = np.array(list(gains.values()))
        worst = min(gains, key=gains.__getitem__)
        worst_name = worst if len({row.kind for row in rows}) > 1 else worst.split()[0]
        compared = [f"{values.mean():+.2f}", f"{values.min():+.2f}", worst_name]
        compared += [f"{np.mean(values > 0):.0%}", int(np.sum(values < ALLOWED))]
    times: list[Cell] = [
        f"{np.mean([row.scores[name].seconds for row in rows]):.2f}" if name in methods else None
        for name in (OURS, BASELINE)
    ]
    return [*decibels, *likeness, *compared, *times]


def whole(rows: list[Row]) -> Table:
    """PSNR of every picture, size, damage and method."""
    methods = list(rows[0].scores)
    table = Table("PSNR in dB on the missing pixels", ["picture", "MP", "damage", *methods, "gain"])
    for row in sorted(rows, key=lambda row: row.gain if row.gain is not None else 0.0):
        gain = None if row.gain is None else f"{row.gain:+.2f}"
        table.add(row.picture, row.megapixels, row.kind, *[f"{row.scores[name].psnr:.2f}" for name in methods], gain)
    return table
