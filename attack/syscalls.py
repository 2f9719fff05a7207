"""Lets real system calls fail, by ``strace --inject``: what `attack.faults` does, also below Python and in other languages.

It needs strace and the permission to trace a process, as on Linux.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from attack.base import Finding
from attack.jobs import JOBS, Job, content_of
from attack.survival import Proving, Wrong, check_end, check_kept, check_words

ERRORS = {
    "openat": ("ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE", "EINTR"),
    "write": ("ENOSPC", "EIO", "EINTR"),
    "fsync": ("ENOSPC", "EIO", "EINTR"),
    "rename": ("ENOSPC", "EIO", "EACCES", "EROFS"),
    "mkdir": ("ENOSPC", "EIO", "EACCES", "EROFS"),
    "unlink": ("EIO", "EACCES", "EROFS"),
    "unlinkat": ("EIO", "EACCES", "EROFS"),
    "rmdir": ("EIO", "EACCES", "EROFS"),
    "ftruncate": ("ENOSPC", "EIO", "EINTR"),
    "chmod": ("EIO", "EACCES", "EROFS"),
    "close": ("EIO", "EINTR"),
    "read": ("EIO", "EINTR"),
    "getdents64": ("EIO",),
}
"""System calls that touch files, and how each of them can fail."""
_CALL = re.compile(r"^\d+ +(\w+)\(")


class Calls:
    """System calls that fail; seed s attacks job s mod 4 at one of its calls, in order."""

    name = "syscalls"
    about = "a failing system call (strace) in every run that writes files, then the same command again"
    patience = 300.0

    def __init__(self, jobs: Sequence[Job] = JOBS) -> None:
        self.proving = Proving(jobs)

    @property
    def missing(self) -> str:
        """Why the attack cannot run here, empty where it can."""
        if sys.platform == "linux" and shutil.which("strace"):
            return ""
        return "strace is not here: apt-get install strace (Linux only)"

    @cached_property
    def _counts(self) -> dict[str, list[tuple[str, int]]]:
        """For each job, every call that it makes: its name and its number among those of that name."""
        return {job.name: self._traced(job) for job in self.proving.jobs}

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """One failing system call in one run."""
        if self.missing:
            return []
        self.proving.move_in(folder.parent)
        job, call, number, error = self.plan(seed)
        older = seed % 3 == 0
        place = self.proving.fresh(job, folder / "run", older=older)
        found = self._disturb(job, place, f"{call}:error={error}:when={number}", older=older)
        about = f"{job.name}: {error} at call {number} of {call}"
        return [Finding(self.name, seed, wrong.kind, f"{about}: {wrong.title}", said) for wrong, said in found]

    def plan(self, seed: int) -> tuple[Job, str, int, str]:
        """The job, the call with its number, and the error."""
        job = self.proving.jobs[seed % len(self.proving.jobs)]
        calls = self._counts[job.name]
        call, number = calls[(seed // len(self.proving.jobs)) % len(calls)]
        return job, call, number, random.Random(seed).choice(ERRORS[call])

    def close(self) -> None:
        """End what the attack has started."""
        self.proving.close()

    def _traced(self, job: Job) -> list[tuple[str, int]]:
        with tempfile.TemporaryDirectory(prefix="traced-", dir=self.proving.home) as name:
            place, log = self.proving.fresh(job, Path(name) / "run"), Path(name) / "trace"
            options = ["-o", str(log), "-e", f"trace={','.join(ERRORS)}"]
            done = self.proving.programs.run(job.words, place, strace=options)
            if done.code != 0:
                raise RuntimeError(f"{job.name} fails under strace: {done.err}")
            counts: Counter[str] = Counter()
            calls = []
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
                found = _CALL.match(line)
                if found and found[1] in ERRORS:
                    counts[found[1]] += 1
                    calls.append((found[1], counts[found[1]]))
            return calls

    def _disturb(self, job: Job, folder: Path, inject: str, *, older: bool) -> list[tuple[Wrong, str]]:
        peace, programs, before = self.proving.peace(job), self.proving.programs, None
        if older and (folder / job.output).exists():
            before = content_of(folder / job.output)
        call = inject.partition(":")[0]
        options = ["-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={inject}"]
        first = programs.run(job.words, folder, strace=options)
        wrong = check_words(first, (0, 1, 2)) + check_kept(job, folder, before, "", peace, partial=False)
        if first.code == 0:
            wrong += [one for one in check_end(job, folder, peace, first.err) if one.kind != "left behind"]
        second = programs.run(job.words, folder)
        wrong += check_words(second, (0,)) + check_end(job, folder, peace, first.err + second.err)
        said = f"first run, exit code {first.code}:\n{first.err}\nsecond run, exit code {second.code}:\n{second.err}"
        return [(one, said) for one in wrong]
