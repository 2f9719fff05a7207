"""Run the experiments one after the other, keeping what is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from paper.inputs import FULL, QUICK, Inputs
from paper.lab import LEARNED, Lab, Outcome
from paper.record import Record, read_record, record_page
from paper.rivals import rival_words
from pointillist.plot.machine import PACKAGES, facts, installed
from pointillist.plot.page import write_page
from pointillist.storage import remove_abandoned

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "complexity")
RESULTS, REPORT = "results.json", "report.html"


def reproduce(
    figures: Sequence[str] = FIGURES,
    *,
    output: Path,
    data: Path | None = None,
    quick: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Record:
    """Repeat figures of the paper and write the report.

    Parameters
    ----------
    figures : sequence of {"fig1", "fig2", "fig3", "fig4", "fig5", "complexity"}
    output : path
        A folder, made if it is missing. It gets ``results.json`` and ``report.html`` after every figure, and filters that
        several figures share. Figures of an interrupted run with the same settings are not run again; those of a finished
        run stay in the report until they are.
    data : path, optional
        The folder with the paper's images; crops of the shipped photographs otherwise.
    quick : bool
        Everything on a small scale.
    say : callable
        Told what is being done.

    Returns
    -------
    Record
    """
    for name in figures:
        if name not in FIGURES:
            raise ValueError(f"figures must be among {', '.join(FIGURES)}, got {name!r}")
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: give a folder")
    inputs = Inputs(QUICK if quick else FULL, data)
    output.mkdir(parents=True, exist_ok=True)
    for folder in (output, output / LEARNED):
        remove_abandoned(folder)
    record = _begin(_about(inputs, quick), list(figures), output, say)
    lab = Lab(inputs, output, record.token, say)
    for name in list(record.pending):
        say(f"{name}:")
        begin = time.perf_counter()
        module = import_module(f"paper.{name.replace('fig', 'figure')}")
        outcome: Outcome = module.run(lab)
        record.figures[name] = replace(outcome, seconds=time.perf_counter() - begin)
        record.figures = {one: record.figures[one] for one in FIGURES if one in record.figures}
        record.pending.remove(name)
        record.write(output / RESULTS)
        write_page(record_page(record), output / REPORT)
    return record


def redraw(results: Path, output: Path) -> Record:
    """Draw the report of a results file again, without running anything."""
    record = read_record(results)
    output.mkdir(parents=True, exist_ok=True)
    write_page(record_page(record), output / REPORT)
    return record


def _about(inputs: Inputs, quick: bool) -> dict[str, Any]:
    def words(value: Any) -> str:
        return "/".join(f"{one:g}" for one in value) if isinstance(value, tuple) else f"{value:g}"

    return {
        "version": installed("pointillist"),
        "scale": "quick" if quick else "full",
        "data": inputs.name,
        "rival": rival_words(),
        "sizes": ", ".join(f"{name.replace('_', ' ')} {words(value)}" for name, value in vars(inputs.scale).items()),
    }


def _begin(about: dict[str, Any], figures: list[str], output: Path, say: Callable[[str], None]) -> Record:
    """The record to go on with: an interrupted run's, or a new one; figures of the same settings stay until they are new."""
    known = facts((*PACKAGES, "sporco"))
    file = output / RESULTS
    old = read_record(file) if file.is_file() else None
    if old is None or old.about != about:
        if old is not None:
            say(f"the results in {file} have other settings and are replaced")
        record = Record(about, known, pending=figures)
    elif old.pending:
        done = [name for name in figures if name in old.figures and name not in old.pending]
        if done:
            say(f"going on with an interrupted run: {', '.join(done)} finished already")
        record = replace(old, facts=known, pending=[name for name in figures if name not in done])
    else:
        record = Record(about, known, old.figures, figures)
    record.write(file)
    return record
