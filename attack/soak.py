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
import mmap
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

ROUNDS = 1
"""How often each activity is done in one attempt."""
LEAST = 48
"""Readings before growth is judged: everything has been loaded and compiled by then, and caches have what they may hold."""
GROWTH = 0.02
"""Share of its memory by which a process may grow in an hour, or in the second half of less."""
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

    @property
    def remark(self) -> str:
        """By how much its memory grew since the middle of the time."""
        if len(self.readings) < LEAST:
            return ""
        half = self.readings[len(self.readings) // 2 :]
        return f"{trend(half)[0]:+.2%} of memory in the last {half[-1].seconds - half[0].seconds:,.0f} s"

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
            self._child = None


def growth(readings: Sequence[Reading]) -> list[str]:
    """What has grown in the second half of several readings, in words."""
    half = list(readings[len(readings) // 2 :])
    share, slope = trend(half)
    # What grew in the second half of an hour counts twice; in a few minutes a single step would look like a leak then.
    found, share = [], share * min(max(half[-1].seconds / 1800, 1.0), 2.0)
    if share > GROWTH:
        found.append(f"memory grows by {100 * share:.1f} %, {slope * 3600 / 2**20:.1f} MiB an hour")
    for name in COUNTED:
        first, last = (
            [getattr(one, name) for one in part] for part in (half[: len(half) // 2], half[len(half) // 2 :])
        )
        if min(last) > max(first):
            found.append(f"{name} grow from {max(first)} to {min(last)}")
    return found


def trend(readings: Sequence[Reading]) -> tuple[float, float]:
    """The share by which memory grew from the first to the last reading, and bytes a second, by a line through all."""
    seconds = np.array([one.seconds for one in readings])
    memory = np.array([one.memory for one in readings], float)
    slope = float(np.polyfit(seconds - seconds[0], memory, 1)[0])
    return slope * float(seconds[-1] - seconds[0]) / float(np.mean(memory)), slope


def read_process(begin: float, temporary: Path) -> Reading:
    """What this process holds now."""
    for _ in range(2):
        gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # memory that was freed, but not given back, is no growth
    handles = Path("/proc/self/fd")
    return Reading(
        time.monotonic() - begin,
        int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE,
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
