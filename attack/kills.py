"""Kills runs again and again, at any moment and between any two calls that touch files, and takes them up each time.

In the end they must have written the bits of the run that nobody killed, and nothing else.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attack.base import Finding
from attack.forks import Outcome
from attack.jobs import JOBS, Job, content_of
from attack.shim import Fault
from attack.survival import Proving, Wrong, check_end, check_kept, check_words

LONGEST = 6
"""Kills in one chain at most."""
GENTLE = ("SIGTERM", "SIGHUP", "SIGINT")
"""Signals that ask a run to end."""


class Kills:
    """One attempt is a chain of kills, and a last run that is left in peace."""

    name = "kills"
    about = "runs killed one to six times, at any moment or between two calls, then taken up again"
    patience = 600.0

    def __init__(self, jobs: Sequence[Job] = JOBS) -> None:
        self.proving = Proving(jobs)
        self.done: Counter[str] = Counter()
        """Under "kills": runs that a signal has ended."""

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """One chain of kills."""
        self.proving.move_in(folder.parent)
        rng, job = random.Random(seed), self.proving.jobs[seed % len(self.proving.jobs)]
        peace, older = self.proving.peace(job), rng.random() < 0.3
        place, said = self.proving.fresh(job, folder / "run", older=older), ""
        wrong: list[Wrong] = []
        for _ in range(rng.randint(1, LONGEST)):
            before = content_of(place / job.output) if (place / job.output).exists() else None
            newest = next((path.name for path in job.put_away(place)), "")
            how, outcome = self._killed(job, place, rng)
            said += f"{how}: exit code {outcome.code}\n{outcome.err}\n"
            gentle = how.split()[0] in GENTLE
            codes = (0, -signal.SIGKILL) if not gentle else (0, *_codes(how.split()[0]))
            wrong += check_words(outcome, codes)
            wrong += check_kept(job, place, before, newest, peace, partial=gentle)
            self.done["kills"] += outcome.code != 0
            if wrong:
                break
        last = self.proving.programs.run(job.words, place)
        said += f"last run: exit code {last.code}\n{last.err}\n"
        wrong += check_words(last, (0,)) + check_end(job, place, peace, "")
        return [Finding(self.name, seed, one.kind, f"{job.name}: {one.title}", said) for one in wrong]

    def close(self) -> None:
        """End what the attack has started."""
        self.proving.close()

    def _killed(self, job: Job, folder: Path, rng: random.Random) -> tuple[str, Outcome]:
        """Run a job and kill it; says how."""
        name, peace = rng.choice(["SIGKILL", "SIGKILL", "SIGKILL", *GENTLE]), self.proving.peace(job)
        if rng.random() < 0.5:
            number = rng.randint(1, len(peace.calls))
            fault = Fault(number, name)
            return f"{name} at call {number}", self.proving.programs.run(job.words, folder, fault=fault)
        moment = rng.uniform(0, peace.seconds)
        signals = [(moment, int(getattr(signal, name)))]
        return f"{name} after {moment:.3f} s", self.proving.programs.run(job.words, folder, signals=signals)


def _codes(name: str) -> tuple[int, int]:
    """Exit codes that a signal may lead to: told by the command, or before it could take care of signals."""
    number = int(getattr(signal, name))
    return 128 + number, -number
