"""Does everything in one process for a long time: memory, open files, threads, caches and temporary files must not grow.

The process is a child of its own, ``python -m attack.soak``, so that nothing else counts. Every attempt lets it work for a
while and reads its figures; what grows from reading to reading is a finding.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attack.base import Finding
from attack.child import Child
from pointillist.system import memory_now

ROUNDS = 1
"""How often each activity is done in one attempt."""
LEAST = 12
"""Readings before growth is judged: everything has been loaded and compiled by then."""
GROWTH = 0.02
"""Share of its memory by which a process may grow in an hour, or in less."""
COUNTED = ("files", "threads", "cached", "temporary")
"""What must not be more in the end than in the middle."""


class Reading(NamedTuple):
    """What a process holds after a garbage collection."""

    seconds: float
    memory: int
    files: int
    threads: int
    cached: int
    temporary: int


class Soak:
    """One attempt is some seconds of work in a process that lives as long as the attack."""

    name = "soak"
    about = "shapes, sources, learners, solvers, restoration, plots and failures in one process: nothing grows"
    patience = 600.0

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        """What the process held after each attempt."""
        self._child: Child | None = None

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """Some work, a reading, and what has grown so far."""
        answer = self._work({"seed": seed, "folder": str(folder), "rounds": ROUNDS})
        found = [Finding(self.name, seed, "unnamed error", title, detail) for title, detail in answer["failures"]]
        self.readings.append(Reading(**answer["reading"]))
        if len(self.readings) % LEAST == 0:
            grown, figures = growth(self.readings), "\n".join(map(str, self.readings))
            found += [Finding(self.name, seed, "growth", words, figures) for words in grown]
        return found

    def _work(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let the process work; one that ended makes room for the next."""
        if self._child is None:
            self._child = Child("attack.soak")
        try:
            return self._child.ask(request)
        except (RuntimeError, BrokenPipeError):
            self._child = None
            raise

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
            self._child = None


def growth(readings: Sequence[Reading]) -> list[str]:
    """What has grown in the second half of several readings, in words."""
    half = list(readings[len(readings) // 2 :])
    seconds = np.array([one.seconds for one in half])
    memory = np.array([one.memory for one in half], float)
    slope = float(np.polyfit(seconds - seconds[0], memory, 1)[0])
    # A run of less than an hour may grow by as much as one of an hour: figures scatter by a few pages.
    share = slope * max(float(seconds[-1] - seconds[0]), min(3600.0, float(seconds[-1]))) / float(np.mean(memory))
    found = []
    if share > GROWTH:
        found.append(f"memory grows by {100 * share:.1f} %, {slope * 3600 / 2**20:.1f} MiB an hour")
    for name in COUNTED:
        first, last = (
            [getattr(one, name) for one in part] for part in (half[: len(half) // 2], half[len(half) // 2 :])
        )
        if min(last) > max(first):
            found.append(f"{name} grow from {max(first)} to {min(last)}")
    return found


def read_process(begin: float, temporary: Path) -> Reading:
    """What this process holds now."""
    for _ in range(2):
        gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # memory that was freed, but not given back, is no growth
    handles = Path("/proc/self/fd")
    return Reading(
        time.monotonic() - begin,
        memory_now(),
        len(list(handles.iterdir())) if handles.exists() else 0,
        threading.active_count(),
        _cached(),
        len(list(temporary.iterdir())),
    )


def _cached() -> int:
    """Entries of all caches of the package's functions."""
    caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    return sum(one.cache_info().currsize for one in caches if str(one.__module__).startswith("pointillist"))


def work(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Do everything some times; title and traceback of what failed."""
    from attack.activities import ACTIVITIES

    rng, failures = np.random.default_rng(request["seed"]), []
    for number in rng.permutation(np.repeat(np.arange(len(ACTIVITIES)), request["rounds"])):
        activity = ACTIVITIES[number]
        with tempfile.TemporaryDirectory(dir=request["folder"]) as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                activity(rng, Path(folder))
            except Exception as error:  # everything that an activity does is expected to work
                failures.append((f"{activity.__name__}: {type(error).__name__}: {error}", traceback.format_exc()))
    return failures


def main() -> None:
    """Work whenever asked to, and answer with a reading."""
    answers, begin = os.fdopen(os.dup(1), "w", encoding="utf-8"), time.monotonic()
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if tempfile.tempdir is None:  # whatever makes temporary files makes them here
            tempfile.tempdir = tempfile.mkdtemp(prefix="soak-", dir=Path(request["folder"]).parent)
        failures = work(request)
        reading = read_process(begin, Path(tempfile.tempdir))
        answers.write(json.dumps({"failures": failures, "reading": reading._asdict()}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
