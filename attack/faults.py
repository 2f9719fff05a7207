"""Lets every call by which a run touches files go wrong once, or from then on: a full disk, an error, no permission.

The run must fail with a clear message or go on, keep what was there, and end as if nothing had happened when it is repeated.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from attack.base import Finding
from attack.jobs import JOBS, Job, content_of
from attack.shim import REFUSED, Fault
from attack.survival import Proving, Wrong, check_end, check_kept, check_words

FOREVER = 10**9
"""Calls that a lasting fault lasts for: all of them."""


class Faults:
    """Faults at calls of Python; seed s attacks job s mod 4 at call s div 4, and begins again behind its last call."""

    name = "faults"
    about = "a fault at every call that touches files, then the same command again"
    patience = 300.0

    def __init__(self, jobs: Sequence[Job] = JOBS) -> None:
        self.proving = Proving(jobs)

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """One fault in one run."""
        self.proving.move_in(folder.parent)
        job, fault, older = self.plan(seed)
        place = self.proving.fresh(job, folder / "run", older=older)
        found = disturb(self.proving, job, place, fault, older=older)
        about = f"{job.name}: {fault.kind} at call {fault.at}{' and after' if fault.lasting > 1 else ''}, "
        about += " ".join(self.proving.peace(job).calls[fault.at - 1])
        return [Finding(self.name, seed, wrong.kind, f"{about}: {wrong.title}", said) for wrong, said in found]

    def plan(self, seed: int) -> tuple[Job, Fault, bool]:
        """The job, what goes wrong in it, and whether an older output is there."""
        rng, job = random.Random(seed), self.proving.jobs[seed % len(self.proving.jobs)]
        calls = self.proving.peace(job).calls
        number = (seed // len(self.proving.jobs)) % len(calls)
        verb, _ = calls[number]
        kind = rng.choice([kind for kind, verbs in REFUSED.items() if verb in verbs])
        lasting = 1 if kind == "EINTR" else rng.choice([1, 1, FOREVER])  # interrupted calls are tried again and again
        return job, Fault(number + 1, kind, lasting), rng.random() < 0.5

    def close(self) -> None:
        """End what the attack has started."""
        self.proving.close()


def disturb(proving: Proving, job: Job, folder: Path, fault: Fault, *, older: bool) -> list[tuple[Wrong, str]]:
    """Run a job with a fault, then without; everything that is wrong, with what the runs said."""
    peace, before = proving.peace(job), None
    if older and (folder / job.output).exists():
        before = content_of(folder / job.output)
    first = proving.programs.run(job.words, folder, fault=fault)
    wrong = check_words(first, (0, 1, 2)) + check_kept(job, folder, before, "", peace, partial=False)
    if first.code == 0:
        # What could not be removed is removed by the next run: a fault may have hit the removal itself.
        wrong += [one for one in check_end(job, folder, peace, first.err) if one.kind != "left behind"]
    second = proving.programs.run(job.words, folder)
    wrong += check_words(second, (0,)) + check_end(job, folder, peace, first.err + second.err)
    said = f"first run, exit code {first.code}:\n{first.err}\nsecond run, exit code {second.code}:\n{second.err}"
    return [(one, said) for one in wrong]
