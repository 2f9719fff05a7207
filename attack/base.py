"""What an attack is, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Finding(NamedTuple):
    """Something that the package must not do."""

    attack: str
    """Name of the attack."""
    seed: int
    """The attempt: ``python -m attack --only NAME --seed SEED --count 1`` repeats it."""
    kind: str
    """What is wrong, in a word or two: "code ran", "hang", "memory", "crash", "unnamed error", "warning", "left behind" …"""
    title: str
    """One line."""
    detail: str
    """Traceback and figures."""
    files: tuple[Path, ...] = ()
    """What reproduces it; copied into the folder of findings."""


class Attack(Protocol):
    """One way to attack the package.

    An attack may also have ``patience``, the seconds after which an attempt counts as a hang (600 unless it says otherwise),
    ``memory``, the bytes that an attempt may take beyond what its process has, and ``missing``, a line that says why it
    cannot run here.
    """

    name: str
    about: str
    """One line for the table."""

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """One attempt in an empty folder; the same seed makes the same attempt."""
        ...
