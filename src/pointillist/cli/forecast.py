"""What the plans of ``pointillist learn`` and ``pointillist encode`` share: trials, the table of memory, and warnings."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from numpy.typing import NDArray
from rich.table import Table

from pointillist.cli.console import say, warn
from pointillist.data.sources.base import box as box_of
from pointillist.learners.plan import duration, in_bytes
from pointillist.validation import is_constant

_TRIAL_SIDE = 256
"""Larger signals are cut to this side where things are tried, whose time then follows their samples."""
_LONG = 600.0
"""Seconds from which on a run had better keep what it has done."""


class Forecast(Protocol):
    """What a run will need."""

    @property
    def memory(self) -> int: ...

    @property
    def limit(self) -> int | None: ...

    @property
    def given_up(self) -> Sequence[str]: ...

    def uses(self) -> dict[str, int]:
        """Bytes by what they are for."""


def show_plan(plan: Forecast, lines: Sequence[str]) -> None:
    """Print a plan: a table of its memory, what else there is to say, and what a limit costs."""
    table = Table(title="memory at its peak, at most", title_justify="left")
    table.add_column("for")
    table.add_column("", justify="right")
    for name, size in plan.uses().items():
        table.add_row(name, in_bytes(size))
    table.add_section()
    table.add_row("in all, with what allocators keep", in_bytes(plan.memory))
    say(table, *lines, *(f"{_within(plan)}: {words}" for words in plan.given_up))


def room(output: Path) -> str:
    """Say how much the disk of an output has left."""
    return f"{in_bytes(_free(output))} free in {output.resolve().parent}"


def warn_early(plan: Forecast, output: Path, *, disk: int, seconds: float, survives: bool) -> None:
    """Say what may end a run badly that takes so much of the disk and so long, and does or does not survive a crash."""
    if disk > _free(output):
        warn(f"the run needs {in_bytes(disk)} on disk, {output.resolve().parent} has {in_bytes(_free(output))}")
    if seconds > _LONG and not survives:
        warn(f"the run takes about {duration(seconds)}: --checkpoint-every 60s would let it survive a crash")
    if plan.given_up:
        warn(f"{_within(plan)}: {'; '.join(plan.given_up)}")


def _within(plan: Forecast) -> str:
    return f"to stay within {in_bytes(plan.limit or 0)}"


def _free(output: Path) -> int:
    return shutil.disk_usage(output.resolve().parent).free


def middle(signal: NDArray, box: Sequence[int]) -> NDArray:
    """The middle of a signal ([channels,] *space), large enough to try things on it, or all of it where that is constant."""
    space = signal.shape[signal.ndim - len(box) :]
    sides = [min(length, max(_TRIAL_SIDE, 2 * side)) for length, side in zip(space, box, strict=True)]
    corner = [(length - side) // 2 for length, side in zip(space, sides, strict=True)]
    cut = signal[box_of(corner, sides)]
    return signal if is_constant(cut) else cut
