"""More filters and more images: what 100, 400 and 1,000 filters gain as the images go by, and what mini-batches are worth.

The paper finds a bottleneck for 100 filters as the number of images grows and none for 400, and mini-batches of 20 ten times
faster than single images to the same level. Every curve is learned in a process of its own, keeps checkpoints and stores its
points, so that a suite that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper.judging import LARGE, TOL, judge
from paper.timing import first_at_most

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.measure import apart
from benchmarks.tables import Findings, Table, chart
from pointillist.data.sources import ArraySource
from pointillist.plot.page import peak_mb

BATCH_SIZE = 20
SPACING = 10 ** (1 / 3)
"""Curves are judged whenever so many times the images have been seen."""
FAR = 100_000
"""Patches that the time is extrapolated to."""


def run(context: Context) -> Findings:
    patches, tested = context.pick(1000, 60), context.pick(20, 2)
    few, many, most = (context.pick(n, n // 20) for n in (100, 400, 1000))
    wanted = [(few, BATCH_SIZE), (many, BATCH_SIZE), (most, BATCH_SIZE), (few, 1), (many, 1)]
    curves = {}
    for n_filters, batch_size in wanted:
        context.say(f"{n_filters} filters, {batch_size} patches a step")
        curves[n_filters, batch_size] = _curve(context, n_filters, batch_size, patches, tested)
    batched = {n_filters: curve for (n_filters, size), curve in curves.items() if size == BATCH_SIZE}
    found = Findings([_needs(batched, patches), _gains(curves, tested), _batches(curves, [few, many])])
    for measure, label in (("psnr", "held-out PSNR, dB"), ("objective", "held-out objective")):
        lines = {_label(key): _points(curve, "n_seen", measure) for key, curve in curves.items()}
        found.charts.append(chart("More filters, more images", "images seen", label, lines))
    lines = {_label(key): _points(curve, "seconds", "objective") for key, curve in curves.items()}
    title = "Mini-batches and single images"
    found.charts.append(chart(title, "seconds of learning", "held-out objective", lines))
    return found


def _curve(context: Context, n_filters: int, batch_size: int, patches: int, tested: int) -> dict[str, Any]:
    """Learn one curve in a fresh process, unless that was done before."""
    folder = context.folder / "growth"
    folder.mkdir(exist_ok=True)
    done = folder / f"{n_filters}-{batch_size}-{patches}-{tested}.json"
    if not done.exists():
        settings = {"n_filters": n_filters, "batch_size": batch_size, "patches": patches, "tested": tested}
        found = apart("benchmarks.growth:learn", **settings, quick=context.quick, stem=str(done.with_suffix("")))
        done.write_text(json.dumps(found))
    return json.loads(done.read_text())


def learn(n_filters: int, batch_size: int, patches: int, tested: int, quick: bool, stem: str) -> dict[str, Any]:
    """Learn in this process, with checkpoints beside `stem`, judging the filters on the way."""
    inputs = Inputs(quick=quick)
    train, test = inputs.patches("train", patches), inputs.patches("test", tested)
    points = Path(f"{stem}.points.jsonl")
    due = set(np.unique(np.round(2 * SPACING ** np.arange(20)).astype(int)).tolist()) | {patches}
    due = {min(-(-seen // batch_size) * batch_size, patches) for seen in due if seen <= patches}
    model = pt.OnlineCSC(n_filters, FILTER_SIZE, PENALTY, batch_size=batch_size, n_epochs=1, random_state=0)

    def follow(info: dict[str, Any]) -> bool:
        if info["n_seen"] in due:
            point = {key: info[key] for key in ("n_seen", "seconds", "iteration")}
            with points.open("a") as file:
                file.write(json.dumps({**point, **_judged(test, model.filters_)}) + "\n")
        return False

    checkpoints = pt.Checkpoints(f"{stem}.safetensors", every="120s")
    model.fit(ArraySource(train), callbacks=[follow], checkpoint=checkpoints, resume=True)
    times = np.diff([0.0, *[info["seconds"] for info in model.history_]])
    # A resumed run may have judged some steps twice.
    curve = {point["n_seen"]: point for point in map(json.loads, points.read_text().splitlines())}
    return {
        "curve": [curve[seen] for seen in sorted(curve)],
        "step_s": float(np.median(times[len(times) // 2 :])),
        "learning_peak_mb": peak_mb(),
    }


def _judged(test: NDArray, filters: NDArray) -> dict[str, float]:
    found = judge(test, filters)
    counts = {"nnz": found.nonzeros / len(test), "large": found.large / len(test)}
    return {"psnr": found.psnr, "objective": found.objective, **counts}


def _needs(batched: dict[int, dict[str, Any]], patches: int) -> Table:
    table = Table(
        f"What a step of {BATCH_SIZE} patches of 100×100 needs, {FILTER_SIZE}×{FILTER_SIZE} filters",
        ["filters", "peak MB", "step s", f"{FAR:,} patches, h"],
        note=f"Peak over {patches} patches, with judging and checkpoints; {FAR:,} patches by the second half's median step.",
    )
    for n_filters, curve in batched.items():
        far = curve["step_s"] * FAR / BATCH_SIZE / 3600
        table.add(n_filters, curve["learning_peak_mb"], curve["step_s"], far)
    return table


def _gains(curves: dict[tuple[int, int], dict[str, Any]], tested: int) -> Table:
    table = Table(
        "Held-out quality as the images go by",
        ["filters", "a step", "images", "s", "objective", "PSNR dB", "non-zeros a patch", f"of {LARGE:g} or more"],
        note=f"On {tested} patches of other photographs, λ = {PENALTY:g}, codes certified to {TOL:g}.",
    )
    for (n_filters, batch_size), curve in curves.items():
        for point in curve["curve"]:
            measures = [point["n_seen"], point["seconds"], point["objective"], f"{point['psnr']:.2f}"]
            table.add(n_filters, batch_size, *measures, point["nnz"], point["large"])
    return table


def _batches(curves: dict[tuple[int, int], dict[str, Any]], sizes: list[int]) -> Table:
    table = Table(
        f"Seconds to the same held-out objective, single patches against mini-batches of {BATCH_SIZE}",
        ["filters", "level", "singly s", "in batches s", "ratio"],
        note="Levels: what the worse of the two reaches at the end, and 2% and 5% above; nothing is interpolated.",
    )
    for n_filters in sizes:
        both = [_points(curves[n_filters, size], "seconds", "objective") for size in (1, BATCH_SIZE)]
        end = max(values[-1] for _, values in both)
        for above in (1.05, 1.02, 1.0):
            singly, batched = (first_at_most(times, values, above * end) for times, values in both)
            ratio = None if singly is None or batched is None else singly / batched
            table.add(n_filters, above * end, singly, batched, ratio)
    return table


def _label(key: tuple[int, int]) -> str:
    return f"{key[0]} filters, {key[1]} a step"


def _points(curve: dict[str, Any], x: str, y: str) -> tuple[list[float], list[float]]:
    return [float(point[x]) for point in curve["curve"]], [float(point[y]) for point in curve["curve"]]
