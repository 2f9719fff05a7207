"""What a run has tried and found, kept as JSON, so that a run which was stopped goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attack.base import Finding

_LARGEST = 2**26
"""Bytes of a file that is copied."""


@dataclass
class Tally:
    """What one attack has tried and found."""

    ranges: list[list[int]] = field(default_factory=list)
    """Seeds that were tried, as intervals [first, behind the last], in order."""
    seconds: float = 0.0
    findings: dict[str, list[str]] = field(default_factory=dict)
    """Kind and title of what was found, by seed."""

    @property
    def attempts(self) -> int:
        """How many seeds were tried."""
        return sum(end - begin for begin, end in self.ranges)

    def next_seed(self, first: int) -> int:
        """The smallest seed from `first` on that was not tried."""
        for begin, end in self.ranges:
            if begin <= first < end:
                first = end
        return first

    def add(self, seed: int) -> None:
        """Take note that a seed was tried."""
        self.ranges = _merged([*self.ranges, [seed, seed + 1]])

    def kinds(self) -> Counter[str]:
        """How often each kind of finding occurred."""
        return Counter(words.partition(": ")[0] for found in self.findings.values() for words in found)


def _merged(ranges: list[list[int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


class State:
    """The folder of a run: ``state.json``, and ``findings`` with a folder for each attempt that found something.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "state.json"
        stored: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        self.tallies = {name: Tally(**tally) for name, tally in stored.items()}

    def tally(self, name: str) -> Tally:
        """What one attack has tried and found."""
        return self.tallies.setdefault(name, Tally())

    def record(self, name: str, seed: int, seconds: float, findings: Iterable[Finding]) -> None:
        """Take note of an attempt, and keep what reproduces its findings."""
        tally, found = self.tally(name), list(findings)
        tally.add(seed)
        tally.seconds += seconds
        tally.findings.pop(str(seed), None)
        if found:
            tally.findings[str(seed)] = [f"{one.kind}: {one.title}" for one in found]
            self._keep(self.folder / "findings" / f"{name}-{seed}", found)

    def write(self) -> None:
        """Write ``state.json``, completely or not at all."""
        temporary = self._file.with_suffix(".new")
        plain = {name: vars(tally) for name, tally in self.tallies.items()}
        temporary.write_text(json.dumps(plain, indent=1), encoding="utf-8")
        os.replace(temporary, self._file)

    def _keep(self, folder: Path, findings: list[Finding]) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for finding in findings:
            for path in finding.files:
                _copy(path, folder / path.name)
        first = findings[0]
        words = [f"python -m attack --only {first.attack} --seed {first.seed} --count 1", ""]
        for one in findings:
            words += [f"{one.kind}: {one.title}", one.detail, ""]
        text = "\n".join(words).encode("utf-8", "backslashreplace")
        (folder / "finding.txt").write_bytes(text)


def _copy(path: Path, target: Path) -> None:
    """Copy a file or folder; of pipes, sockets, links and very large files only their kind is noted."""
    if path.is_symlink() or not path.exists():
        kind = f"a link to {os.readlink(path)}" if path.is_symlink() else "not there"
    elif path.is_dir():
        for inner in path.iterdir():
            target.mkdir(exist_ok=True)
            _copy(inner, target / inner.name)
        return
    elif path.is_file() and path.stat().st_size <= _LARGEST:
        shutil.copyfile(path, target)
        return
    elif path.is_file():
        kind = f"a file of {path.stat().st_size:,} bytes, which begins with {path.open('rb').read(64)!r}"
    else:
        kind = "no regular file"
    target.with_name(f"{target.name}.kind.txt").write_text(f"{kind}\n", encoding="utf-8", errors="backslashreplace")
