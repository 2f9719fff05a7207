"""Mutated files of every kind that the package reads, each given to every function and to commands that read that kind."""

from __future__ import annotations

import functools
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attack.base import Finding
from attack.judging import (
    Fault,
    judge_command,
    judge_left,
    judge_process,
    judge_reader,
    peak_memory,
    quiet_descriptors,
    reset_peak,
)
from attack.making import Strange, make_strange
from attack.readers import READERS, Helpers, commands
from attack.traps import Traps
from pointillist.kernels.compiling import working_time

PLAN = 3 * 10**8
"""Bytes that reading a small file may take: 64 MiB of samples that it may claim, as float32, and a copy."""
_PROCESS_PLAN = 10**9
"""Bytes that a command may take, as it is told by ``--max-memory 1G``."""
HANG = 10.0
"""Seconds of the processor that one reader may take."""
_IN_PROCESSES = 400
"""One attempt of so many runs its command as a process of its own."""
_COMMANDS = 1
"""Commands of an attempt in this process."""


class Files:
    """The attack by files; the attempt of a seed makes one file."""

    name = "files"
    about = "mutated files of every kind that is read, given to functions and commands"
    patience = 40.0
    memory = 6 * 2**30

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """Make a strange file, let everything read it that reads its kind, and judge what happens."""
        inside = folder / "in"
        inside.mkdir()
        for name in ("out", "tmp"):
            (folder / name).mkdir()
        traps = Traps(folder / "traps")
        strange = make_strange(seed, inside, traps)
        with _temporaries_in(folder / "tmp"), quiet_descriptors(folder / "printed"):
            faults = self._read(strange, random.Random(-1 - seed), seed, folder)
        if traps.sprung:
            faults.append(Fault("code ran", "a pickle in the file was loaded"))
        printed = (folder / "printed").read_text(encoding="utf-8", errors="replace")
        if not all(sign.isprintable() or sign == "\n" for sign in printed):
            faults.append(Fault("raw output", f"a library prints control characters: {printed[:300]!a}"))
        faults += judge_left(folder, folder / "tmp")
        return [
            Finding(self.name, seed, fault.kind, f"{fault.title} ({strange.how})", fault.detail, (inside,))
            for fault in faults
        ]

    def _read(self, strange: Strange, rng: random.Random, seed: int, folder: Path) -> list[Fault]:
        faults: list[Fault] = []
        helpers = _helpers(folder.parent)
        for read in READERS[strange.kind]:
            with _costs(read.__name__.strip("_"), faults):
                faults += judge_reader(read, strange.path)
        asked = commands(strange.kind, strange.path, helpers, folder / "out")
        if asked and seed % _IN_PROCESSES == _IN_PROCESSES - 1:
            return faults + judge_process(rng.choice(asked), folder, 2 * _PROCESS_PLAN)
        for words in rng.sample(asked, min(_COMMANDS, len(asked))):
            with _costs(words[0], faults):
                faults += judge_command(words)
        return faults


@contextmanager
def _costs(called: str, faults: list[Fault]) -> Iterator[None]:
    """Add a fault where something takes too much memory or time; whoever waits for ever is ended by the runner."""
    before, begin, worked = reset_peak(), time.process_time(), working_time()
    yield
    # Neither a busy machine nor kernels that are compiled for the first time count.
    seconds, taken = min(time.process_time() - begin, working_time() - worked), peak_memory() - before
    if seconds > HANG:
        faults.append(Fault("hang", f"{called} took {seconds:.1f} s"))
    if taken > 2 * PLAN:
        faults.append(Fault("memory", f"{called} took {taken / 1e6:,.0f} MB, {2 * PLAN / 1e6:,.0f} MB are allowed"))


@functools.cache
def _helpers(root: Path) -> Helpers:
    """Well-formed files that commands need, once for each process."""
    folder = root / f"helpers-{os.getpid()}"
    folder.mkdir()
    return Helpers.written(folder)


@contextmanager
def _temporaries_in(folder: Path) -> Iterator[None]:
    """Let temporary files lie in a folder that is looked at afterwards."""
    before = tempfile.tempdir
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        del os.environ["TMPDIR"]
