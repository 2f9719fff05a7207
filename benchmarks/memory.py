"""Memory that does not grow: online learning from a thousand and from twenty thousand random crops, beside the plan.

Each run is the command ``pointillist learn`` on the shipped photographs in a process of its own, kernels loaded before.
Crops and filters are small so that the longer run takes minutes: what could grow with the number does not depend on size.
"""

from __future__ import annotations

import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from benchmarks.context import Context
from benchmarks.measure import apart
from benchmarks.tables import Findings, Table
from pointillist import load
from pointillist.cli.app import run as command

N_FILTERS, FILTER_SIZE, CROP_SIZE, BATCH_SIZE = 32, 7, 64, 20


def run(context: Context) -> Findings:
    counts = (context.pick(1000, 40), context.pick(20_000, 200))
    table = Table(
        f"Peak memory of learning {N_FILTERS} filters of {FILTER_SIZE}×{FILTER_SIZE} from random crops of "
        f"{CROP_SIZE}×{CROP_SIZE}",
        ["crops", "steps", "peak MB", "planned MB", "before MB", "learning s", "planned s"],
        note=f"pointillist learn --crops N --batch {BATCH_SIZE}, each in a fresh process; before: with the kernels loaded.",
    )
    peaks = []
    apart("benchmarks.memory:learn", crops=BATCH_SIZE)  # leaves compiled kernels on disk: compiling takes memory too
    for crops in counts:
        context.say(f"{crops} crops")
        done = apart("benchmarks.memory:learn", crops=crops)
        peaks.append(done["peak_mb"])
        planned = done["planned"] / 2**20
        table.add(crops, done["steps"], done["peak_mb"], planned, done["import_mb"], done["seconds"], done["planned_s"])
        if done["peak_mb"] > planned:
            context.say(f"{crops} crops took more than the plan said")
    growth = peaks[1] / peaks[0] - 1
    context.say(f"{counts[1] // counts[0]} times the crops: {growth:+.2%} of peak memory")
    return Findings([table], settings={"batch_size": BATCH_SIZE, "growth": growth})


def learn(crops: int) -> dict[str, Any]:
    """Learn in this process by the command itself."""
    with tempfile.TemporaryDirectory() as folder, as_file(files("pointillist.data") / "photographs") as photographs:
        model = Path(folder) / "filters.safetensors"
        words = ["learn", f"{photographs}/*.jpg", "-o", model, "--filters", N_FILTERS, "--size", FILTER_SIZE]
        words += ["--crops", crops, "--crop-size", CROP_SIZE, "--batch", BATCH_SIZE, "--epochs", 1, "--quiet"]
        words += ["--max-memory", "64G"]  # which is never reached, but makes a plan
        if command([str(word) for word in words]):
            raise RuntimeError("the command failed")
        learned = load(model)
    plan = learned.extra_["plan"]
    return {
        "planned": plan["memory"],
        "planned_s": plan["seconds"],
        "seconds": learned.history_[-1]["seconds"],
        "steps": learned.n_iter_,
    }
