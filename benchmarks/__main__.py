"""Run the experiments: ``python -m benchmarks --output bench-output [--quick] [--only encode,online]``."""

from __future__ import annotations

import argparse
import importlib
import time
import warnings

from paper.rivals import rival_name
from sklearn.exceptions import ConvergenceWarning

from benchmarks import measure
from benchmarks.context import Context, parser
from benchmarks.tables import Findings
from pointillist.plot.page import Page, Section, write_page

LONG_EXPERIMENTS = ("memory", "growth", "map", "certificate", "patches", "sampling")
"""Minutes to an hour each: only when they are named."""
EXPERIMENTS = ("encode", "online", "batch", "overcomplete", "scaling", "sizes", "profile", "study")


def main() -> None:
    options = parser("benchmarks", "Measure pointillist beside SPORCO.", quick="all experiments in about a minute")
    offered = ", ".join((*EXPERIMENTS, *LONG_EXPERIMENTS))
    options.add_argument("--only", type=_names, default=list(EXPERIMENTS), help=f"comma-separated, of {offered}")
    arguments = options.parse_args()
    context = Context.of(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)  # SPORCO's dictionaries may stall the float32 certificate
    said = f"{rival_name()} and pointillist, at most {measure.threads()} threads each, on {context.inputs.name}"
    context.console.print(said)
    about = {"quick": context.quick, "data": context.inputs.name}
    if not context.quick:
        compilation = about["compilation"] = measure.compile_seconds()
        context.console.print(
            f"first calls of a process: {compilation['cold']:.1f} s where the kernels must be compiled, "
            f"{compilation['cached']:.1f} s where they are cached; excluded from all that follows"
        )
    found: dict[str, Findings] = {}
    spent: dict[str, float] = {}
    for name in arguments.only:
        context.console.rule(name)
        begin = time.perf_counter()
        found[name] = importlib.import_module(f"benchmarks.{name}").run(context)
        spent[name] = time.perf_counter() - begin
        for table in found[name].tables:
            context.show(table)
        context.console.print(f"{name}: {spent[name]:.0f} s")
        experiments = {one: {**vars(findings), "seconds": spent[one]} for one, findings in found.items()}
        context.write("results", [], **about, experiments=experiments)
        sections = [Section(one.capitalize(), [*some.tables, *some.charts]) for one, some in found.items()]
        write_page(Page("Benchmarks", f"{said}.", sections), context.folder / "report.html")
    context.console.print(f"tables and charts in {context.folder / 'report.html'}")


def _names(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - {*EXPERIMENTS, *LONG_EXPERIMENTS}:
        raise argparse.ArgumentTypeError(f"no experiment {', '.join(sorted(unknown))}")
    return chosen


if __name__ == "__main__":
    main()
