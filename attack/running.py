"""Spreads attempts of several attacks over processes and time, and records what comes out of them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from attack.base import Attack
from attack.state import State
from attack.workers import Outcome, Task, Worker

_LOOK = 0.25
"""Seconds between two looks at processes that are silent."""
_WRITE = 5.0
"""Seconds between two writings of the state."""
_SHARED_MEMORY = Path("/dev/shm")
_ROOM = 2**31
"""Bytes that must be free in shared memory for attempts to be made there."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How much is to be tried."""

    seconds: float | None = None
    count: int | None = None
    """Attempts of each attack."""
    seed: int | None = None
    """The first attempt; None goes on behind what the state holds."""
    jobs: int = 2

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.count is None):
            raise ValueError("give one of seconds and count")


class Runner:
    """A run of some attacks.

    Parameters
    ----------
    attacks : mapping from name to attack
    state : State
    wanted : Wanted
    say : callable
        Told of every finding.
    """

    def __init__(
        self,
        attacks: Mapping[str, Attack],
        state: State,
        wanted: Wanted,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._attacks, self.state, self._wanted, self._say = attacks, state, wanted, say
        self._given: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._next = {name: wanted.seed or 0 for name in attacks}
        self._again: list[Task] = []
        self._suspects: set[Task] = set()
        self._written = 0.0

    def run(self) -> None:
        """Try until time or count is reached; Ctrl-C keeps what was done."""
        folder = Path(tempfile.mkdtemp(prefix="attack-", dir=_roomy()))
        workers: list[Worker] = []
        begin = time.monotonic()
        end = None if self._wanted.seconds is None else begin + self._wanted.seconds
        try:
            while True:
                workers = self._give(workers, folder, late=end is not None and time.monotonic() >= end)
                busy = {worker.connection: worker for worker in workers if worker.task is not None}
                if not busy:
                    return
                ready = [busy[connection] for connection in wait(list(busy), _LOOK)]  # type: ignore[index]
                done = [worker.take() for worker in ready]
                done += [worker.hang() for worker in busy.values() if worker not in ready and worker.overdue]
                for outcome in done:
                    self.take_outcome(outcome, folder)
                workers = [worker for worker in workers if not worker.connection.closed]
        finally:
            for worker in workers:
                worker.end()
            self.state.write()
            shutil.rmtree(folder, ignore_errors=True)

    def _give(self, workers: list[Worker], folder: Path, *, late: bool) -> list[Worker]:
        """Give tasks to processes that have none; new processes take the places of those that ended."""
        idle = [worker for worker in workers if worker.task is None]
        while task := self._again.pop() if self._again else None if late else self._choose():
            if not idle and len(workers) == self._wanted.jobs:
                self._again.append(task)
                break
            if not idle:
                idle = [Worker(self._attacks, folder)]
                workers = [*workers, *idle]
            idle.pop().give(task)
        return workers

    def _choose(self) -> Task | None:
        """The next attempt of the attack that had the least time so far."""
        most = self._wanted.count
        open_ = [name for name in self._attacks if most is None or self._given[name] < most]
        if not open_:
            return None
        name = min(open_, key=lambda one: (self._spent[one], self._given[one]))
        seed = self._next[name]
        if self._wanted.seed is None:
            seed = self.state.tally(name).next_seed(seed)
        self._next[name] = seed + 1
        self._given[name] += 1
        return Task(name, seed)

    def take_outcome(self, outcome: Outcome, folder: Path) -> None:
        task = outcome.task
        self._spent[task.attack] += outcome.seconds  # type: ignore[assignment]
        if outcome.failure == "hang" and task not in self._suspects:
            # A machine that is busy with other things makes attempts slow: only a second time counts.
            self._suspects.add(task)
            self._again.append(task)
            return
        self.state.record(outcome)
        for finding in outcome.findings:
            self._say(f"{finding.attack} {finding.seed}: {finding.kind}: {finding.title}")
        for path in (folder / f"{task.attack}-{task.seed}", folder / f"{task.attack}-{task.seed}.stack"):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        if time.monotonic() - self._written > _WRITE:
            self.state.write()
            self._written = time.monotonic()


def _roomy() -> Path | None:
    """Where attempts are made: in memory where there is room, else in the folder of temporary files."""
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM:
        return _SHARED_MEMORY
    return None
