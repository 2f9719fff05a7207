"""A run of all figures: kept as JSON after each of them, so that an interrupted run goes on, and drawn as a page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from paper.inputs import FULL, QUICK, Inputs
from paper.lab import Lab, Outcome
from paper.plain import from_plain, to_plain
from paper.rivals import rival_words
from pointillist.plot.page import (
    PACKAGES,
    Fact,
    Facts,
    NamedValues,
    Page,
    Section,
    Verdict,
    Verdicts,
    fact_items,
    facts,
    installed,
    write_page,
)

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "complexity")
RESULTS, REPORT = "results.json", "report.html"
BUSY = 0.5
"""Load for each thread, before the start, from which times are not to be trusted."""


@dataclass
class Record:
    """Everything that a report is drawn from.

    Attributes
    ----------
    about : dict
        Settings that two runs must share to be one: version, scale, data, and the rival.
    facts : dict
        Versions and machine.
    figures : dict of Outcome
        Those that are finished.
    """

    about: dict[str, Any]
    facts: dict[str, Any]
    figures: dict[str, Outcome] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all finished figures."""
        return [verdict for outcome in self.figures.values() for verdict in outcome.verdicts]

    def write(self, folder: Path) -> None:
        """Write results and report."""
        plain = to_plain(vars(self) | {"figures": {name: vars(one) for name, one in self.figures.items()}})
        text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / RESULTS).write_text(text, encoding="utf-8")
        write_page(self.page(), folder / REPORT)

    def page(self) -> Page:
        """The page about all finished figures, with all verdicts first."""
        held, seconds = (
            sum(verdict.holds for verdict in self.verdicts),
            sum(one.seconds for one in self.figures.values()),
        )
        rival = str(self.about["rival"])
        numbers = Facts(
            [
                Fact(f"{held} of {len(self.verdicts)}", "claims hold"),
                Fact(f"{len(self.figures)}", "figures repeated", f"scale: {self.about['scale']}"),
                Fact(f"{seconds / 60:.1f} min", "of computing", f"{self.facts['threads']} threads"),
                Fact("SPORCO" if rival.startswith("SPORCO") else "our own", "frequency-domain method", rival),
            ]
        )
        sections = [Section("Verdicts", [numbers, Verdicts(self.verdicts, brief=True)])]
        for outcome in self.figures.values():
            sections.append(Section(outcome.title, [Verdicts(outcome.verdicts), *outcome.blocks]))
        about = {name: str(value) for name, value in self.about.items()}
        sections.append(Section("Settings and machine", [NamedValues({**about, **fact_items(self.facts)})]))
        first, *others = self.remarks()
        how = "Each verdict is computed from the numbers beside it; where one does not hold, it says why."
        return Page("Stochastic convolutional sparse coding, reproduced", " ".join([first, how, *others]), sections)

    def remarks(self) -> list[str]:
        """Sentences that a reader of the report needs: claims that hold, the rival, the scale, and a busy machine."""
        held = sum(verdict.holds for verdict in self.verdicts)
        words = [
            f"{held} of {len(self.verdicts)} claims of Xiong, Richtárik and Heidrich (2019) hold in this run, on "
            f"{self.about['data']}.",
            f"The frequency-domain method to beat is {self.about['rival']}.",
        ]
        if self.about["scale"] == "quick":
            words.append("This is the small scale: a look at everything in minutes, not a test of the paper's numbers.")
        if self.facts["load"] and self.facts["load"][0] > BUSY * self.facts["threads"]:
            words.append(
                "The machine was busy with other work: verdicts about time may be wrong, run it again when it is quiet."
            )
        return words


def read_record(path: Path) -> Record:
    """The record that `Record.write` wrote; raises ValueError for another file."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        figures = {name: Outcome(**from_plain(figure)) for name, figure in plain["figures"].items()}
        return Record(plain["about"], plain["facts"], figures)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a results file: {error}") from error


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
        A folder, made if it is missing. It gets ``results.json`` and ``report.html`` after every figure. Figures that it has
        already, of the same settings, are not run again.
    data : path, optional
        The folder with the paper's images; crops of the shipped photographs otherwise.
    quick : bool
        Everything on a small scale.
    say : callable
        Told what is being done.
    """
    for name in figures:
        if name not in FIGURES:
            raise ValueError(f"figures must be among {', '.join(FIGURES)}, got {name!r}")
    inputs = Inputs(QUICK if quick else FULL, data)
    output.mkdir(parents=True, exist_ok=True)
    sizes = {name: value if isinstance(value, tuple) else (value,) for name, value in vars(inputs.scale).items()}
    about = {
        "version": installed("pointillist"),
        "scale": "quick" if quick else "full",
        "data": inputs.name,
        "rival": rival_words(),
        "sizes": ", ".join(f"{name.replace('_', ' ')} {'/'.join(map(str, some))}" for name, some in sizes.items()),
    }
    record, file = Record(about, facts((*PACKAGES, "sporco"))), output / RESULTS
    if file.is_file():
        old = read_record(file)
        if old.about == about:
            record.figures = old.figures
        else:
            say(f"the results in {file} have other settings and are replaced")
    lab = Lab(inputs, say)
    for name in figures:
        if name in record.figures:
            say(f"{name} is finished already; remove {file} to run it again")
            continue
        say(f"{name}:")
        begin = time.perf_counter()
        outcome: Outcome = import_module(f"paper.{name.replace('fig', 'figure')}").run(lab)
        record.figures[name] = replace(outcome, seconds=time.perf_counter() - begin)
        record.figures = {one: record.figures[one] for one in FIGURES if one in record.figures}
        record.write(output)
    record.write(output)
    return record


def redraw(results: Path, output: Path) -> Record:
    """Draw the report of a results file again, without running anything."""
    record = read_record(results)
    output.mkdir(parents=True, exist_ok=True)
    write_page(record.page(), output / REPORT)
    return record
