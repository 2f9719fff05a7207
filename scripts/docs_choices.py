"""Measure the small tables of the page "Choose λ, p, K and filter size" and keep them in docs/measured/choices.json.

``python scripts/docs_choices.py`` takes a few minutes on two cores. It needs only the photographs that come with the
package.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "measured" / "choices.json"
SIZE, FILTERS, PENALTY, EPOCHS = 11, 64, 1.0, 6

TRAIN = [pt.contrast_normalise(photo) for photo in pt.photographs("train").values()]
TEST = [pt.contrast_normalise(photo) for photo in pt.photographs("test").values()]
PIXELS = sum(image.size for image in TEST)


def learn(
    n_filters: int = FILTERS, size: int = SIZE, epochs: int = EPOCHS, images: list[NDArray] = TRAIN, **others: Any
) -> tuple[pt.OnlineCSC, float]:
    """A model of the training photographs and the seconds it took."""
    model = pt.OnlineCSC(n_filters, size, PENALTY, n_epochs=epochs, random_state=0, **others)
    begin = time.perf_counter()
    model.fit(images)
    return model, time.perf_counter() - begin


def judged(model: pt.OnlineCSC, penalty: float = PENALTY) -> tuple[pt.Result, float, float]:
    """The unseen photographs coded: result, mean PSNR, seconds."""
    begin = time.perf_counter()
    result = pt.encode(TEST, model.filters_, penalty)
    seconds = time.perf_counter() - begin
    fits = pt.decode(result.codes, model.filters_)
    return result, float(np.mean([pt.psnr(a, b) for a, b in zip(TEST, fits, strict=True)])), seconds


def by_penalty() -> dict[str, Any]:
    model, _ = learn()
    top = float(np.max(pt.max_penalty(TEST, model.filters_)))
    rows = []
    for penalty in (0.1, 0.2, 0.5, 1.0, 2.0, 4.0):
        result, quality, seconds = judged(model, penalty)
        rows.append([f"{penalty:g}", f"{100 * penalty / top:.1f} %", result.codes.nnz / PIXELS, quality, seconds])
    return {
        "title": "λ on unseen photographs, 64 filters of 11×11",
        "columns": ["λ", "of λ_max", "codes for each pixel", "PSNR, dB", "s"],
        "rows": rows,
        "note": f"λ_max is {top:.1f} here. The filters were learned with λ = 1.",
    }


def by_sampling() -> dict[str, Any]:
    crops = [image[80:144, 80:144] for image in TRAIN]
    rows = []
    for solver, passes in (("cd", 10), ("admm", 1)):
        for sampling in (1.0, 0.5, 0.2, 0.1):
            model, seconds = learn(32, 9, passes, crops, sampling=sampling, solver=solver)
            result, _, _ = judged(model)
            rows.append([f"{sampling:g}", solver, passes, seconds, float(np.sum(result.objective))])
    return {
        "title": "p while learning 32 filters of 9×9 from crops of 64×64, judged on unseen photographs",
        "columns": ["p", "solver", "passes", "s to learn", "held-out objective"],
        "rows": rows,
        "note": "Lower objectives are better. One seed; a percent either way is chance.",
    }


def by_filters() -> dict[str, Any]:
    rows = []
    for n_filters in (16, 32, 64, 128, 256):
        model, seconds = learn(n_filters)
        result, quality, coding = judged(model)
        rows.append([n_filters, seconds, coding, float(np.sum(result.objective)), quality, result.codes.nnz / PIXELS])
    return {
        "title": "K, filters of 11×11",
        "columns": ["K", "s to learn", "s to code", "held-out objective", "PSNR, dB", "codes for each pixel"],
        "rows": rows,
        "note": "",
    }


def by_size() -> dict[str, Any]:
    rows = []
    for size in (5, 7, 9, 11, 15, 21):
        model, seconds = learn(FILTERS, size)
        result, quality, coding = judged(model)
        rows.append(
            [f"{size}×{size}", seconds, coding, float(np.sum(result.objective)), quality, result.codes.nnz / PIXELS]
        )
    return {
        "title": "Filter size, 64 filters",
        "columns": ["size", "s to learn", "s to code", "held-out objective", "PSNR, dB", "codes for each pixel"],
        "rows": rows,
        "note": "",
    }


def main() -> None:
    learn(8, SIZE, 1)  # compiles
    tables = {"penalty": by_penalty(), "sampling": by_sampling(), "filters": by_filters(), "size": by_size()}
    machine = {"processor": platform.machine(), "threads": os.cpu_count(), "version": pt.__version__}
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps({"machine": machine, "tables": tables}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
