"""The record of a run as JSON: finished figures are kept, so that an interrupted run goes on and a report can be redrawn."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pointillist.reproduce.lab import Outcome
from pointillist.storage import atomic_path
from pointillist.storage.schema import anything, list_of, mapping, mapping_of, number, parse_json, record, text, whole

FORMAT = 1

_SCHEMA = record(
    {
        "format": anything,
        "about": record({"data": text, "scale": text, "rival": text}, others=True),
        "facts": record(
            {"when": text, "platform": text, "processor": text, "threads": whole(1), "load": list_of(number(0))}
            | {"python": text, "versions": mapping},
            others=True,
        ),
        "token": text,
        "pending": list_of(text),
        "figures": mapping_of(
            record({"title": text, "verdicts": list_of(mapping), "blocks": list_of(mapping), "seconds": number(0)})
        ),
    }
)


@dataclass
class Record:
    """Everything that a report is drawn from.

    Parameters
    ----------
    about : dict
        Settings that two runs must share to be one: version, scale, data, and the rival.
    facts : dict
        Versions and machine.
    outcomes : dict from figure to Outcome
    pending : list of str
        Figures that were asked for and are not finished.
    token : str
        Names the run.
    """

    about: dict[str, Any]
    facts: dict[str, Any]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def write(self, path: Path) -> None:
        """Write the record, completely or not at all."""
        plain = {
            "format": FORMAT,
            "about": self.about,
            "facts": self.facts,
            "token": self.token,
            "pending": self.pending,
            "figures": {name: outcome.to_plain() for name, outcome in self.outcomes.items()},
        }
        text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def read_record(path: Path) -> Record:
    """The record that `Record.write` wrote."""
    try:
        plain = parse_json(path.read_bytes())
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ValueError("it is of another version: run pointillist reproduce again")
        _SCHEMA(plain, "record")
        outcomes = {name: Outcome.from_plain(figure) for name, figure in plain["figures"].items()}
    except ValueError as error:
        raise ValueError(f"{path} is not a results file: {error}") from error
    return Record(plain["about"], plain["facts"], outcomes, plain["pending"], plain["token"])
