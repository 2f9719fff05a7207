"""An over-complete dictionary from a thousand natural patches: time, memory, and what four times the filters are worth."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from paper.judging import judge

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.measure import apart
from benchmarks.tables import Findings, Table

BATCH_SIZE = 20


def run(context: Context) -> Findings:
    inputs = context.inputs
    patches, tested = context.pick(1000, 20), context.pick(20, 2)
    table = Table(
        f"One online pass over {patches} natural patches",
        ["filters", "learning s", "s per patch", "peak MB", "held-out objective", "PSNR dB", "codes in use"],
        note=f"In a fresh process, batches of {BATCH_SIZE}; objective and PSNR (mean, peak = range) on {tested} patches of "
        f"other photographs, λ = {PENALTY:g}.",
    )
    test = inputs.patches("test", tested)
    for n_filters in (inputs.scale.n_overcomplete, inputs.scale.n_filters):
        context.say(f"{n_filters} filters")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "filters.npy"
            learning = {"n_filters": n_filters, "patches": patches, "quick": context.quick, "file": str(file)}
            done = apart("benchmarks.overcomplete:learn", **learning)
            filters = np.load(file)
        found = judge(test, filters)
        share = found.nonzeros / (n_filters * test.size)
        cost = [done["seconds"], done["seconds"] / patches, done["peak_mb"]]
        table.add(n_filters, *cost, found.objective, found.psnr, f"{share:.3%}")
    return Findings([table], settings={"batch_size": BATCH_SIZE, "patches": patches, "tested": tested})


def learn(n_filters: int, patches: int, quick: bool, file: str) -> dict[str, Any]:
    """Learn in this process and leave the filters in a file."""
    inputs = Inputs(quick=quick)
    images = inputs.patches("train", patches)
    start = inputs.start(n_filters)
    update = pt.FilterUpdate(init=start)
    model = pt.OnlineCSC(n_filters, FILTER_SIZE, PENALTY, batch_size=BATCH_SIZE, update=update, random_state=0)
    model.fit(images[:1])
    model.fit(images)
    np.save(file, model.filters_)
    return {"seconds": model.history_[-1]["seconds"]}
