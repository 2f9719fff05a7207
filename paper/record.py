"""The record of a run: kept as JSON, so that an interrupted run goes on, and drawn as a page, figure by figure."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paper.lab import Outcome
from pointillist.plot.blocks import Fact, Facts, NamedValues, Page, Section, Verdict, Verdicts, from_plain, to_plain
from pointillist.plot.machine import fact_items
from pointillist.storage import atomic_path, read_whole
from pointillist.storage.schema import list_of, mapping, mapping_of, number, parse_json, text, whole
from pointillist.storage.schema import record as record_of

FORMAT = 2
_SCHEMA = record_of(
    {
        "about": record_of({"data": text, "scale": text, "rival": text}, others=True),
        "facts": record_of(
            {"when": text, "platform": text, "processor": text, "threads": whole(1), "load": list_of(number(0))}
            | {"python": text, "versions": mapping},
            others=True,
        ),
        "token": text,
        "pending": list_of(text),
        "figures": mapping_of(
            record_of({"title": text, "verdicts": list_of(mapping), "blocks": list_of(mapping), "seconds": number(0)})
        ),
    }
)
_LARGEST = 2**28
"""Bytes of a record that is read; those of all figures have a few million, most of them pictures."""
BUSY = 0.5
"""Load for each thread, before the start, from which times are not to be trusted."""


@dataclass
class Record:
    """Everything that a report is drawn from."""

    about: dict[str, Any]  # settings that two runs must share to be one: version, scale, data, and the rival
    facts: dict[str, Any]  # versions and machine
    figures: dict[str, Outcome] = field(default_factory=dict)  # those that are finished
    pending: list[str] = field(default_factory=list)  # those that were asked for and are not finished
    token: str = field(default_factory=lambda: secrets.token_hex(8))  # names the run

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all finished figures."""
        return [verdict for outcome in self.figures.values() for verdict in outcome.verdicts]

    def write(self, path: Path) -> None:
        """Write the record, completely or not at all."""
        figures = {name: vars(outcome) for name, outcome in self.figures.items()}
        plain = to_plain({"format": FORMAT, **vars(self), "figures": figures})
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def read_record(path: Path) -> Record:
    """The record that `Record.write` wrote."""
    content = read_whole(path, "results file", _LARGEST)
    try:
        plain = parse_json(content)
        if not isinstance(plain, dict) or plain.pop("format", None) != FORMAT:
            raise ValueError("it is of another version, run it into another folder")
        _SCHEMA(plain, "record")
        figures = {name: Outcome(**from_plain(figure)) for name, figure in plain.pop("figures").items()}
    except ValueError as error:
        raise ValueError(f"{path} is not a results file: {error}") from error
    return Record(**plain, figures=figures)


def record_page(record: Record) -> Page:
    """The page about all finished figures, with all verdicts first."""
    sections = [Section("Verdicts", [_numbers(record), Verdicts(record.verdicts, brief=True)])]
    for outcome in record.figures.values():
        sections.append(Section(outcome.title, [Verdicts(outcome.verdicts), *outcome.blocks]))
    about = {name: str(value) for name, value in record.about.items()}
    sections.append(Section("Settings and machine", [NamedValues({**about, **fact_items(record.facts)})]))
    return Page("Stochastic convolutional sparse coding, reproduced", summary(record), sections)


def summary(record: Record) -> str:
    """How many claims hold, and what a reader must know about the page and the run."""
    held, *others = remarks(record)
    how = "Each verdict is computed from the numbers beside it; where one does not hold, it says why."
    return " ".join([held, how, *others])


def remarks(record: Record) -> list[str]:
    """How many claims hold, and what a reader must know about the run: a sentence for each thing."""
    held = sum(verdict.holds for verdict in record.verdicts)
    words = [
        f"{held} of {len(record.verdicts)} claims of Xiong, Richtárik and Heidrich (2019) hold in this run, on "
        f"{record.about['data']}.",
        f"The frequency-domain method to beat is {record.about['rival']}.",
    ]
    if record.about["scale"] == "quick":
        words.append("This is the small scale: a look at everything in minutes, not a test of the paper's numbers.")
    if record.facts["load"] and record.facts["load"][0] > BUSY * record.facts["threads"]:
        words.append(
            "The machine was busy with other work: verdicts about time may be wrong, run it again when it is quiet."
        )
    if record.pending:
        words.append(f"Not finished yet: {', '.join(record.pending)}.")
    return words


def _numbers(record: Record) -> Facts:
    seconds = sum(outcome.seconds for outcome in record.figures.values())
    held = sum(verdict.holds for verdict in record.verdicts)
    rival = str(record.about["rival"])
    return Facts(
        [
            Fact(f"{held} of {len(record.verdicts)}", "claims hold"),
            Fact(f"{len(record.figures)}", "figures repeated", f"scale: {record.about['scale']}"),
            Fact(f"{seconds / 60:.1f} min", "of computing", f"{record.facts['threads']} threads"),
            Fact("SPORCO" if rival.startswith("SPORCO") else "our own", "frequency-domain method", rival),
        ]
    )
