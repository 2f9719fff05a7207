"""Attempts in a process of their own with limits of time and memory: a hang or a crash is a finding, not the end.

A worker imports a function once and then makes one attempt after the other, so that an attempt costs no start of Python.
It is started anew after each attempt that did not come back.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.base import Finding

PATIENCE = 10.0
"""Seconds of work that an attempt may take."""
LIMIT = 60.0
"""Seconds after which an attempt is ended; kernels that must be compiled, and a busy machine, are forgiven up to here."""
START = 300.0
"""Seconds that a worker may take to start."""
MEMORY = 4 * 2**30
"""Bytes of address space that attempts may take beyond what the worker has at its start."""

Attempt = Callable[[int, Path], list[Finding]]


class Worker:
    """A process that makes attempts.

    Parameters
    ----------
    name : str
        The attack that attempts belong to.
    place : str
        The function that makes an attempt, ``module:function``; it takes a seed and a folder and returns findings. A
        function ``prepare`` of the same module is called first, where there is one.
    limit, memory : float, int
        Seconds and bytes that an attempt may take.
    """

    def __init__(self, name: str, place: str, *, limit: float = LIMIT, memory: int = MEMORY) -> None:
        self.name, self.place, self.limit, self.memory = name, place, limit, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Any = None
        self._answers: Any = None

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """Make one attempt; one that hangs or ends the process is a finding."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        errors = (folder.parent / f"{folder.name}.stderr").resolve()
        request = {"seed": seed, "folder": str(folder.resolve()), "errors": str(errors)}
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        answer = self._answer(self.limit)
        said = errors.read_text(errors="replace")[-4000:] if errors.exists() else ""
        errors.unlink(missing_ok=True)
        if answer is not None:
            return [Finding(**{**one, "files": tuple(map(Path, one["files"]))}) for one in answer["findings"]]
        code = self.close()
        asked = (folder / "attempt.txt").read_text(errors="replace") if (folder / "attempt.txt").exists() else ""
        if code is None:
            return [Finding(self.name, seed, "hang", f"no end after {self.limit:g} s: {asked}", said)]
        return [Finding(self.name, seed, "crash", f"the process ended with {code}: {asked}", said)]

    def close(self) -> int | None:
        """End the process; returns its exit status where it had ended by itself."""
        if self._process is None:
            return None
        try:
            code = self._process.wait(1.0 if self._ended() else 0.0)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._requests.close()
        self._answers.close()
        self._process = None
        return code

    def _ended(self) -> bool:
        """Whether the process closed its side."""
        readable, _, _ = select.select([self._answers], [], [], 0)
        return bool(readable)

    def _start(self) -> None:
        self.close()
        read_requests, write_requests = os.pipe()
        read_answers, write_answers = os.pipe()
        given = [self.place, str(read_requests), str(write_answers), str(self.memory)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attack.workers", *given],
            pass_fds=(read_requests, write_answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one), "MPLBACKEND": "agg"},
            start_new_session=True,
        )
        os.close(read_requests)
        os.close(write_answers)
        self._requests, self._answers = os.fdopen(write_requests, "w"), os.fdopen(read_answers)
        if self._answer(START) is None:
            raise RuntimeError(f"the worker for {self.place} did not start: exit status {self.close()}")

    def _answer(self, limit: float) -> Any:
        """What the worker says next, or None if it says nothing in time or has ended."""
        readable, _, _ = select.select([self._answers], [], [], limit)
        line = self._answers.readline() if readable else ""
        return json.loads(line) if line.endswith("\n") else None


def work(place: str, read_from: int, write_to: int, memory: int) -> None:
    """Make attempts as they are asked for, until the other side goes away."""
    module, _, function = place.partition(":")
    imported = importlib.import_module(module)
    attempt: Attempt = getattr(imported, function)
    getattr(imported, "prepare", lambda: None)()
    limit_memory(memory)
    with os.fdopen(read_from) as requests, os.fdopen(write_to, "w") as answers:
        print(json.dumps({"ready": True}), file=answers, flush=True)
        for line in requests:
            request = json.loads(line)
            _redirect(request["errors"])
            os.chdir(request["folder"])
            found = attempt(request["seed"], Path(request["folder"]))
            os.chdir("/")
            said = [{**one._asdict(), "files": [str(file) for file in one.files]} for one in found]
            print(json.dumps({"findings": said}), file=answers, flush=True)


def limit_memory(more: int) -> None:
    """Let this process take so many more bytes of address space than it has now; only where the system tells how many."""
    status = Path("/proc/self/statm")
    if status.exists():
        held = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + more, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _redirect(errors: str) -> None:
    """Let what is written to standard error go to a file, in which a crash leaves its last words."""
    where = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(where, 2)
    os.close(where)


class Watch:
    """Seconds of work since it was made: by the processor's clock, and by the one on the wall less compilation."""

    def __init__(self) -> None:
        from pointillist.model.clock import working_time

        self._wall, self._clocks = working_time, (working_time(), time.process_time())

    @property
    def seconds(self) -> float:
        """The smaller of both: another process may have had the processor, and several threads may have worked."""
        return min(self._wall() - self._clocks[0], time.process_time() - self._clocks[1])


if __name__ == "__main__":
    work(sys.argv[1], *map(int, sys.argv[2:5]))
