"""Clocks, memory and the facts of the machine.

Machines are noisy and shared, so whatever is compared is run in turns, and what is reported is a ratio of two medians
of one run. Peak memory is a property of a process, so it is measured in a fresh one.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import joblib
import numpy as np

from pointillist.report import machine
from pointillist.report.machine import peak_mb
from pointillist.reproduce.judging import exponent, first_at_most
from pointillist.reproduce.judging import shortest as best_of

__all__ = ["best_of", "exponent", "first_at_most", "peak_mb"]  # from the package, for the experiments

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


def facts() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return machine.facts(PACKAGES)


def plain(value: Any) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value


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
