"""Run the experiments: ``python -m benchmarks --output bench-output [--quick] [--only encode,online]``."""

from __future__ import annotations

import argparse
import importlib
import json
import time
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from benchmarks import measure, plots, tables
from benchmarks.context import Context
from benchmarks.inputs import Inputs

LONG_EXPERIMENTS = ("memory", "growth")
"""Minutes to an hour each: only when they are named."""
EXPERIMENTS = ("encode", "online", "batch", "sampling", "overcomplete", "scaling", "sizes", "profile", "study")


def main() -> None:
    arguments = _arguments()
    console = Console(width=None if Console().is_terminal else 160)
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)  # SPORCO's dictionaries may stall the float32 certificate
    inputs = Inputs(quick=arguments.quick)
    context = Context(inputs, folder, lambda text: console.print(f"  [dim]{text}[/dim]"))
    record: dict[str, Any] = {"facts": measure.facts(), "quick": arguments.quick, "data": inputs.name}
    ours, theirs = (record["facts"]["versions"][name] for name in ("pointillist", "sporco"))
    console.print(
        f"pointillist {ours} beside SPORCO {theirs}, at most {measure.threads()} threads each, on {inputs.name}"
    )
    if not arguments.quick:
        compilation = record["compilation"] = measure.compile_seconds()
        console.print(
            f"first calls of a process: {compilation['cold']:.1f} s where the kernels must be compiled, "
            f"{compilation['cached']:.1f} s where they are cached; excluded from all that follows"
        )
    record["experiments"] = {}
    for name in arguments.only:
        console.rule(name)
        begin = time.perf_counter()
        report = importlib.import_module(f"benchmarks.{name}").run(context)
        for table in report.tables:
            tables.show(table, console)
        for figure in report.figures:
            plots.save(figure, folder)
        spent = time.perf_counter() - begin
        console.print(f"{name}: {spent:.0f} s")
        record["experiments"][name] = {**report.as_dict(), "seconds": spent}
        (folder / "results.json").write_text(json.dumps(measure.plain(record), indent=1, ensure_ascii=False))
    console.print(f"tables and curves in {folder / 'results.json'}, pictures beside it")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure pointillist beside SPORCO.")
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--quick", action="store_true", help="a smoke test of all experiments, under a minute")
    offered = ", ".join((*EXPERIMENTS, *LONG_EXPERIMENTS))
    parser.add_argument("--only", type=_names, default=list(EXPERIMENTS), help=f"comma-separated, of {offered}")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - {*EXPERIMENTS, *LONG_EXPERIMENTS}:
        raise argparse.ArgumentTypeError(f"no experiment {', '.join(sorted(unknown))}")
    return chosen


if __name__ == "__main__":
    main()
