"""Clocks, memory and the facts of the machine.

Machines are noisy and shared, so whatever is compared is run in turns, and what is reported is a ratio of two medians
of one run. Peak memory is a property of a process, so it is measured in a fresh one.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import joblib
import numpy as np

PACKAGES = ("pointillist", "numpy", "scipy", "numba", "scikit-learn", "sporco", "pyfftw", "numexpr")


def threads() -> int:
    """Cores that this process may use; both sides get all of them."""
    return int(joblib.effective_n_jobs(-1))


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_turns(works: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Wall times of every work, run one after the other `repeats` times, so that all meet the same noise."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(seconds(work))
    return times


def median(times: Sequence[float]) -> float:
    return float(np.median(times))


def first_at_most(times: Sequence[float], values: Sequence[float], level: float) -> float | None:
    """The first time whose value is at most `level`; None if there is none. Nothing is interpolated."""
    return next((t for t, value in zip(times, values, strict=True) if value <= level), None)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of log cost over log size: cost ~ size^exponent."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def best_of(work: Callable[[], Any], repeats: int) -> float:
    """The shortest of several wall times, after one call to warm up."""
    work()
    return min(seconds(work) for _ in range(repeats))


def apart(function: str, environment: Mapping[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Call ``module:function`` in a fresh process; its dict comes back with ``peak_mb`` and ``import_mb``."""
    command = [sys.executable, "-m", "benchmarks.measure", function, json.dumps(arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{function} failed in its own process:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_mb() -> float:
    """Largest resident memory of this process so far.

    Not from getrusage on Linux: there the maximum is handed down by the process that started this one.
    """
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 2**10
    except (OSError, StopIteration):
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


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


def facts() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "platform": platform.platform(),
        "processor": _processor(),
        "threads": threads(),
        "load": list(os.getloadavg()),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def plain(value: Any) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _serve(function: str, arguments: str) -> None:
    module, name = function.split(":")
    work = getattr(importlib.import_module(module), name)
    if work.__name__ != first_calls.__name__:
        first_calls()  # loads the libraries and the compiled kernels, whose memory is not the work's
    before = peak_mb()
    answer = work(**json.loads(arguments))
    print(json.dumps(plain({**answer, "import_mb": before, "peak_mb": peak_mb()})))


if __name__ == "__main__":
    _serve(*sys.argv[1:])
