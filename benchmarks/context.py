"""What every experiment is given: inputs, where to write, and whether this is only a smoke test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inputs import Inputs


@dataclass(frozen=True)
class Context:
    """One run of the suite."""

    inputs: Inputs
    folder: Path
    say: Callable[[str], None]

    @property
    def quick(self) -> bool:
        return self.inputs.quick

    def pick(self, full: float, quick: float) -> float:
        """The first in a full run, the second in a smoke test."""
        return quick if self.quick else full

    def count(self, full: int, quick: int) -> int:
        return quick if self.quick else full
