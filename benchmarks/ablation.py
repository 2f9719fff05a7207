"""What each trick of the default solver is worth: ``python -m benchmarks.ablation [--quick] [--constants]``.

Each trick is switched off by the field of `Tuning`, or the argument, that rules it. Processor time of one thread until a gap
of 1e-3 is certified, over that with everything on; the shortest of several runs in turns.

``--constants`` halves and doubles all other numbers.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import pointillist as pt
from benchmarks import beside
from benchmarks.context import Context, parser
from benchmarks.tables import Findings, Table

MODULES = ("coordinate_descent", "scanning", "sweeping", "fourier_scan", "one_dimensional")
TRICKS: dict[str, dict[str, Any]] = {
    "projected dual points": {"coordinate_descent.hopeful": 0.0},
    "near violators between scans": {"scanning.near_products": 2**62},
    "raised penalties at first": {"coordinate_descent.raised": math.inf},
    "extrapolated sweeps": {"extra": 0},
    "residual recorded, not compared": {"sweeping.compared": math.inf},
    "two places in turns": {"sweeping.runs_in_turns": 0},
    "scans by transforms": {"fourier_scan.cost": math.inf},
    "cap on new codes": {"coordinate_descent.new_codes": math.inf},
    "scans of some positions": {"scanning.scattered": 0.0},
    "projected dual points in one dimension": {"one_dimensional.hopeful": 0.0},
    "correlations that are followed": {"one_dimensional.correlations": 0},
    "descents that go further in late rounds": {"coordinate_descent.settled_rounds": 2**30},
}
"""Fields, by module, or arguments of `CoordinateDescent` that switch a trick off."""
Change = dict[str, Any]


def problems(quick: bool) -> dict[str, tuple[Any, Any, float]]:
    """Signals, filters and penalty by name: the axes along which tricks differ."""
    rng, natural = np.random.default_rng(0), pt.load_filters("natural-100")
    images = beside.photographs(100, 3)
    line = rng.standard_normal((10, 128)) * np.hanning(128)
    events = np.where(rng.random((10, 20_000)) < 1e-3, rng.uniform(1, 2, (10, 20_000)), 0)
    recording = sum(np.convolve(one, shape, "same") for one, shape in zip(events, line, strict=True))
    recording = (recording + rng.standard_normal(20_000))[None].astype(np.float32)
    found = {
        "λ = 1": (images, natural, 1.0),
        "λ = 0.3": (images, natural, 0.3),
        "λ = 0.1": (images[:2], natural, 0.1),
        "λ = 0.03": (images[:1], natural, 0.03),
        "5×5": (images, beside.drawn(rng, 32, 5, 5), 0.3),
        "21×21": (images[:2], beside.drawn(rng, 32, 21, 21), 0.3),
        "51×51": (images[:1], beside.drawn(rng, 32, 51, 51), 0.3),
        "recording": (recording, (line / np.linalg.norm(line, axis=1, keepdims=True)).astype(np.float32), 2.0),
        "volume": (rng.standard_normal((1, 30, 30, 30)).astype(np.float32), beside.drawn(rng, 20, 5, 5, 5), 2.0),
    }
    return {name: found[name] for name in ("λ = 1", "5×5")} if quick else found


@contextmanager
def changed(change: Change) -> Iterator[dict[str, Any]]:
    """The package with some fields of `Tuning` changed; yields arguments for `CoordinateDescent`."""
    modules = {
        key: importlib.import_module(f"pointillist.solvers.{key.partition('.')[0]}") for key in change if "." in key
    }
    before = {module: module.TUNING for module in modules.values()}
    try:
        for key, module in modules.items():
            module.TUNING = dataclasses.replace(module.TUNING, **{key.partition(".")[2]: change[key]})
        yield {key: value for key, value in change.items() if "." not in key}
    finally:
        for module, tuning in before.items():
            module.TUNING = tuning


def seconds(problem: tuple[Any, Any, float], change: Change) -> float:
    """Processor time of a solve on one thread."""
    signals, filters, penalty = problem
    with changed(change) as options:
        solver = pt.solvers.CoordinateDescent(tol=1e-3, **options)
        begin = time.process_time()
        pt.encode(signals, filters, penalty, solver=solver, n_jobs=1)
        return time.process_time() - begin


def factors(problem: tuple[Any, Any, float], changes: dict[str, Change], repeats: int) -> dict[str, float]:
    """How many times as long each change makes a solve: the shortest of several runs in turns."""
    runs: dict[str, list[float]] = {name: [] for name in ["", *changes]}
    for _ in range(repeats + 1):  # the first compiles
        for name, times in runs.items():
            times.append(seconds(problem, changes.get(name, {})))
    shortest = {name: min(times[1:]) for name, times in runs.items()}
    return {name: shortest[name] / shortest[""] for name in changes}


def constants() -> dict[str, Change]:
    """Every number of the solver, halved and doubled."""
    found = {}
    for name in MODULES:
        tuning = importlib.import_module(f"pointillist.solvers.{name}").TUNING
        for one in dataclasses.fields(tuning):
            value = getattr(tuning, one.name)
            if isinstance(value, int | float):
                for word, factor in (("half", 0.5), ("double", 2)):
                    found[f"{name}.{one.name}, {word}"] = {f"{name}.{one.name}": type(value)(value * factor)}
    return found


def run(context: Context, *, all_constants: bool) -> Findings:
    """A table of tricks, and with `all_constants` one of all numbers."""
    posed, repeats = problems(context.quick), context.pick(5, 1)
    tables = []
    for title, changes in (
        ("Tricks, off", TRICKS),
        ("Numbers, halved and doubled", constants() if all_constants else {}),
    ):
        if not changes:
            continue
        table = Table(
            f"{title}: times as long as with everything on",
            ["what", *posed],
            note=(__doc__ or "").split("\n\n")[1].replace("\n", " "),
        )
        columns = {}
        for name, problem in posed.items():
            context.say(f"{title}: {name}")
            columns[name] = factors(problem, changes, repeats)
        for change in changes:
            table.add(change, *(round(columns[name][change], 2) for name in posed))
        tables.append(table)
    return Findings(tables, settings={"problems": list(posed), "repeats": repeats})


def main() -> None:
    options = parser("benchmarks.ablation", "What each trick of the default solver is worth.")
    options.add_argument("--constants", action="store_true", help="halve and double every number, too")
    arguments = options.parse_args()
    context = Context.of(arguments)
    begin = time.perf_counter()
    found = run(context, all_constants=arguments.constants)
    context.record("ablation", found, "shipped photographs and drawn filters", time.perf_counter() - begin)


if __name__ == "__main__":
    main()
