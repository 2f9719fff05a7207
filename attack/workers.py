"""Forked processes that make attempts, watched from outside: one that dies or hangs is a finding, and is replaced."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from attack.base import Attack, Finding

_PATIENCE = 600.0
_LAST_WORDS = 0.2
"""Seconds in which a process that hangs may write where it does."""


class Task(NamedTuple):
    """One attempt to be made."""

    attack: str
    seed: int


class Outcome(NamedTuple):
    """One attempt that was made; `failure` is "hang" or "crash" where its process did not end it."""

    task: Task
    seconds: float
    findings: list[Finding]
    failure: str = ""


class Worker:
    """A forked process that makes one attempt after the other.

    Parameters
    ----------
    attacks : mapping from name to attack
    folder : Path
        Where attempts have their folders.
    """

    def __init__(self, attacks: Mapping[str, Attack], folder: Path) -> None:
        self._attacks, self._folder = attacks, folder
        self.task: Task | None = None
        self._begin = 0.0
        context = multiprocessing.get_context("fork")
        self.connection, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(attacks, folder, there), daemon=False)
        self._process.start()
        there.close()

    def give(self, task: Task) -> None:
        """Let an attempt be made."""
        self.task, self._begin = task, time.monotonic()
        self.connection.send_bytes(json.dumps(task).encode())

    @property
    def overdue(self) -> bool:
        """Whether the attempt takes longer than its attack has patience."""
        return self.task is not None and time.monotonic() - self._begin > patience(self._attacks[self.task.attack])

    def take(self) -> Outcome:
        """The outcome of the attempt, once the connection has something or its end."""
        assert self.task is not None
        task, seconds = self.task, time.monotonic() - self._begin
        try:
            answer = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return self._died(task, seconds)
        self.task = None
        return Outcome(task, seconds, [_finding(one) for one in answer])

    def hang(self) -> Outcome:
        """End the process of an attempt that is overdue; the finding says where it hung."""
        assert self.task is not None
        task, seconds = self.task, time.monotonic() - self._begin
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGUSR1)
        self._process.join(_LAST_WORDS)
        self.end()
        title = f"took longer than {patience(self._attacks[task.attack]):g} s"
        return self._failed(task, seconds, "hang", title)

    def end(self) -> None:
        """End the process and all that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.connection.close()

    def _died(self, task: Task, seconds: float) -> Outcome:
        self._process.join()
        code = self._process.exitcode or 0
        self.end()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return self._failed(task, seconds, "crash", f"the process ended with {how}")

    def _failed(self, task: Task, seconds: float, kind: str, title: str) -> Outcome:
        self.task, folder = None, self._folder / f"{task.attack}-{task.seed}"
        stack = _stack(folder)
        detail = stack.read_text(errors="replace") if stack.exists() else "nothing was written"
        files = tuple(sorted(folder.iterdir())) if folder.exists() else ()
        return Outcome(task, seconds, [Finding(task.attack, task.seed, kind, title, detail, files)], kind)


def patience(attack: Attack) -> float:
    """Seconds after which an attempt counts as a hang."""
    return float(getattr(attack, "patience", _PATIENCE))


def attempt(attack: Attack, seed: int, folder: Path) -> list[Finding]:
    """One attempt in an empty folder, with the attack's limit of memory; an error of the attack itself is a finding."""
    try:
        with _limited(getattr(attack, "memory", None)):
            return attack.attempt(seed, folder)
    except Exception as error:  # whatever an attack did not expect
        title = f"{type(error).__name__} came out of the attack: {error}"
        files = tuple(sorted(folder.iterdir()))
        return [Finding(attack.name, seed, "unnamed error", title, traceback.format_exc(), files)]


@contextmanager
def _limited(memory: int | None) -> Iterator[None]:
    """Let the process take no more than so many bytes beyond what it has."""
    if memory is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _serve(attacks: Mapping[str, Attack], root: Path, connection: Connection) -> None:
    os.setsid()  # its children end with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner says when to end
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            name, seed = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        folder = root / f"{name}-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with open(_stack(folder), "w", encoding="utf-8") as stack:
            faulthandler.enable(stack)
            faulthandler.register(signal.SIGUSR1, stack)
            found = attempt(attacks[name], seed, folder)
            faulthandler.unregister(signal.SIGUSR1)
            faulthandler.disable()
        connection.send_bytes(json.dumps(found, default=str).encode())


def _stack(folder: Path) -> Path:
    """Where a process writes the place of its end, beside the folder of the attempt."""
    return folder.with_name(f"{folder.name}.stack")


def _finding(plain: list[Any]) -> Finding:
    attack, seed, kind, title, detail, files = plain
    return Finding(attack, seed, kind, title, detail, tuple(Path(path) for path in files))
