"""What must hold after a run that was disturbed, and after the run that takes it up again."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from attack.forks import Outcome, Programs
from attack.jobs import HALF, JOBS, MODEL, Job, content, content_of, leftovers, make_inputs

RAW_WARNING = re.compile(r"^\S.*:\d+: \w*Warning: ", re.MULTILINE)
"""A warning as Python prints it, with the place in the source."""
UNCLEAR = ("Traceback", "unexpected ", "Exception ignored", "Fatal Python error")
LOG_WARNING = "the log "


class Peace(NamedTuple):
    """A run that nothing disturbed: what it wrote, and the calls by which it touched files."""

    content: dict[str, Any]
    calls: tuple[tuple[str, str], ...]
    seconds: float


class Wrong(NamedTuple):
    """What is wrong, as kind and sentence."""

    kind: str
    title: str


class Proving:
    """A place to run jobs in, with what each of them ends with in peace; made once, used for many attempts.

    Parameters
    ----------
    jobs : sequence of Job
        What is run there.
    """

    def __init__(self, jobs: Sequence[Job] = JOBS) -> None:
        self.jobs = jobs
        self.home: Path | None = None
        """Where the place lies."""
        self.undisturbed: dict[str, Peace] = {}

    def move_in(self, folder: Path) -> None:
        """Choose where everything lies, once: in a new folder in this one."""
        if self.home is None:
            self.home = Path(tempfile.mkdtemp(prefix="proving-", dir=folder))

    @cached_property
    def programs(self) -> Programs:
        """The server of runs, with everything loaded."""
        programs, folder = Programs(self._place("spool")), self._place("template")
        folder.mkdir()
        make_inputs(folder)
        if any("model.safetensors" in job.words for job in self.jobs) and programs.warm(MODEL, folder) != 0:
            raise RuntimeError("the model of the attack cannot be learned")
        for job in self.jobs:
            place = self._copied(folder, self._place(f"warm-{job.name}"))
            if programs.warm(job.words, place) != 0:
                raise RuntimeError(f"{job.name} fails without any disturbance")
        return programs

    def peace(self, job: Job) -> Peace:
        """What a job ends with when nothing disturbs it."""
        if job.name not in self.undisturbed:
            place = self.fresh(job, self._place(f"peace-{job.name}"))
            done = self.programs.run(job.words, place)
            if done.code != 0:
                raise RuntimeError(f"{job.name} fails without any disturbance: {done.err}")
            self.undisturbed[job.name] = Peace(content(place), done.calls, done.seconds)
        return self.undisturbed[job.name]

    def fresh(self, job: Job, folder: Path, *, older: bool = False) -> Path:
        """A folder in which a job can begin; with `older` there is an output already, of another run."""
        _ = self.programs
        self._copied(self._place("template"), folder)
        if older:
            self.peace(job)
            older_output = self._place(f"peace-{job.name}") / job.output
            if job.name in ("learn", "save"):
                older_output = self._place("template") / "model.safetensors"
            shutil.copyfile(older_output, folder / job.output)
        return folder

    def close(self) -> None:
        """End the server and remove everything."""
        if "programs" in vars(self):
            self.programs.close()
        if self.home is not None:
            shutil.rmtree(self.home)

    def _place(self, name: str) -> Path:
        if self.home is None:
            raise RuntimeError("nobody has moved in")
        return self.home / name

    def _copied(self, template: Path, folder: Path) -> Path:
        shutil.copytree(template, folder, dirs_exist_ok=True)
        return folder


def check_words(outcome: Outcome, codes: tuple[int, ...]) -> list[Wrong]:
    """What a run said, and the exit code that it ended with."""
    found = []
    if outcome.hung:
        found.append(Wrong("hang", "the run did not end"))
    elif outcome.code not in codes:
        kind = "crash" if outcome.code < 0 else "unnamed error"
        found.append(Wrong(kind, f"exit code {outcome.code}, not one of {codes}"))
    lines = outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if outcome.code in (1, 2) and len(errors) != 1:
        found.append(Wrong("unnamed error", f"{len(errors)} lines say what went wrong"))
    for word in UNCLEAR:
        if word in outcome.err:
            found.append(Wrong("unnamed error", next(line for line in lines if word in line)))
    raw = RAW_WARNING.search(outcome.err)
    if raw:
        found.append(Wrong("warning", raw[0] + outcome.err[raw.end() :].partition("\n")[0]))
    return found


def check_kept(job: Job, folder: Path, before: Any, newest: str, peace: Peace, *, partial: bool) -> list[Wrong]:
    """What lies there after a disturbed run: the older output or all of the new one, and nothing damaged.

    `before` is what the output held, None without one; `newest` the name of the newest checkpoint or part then; with
    `partial` a signal may have made the run save what it had.
    """
    found, output = [], folder / job.output
    if before is not None and not output.exists():
        found.append(Wrong("lost", f"{job.output} is gone"))
    for path in [output, *job.put_away(folder)]:
        if path.exists():
            try:
                held = content_of(path)
            except (ValueError, OSError, KeyError) as error:
                found.append(Wrong("lost", f"{path.name} is damaged: {error}"))
                continue
            accepted = held in (before, peace.content[job.output]) or partial
            if path == output and not accepted:
                found.append(Wrong("bits", f"{job.output} holds neither the old nor the new content"))
    kept = [path.name for path in job.put_away(folder)]
    if newest and not partial and max(kept, default="") < newest and not _ended(job, folder, peace):
        found.append(Wrong("lost", f"{newest} is gone, there are {kept}"))
    return found


def _ended(job: Job, folder: Path, peace: Peace) -> bool:
    output = folder / job.output
    return output.exists() and content_of(output) == peace.content[job.output]


def check_end(job: Job, folder: Path, peace: Peace, said: str) -> list[Wrong]:
    """What lies there after the last run: the same as in peace, and nothing else."""
    found = [Wrong("left behind", name) for name in leftovers(folder)]
    try:
        now = content(folder)
    except (ValueError, OSError, KeyError) as error:
        return [*found, Wrong("lost", f"something is damaged: {error}")]
    for name in job.logs:
        if LOG_WARNING in said:  # a log that cannot be written is a warning; what it holds must be true
            records = peace.content[name]
            if not all(record in [*records, HALF] for record in now.get(name, [])):
                found.append(Wrong("bits", f"{name} holds records of no step"))
            now[name] = records
    for name in sorted(now.keys() | peace.content.keys()):
        if name not in now:
            found.append(Wrong("lost", f"{name} is missing"))
        elif name not in peace.content:
            found.append(Wrong("left behind", name))
        elif now[name] != peace.content[name]:
            found.append(Wrong("bits", f"{name} differs from that of the undisturbed run"))
    return found
