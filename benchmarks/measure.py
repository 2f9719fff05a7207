"""Clocks, memory and the facts of the machine.

Machines are noisy and shared, so whatever is compared is run in turns, and what is reported is a ratio of two medians
of one run. Peak memory is a property of a process, so it is measured in a fresh one.
"""

from __future__ import annotations

import cProfile
import importlib
import json
import os
import pstats
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from paper.plain import to_plain
from paper.timing import seconds

from pointillist.plot.page import peak_mb

PACKAGES = ("pointillist", "numpy", "scipy", "numba", "scikit-learn", "scikit-image", "opencv-python-headless")
PACKAGES += ("sporco", "pyfftw", "numexpr")
_DEEPEST = 20
"""Calls of libraries in libraries that a profile follows."""


def threads() -> int:
    """Cores that this process may use; both sides get all of them."""
    return int(joblib.effective_n_jobs(-1))


def in_turns(
    works: Mapping[str, Callable[[], Any]], repeats: int, summary: Callable[[list[float]], Any] = np.median
) -> dict[str, float]:
    """Wall times of every work, run one after the other `repeats` times, so that all meet the same noise.

    What is reported of the times of a work is their median, or another `summary` such as `min`.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(seconds(work))
    return {name: float(summary(some)) for name, some in times.items()}


def decibels(truth: NDArray, answer: NDArray, mask: NDArray | None = None) -> float:
    """PSNR in dB with 255 as peak of what a file would hold, of the pixels of a mask or of all."""
    seen = np.clip(np.rint(np.asarray(answer, np.float64)), 0, 255)
    difference = (truth - seen) if mask is None else (truth[mask] - seen[mask])
    return 10 * float(np.log10(255**2 / max(np.mean(difference**2), 1e-12)))


def profiled(work: Callable[[], Any]) -> tuple[float, dict[str, float]]:
    """Seconds of a call, and those of each function of the package with the libraries that it calls, the longest first."""
    stats = _profile(work)
    spent = {function: row[2] for function, row in stats.items()}
    total = sum(spent.values())
    for _ in range(_DEEPEST):  # time of libraries goes to their callers, until only functions of the package have any
        for function, row in stats.items():
            callers = {caller: edge[3] for caller, edge in row[4].items() if caller != function}
            if "/pointillist/" not in function[0].replace("\\", "/") and any(callers.values()):
                given, whole = spent[function], sum(callers.values())
                spent[function] = 0.0
                for caller, inside in callers.items():
                    spent[caller] += given * inside / whole
    named: dict[str, float] = {}
    for (file, _, name), seconds_there in spent.items():
        label = f"{PurePath(file).stem}.{name}"
        named[label] = named.get(label, 0.0) + seconds_there
    return total, dict(sorted(named.items(), key=lambda one: -one[1]))


def waiting(work: Callable[[], Any]) -> float:
    """Seconds that this thread waits for others during a call."""
    return sum(row[2] for (_, _, name), row in _profile(work).items() if "acquire" in name and "lock" in name)


def _profile(work: Callable[[], Any]) -> dict[Any, Any]:
    profiler = cProfile.Profile()
    profiler.runcall(work)
    return pstats.Stats(profiler).stats  # type: ignore[attr-defined]


def apart(function: str, environment: Mapping[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Call ``module:function`` in a fresh process; its dict comes back with ``peak_mb`` and ``import_mb``."""
    command = [sys.executable, "-m", "benchmarks.measure", function, json.dumps(arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{function} failed in its own process:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compile_seconds() -> dict[str, float]:
    """Time of the first calls in a process that finds no compiled kernels, and in one that finds them on disk."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (apart("benchmarks.measure:first_calls", {"NUMBA_CACHE_DIR": folder}) for _ in range(2))
    return {"cold": cold["seconds"], "cached": warm["seconds"]}


def first_calls() -> dict[str, float]:
    """Time of a first encoding and a first learning step, both tiny: nearly all of it is compilation."""
    import pointillist as pt

    images = np.random.default_rng(0).standard_normal((1, 24, 24)).astype(np.float32)
    filters = np.random.default_rng(1).standard_normal((4, 11, 11)).astype(np.float32) / 11

    def work() -> None:
        pt.encode(images, filters, 1.0)
        pt.OnlineCSC(4, 11, 1.0, sampling=0.5, random_state=0).partial_fit(images)

    return {"seconds": seconds(work)}


def _serve(function: str, arguments: str) -> None:
    module, name = function.split(":")
    work = getattr(importlib.import_module(module), name)
    if work.__name__ != first_calls.__name__:
        first_calls()  # loads the libraries and the compiled kernels, whose memory is not the work's
    before = peak_mb()
    answer = work(**json.loads(arguments))
    print(json.dumps(to_plain({**answer, "import_mb": before, "peak_mb": peak_mb()})))


if __name__ == "__main__":
    _serve(*sys.argv[1:])
