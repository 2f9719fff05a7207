"""What every attack is: a name, a line about it, and attempts that a seed repeats."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Finding(NamedTuple):
    """Something that an attempt broke."""

    attack: str
    """Name of the attack."""
    seed: int
    """The attempt: ``python -m attack --only NAME --seed SEED --count 1`` repeats it."""
    kind: str
    """Such as "code ran", "hang", "memory", "crash", "unnamed error", "warning", "input changed", "bits", "bound"."""
    title: str
    """One line."""
    detail: str
    """Traceback and figures."""
    files: tuple[Path, ...] = ()
    """What reproduces it."""


class Attack(Protocol):
    """One way to attack."""

    name: str
    about: str
    """One line for the table."""

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """One attempt in an empty folder; the same seed makes the same attempt."""
