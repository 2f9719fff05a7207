"""What a run of ``pointillist encode`` will need, from its sizes, and a pace that keeps it within a limit.

No choice that is made here changes a bit of the codes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from pointillist.cli.console import count
from pointillist.codes import CODE_BYTES, EVENT_BYTES
from pointillist.large import LARGE
from pointillist.learners.plan import ALLOWANCE, MARGIN, Concession, concessions, duration, in_bytes
from pointillist.problem import Geometry
from pointillist.solvers.memory import descent_bytes
from pointillist.solvers.tiles import solved_at_once
from pointillist.storage.codes import TEXT_BYTES

_WORKING = 0.5
"""Codes in the working set for each sample of a signal that is solved for."""
_SURPRISE = 1.5
"""Factor by which signals may have more codes than those that were tried."""


@dataclass(frozen=True)
class Pace:
    """How much is done at a time: threads, signals that are coded together, and bytes of signals that are read ahead."""

    n_jobs: int
    together: int
    ahead: int


@dataclass(frozen=True, kw_only=True)
class EncodePlan:
    """What a run of coding will need.

    Attributes
    ----------
    pace : Pace
    n_signals, done : int
        All signals, and those that a run which is resumed has coded already.
    geometry : Geometry
        Of the largest signal.
    itemsize : int
        Bytes of a sample.
    samples : float
        Samples of a signal on average.
    density : float
        Codes for each sample.
    reading : int
        Bytes that reading one signal takes at its peak.
    mapped : bool
        Whether large signals stay in their files.
    seconds : float
        About how long coding takes.
    base, peak : int
        Bytes that the process has before the run, and the most that it has had.
    parts : bool
        Whether the run puts away what is coded.
    events : bool
        Whether the codes are also written as a table of events.
    limit : int or None
        Bytes that the run was made to fit into.
    given_up : tuple of str
        What was given up for that, in words.
    """

    pace: Pace
    n_signals: int
    done: int
    geometry: Geometry
    itemsize: int
    samples: float
    density: float
    reading: int
    mapped: bool
    seconds: float
    base: int
    peak: int
    parts: bool
    events: bool = False
    limit: int | None = None
    given_up: tuple[str, ...] = ()

    @property
    def codes_bytes(self) -> int:
        """Bytes of the codes of all signals."""
        return int(_SURPRISE * self.density * self.samples * self.n_signals) * CODE_BYTES

    def uses(self) -> dict[str, int]:
        """Bytes at the peak by what takes them, the largest first."""
        samples = self.geometry.channels * prod(self.geometry.signal)
        in_memory = min(samples, LARGE) if self.mapped else samples
        together = 1 if samples >= LARGE else min(self.pace.together, self.n_signals)
        threads = min(self.pace.n_jobs, together if samples < LARGE else self.pace.n_jobs)
        solving = threads * descent_bytes(solved_at_once(self.geometry), _WORKING, self.itemsize)
        events = self.codes_bytes // CODE_BYTES * EVENT_BYTES + TEXT_BYTES if self.events else 0
        uses = {
            "program": self.base,
            "solving": solving,
            "signals in work": together * in_memory * (2 * self.itemsize + 8),
            "signals read ahead": min(self.pace.ahead, int(self.samples * self.n_signals) * self.itemsize),
            "reading": self.reading,
            "codes": 2 * self.codes_bytes,  # one by one, and joined
            "events": events,
        }
        return {name: size for name, size in sorted(uses.items(), key=lambda use: -use[1]) if size}

    @property
    def memory(self) -> int:
        """Bytes that the process will have at its peak, at most."""
        added = sum(self.uses().values()) - self.base
        return max(self.peak, int(self.base + ALLOWANCE + MARGIN * added))

    @property
    def disk(self) -> int:
        """Bytes of the codes file, and of the parts while they are there."""
        return (1 + self.parts) * self.codes_bytes

    def line(self) -> str:
        """The plan in a few words."""
        largest = [f"{name} {in_bytes(size)}" for name, size in list(self.uses().items())[:3]]
        todo = count(self.n_signals - self.done, "signal")
        return (
            f"{todo}, up to {in_bytes(self.memory)} of memory ({', '.join(largest)}), {in_bytes(self.disk)} on disk, "
            f"about {duration(self.seconds)}"
        )


def within(plan: EncodePlan, limit: int) -> EncodePlan:
    """The plan with a pace that fits into so many bytes; raises ValueError, with what takes the most, if none does."""
    for pace, words in _concessions(plan.pace):
        smaller = replace(plan, pace=pace, limit=limit, given_up=words)
        if smaller.memory <= limit:
            return smaller
    name, size = next((name, size) for name, size in smaller.uses().items() if name != "program" or size > limit)
    remedy = {
        "codes": "code fewer files at a time, or raise --penalty",
        "events": "code fewer files at a time, or leave --events out",
        "program": "nothing can be done about that",
    }.get(name, "leave the largest files out")
    raise ValueError(
        f"max_memory of {in_bytes(limit)} is not enough: even one signal at a time takes {in_bytes(smaller.memory)}, of "
        f"which {in_bytes(size)} are for {name}: {remedy}"
    )


def _concessions(pace: Pace) -> Iterator[tuple[Pace, tuple[str, ...]]]:
    """Yield the pace as it is, then paces that need less and less memory; all of them cost time only."""
    steps = [
        Concession("ahead", 0, "read ahead", in_bytes=True),
        Concession("together", 1, "signals at a time"),
        Concession("n_jobs", 1, "threads"),
    ]
    return concessions(pace, steps, lambda now, name, value: replace(now, **{name: value}))
