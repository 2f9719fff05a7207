"""The facts that a report owes its reader: versions, machine, threads, and how much memory was taken."""

import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pointillist.learners.memory import memory_peak
from pointillist.solvers.base import effective_jobs

PACKAGES = ("pointillist", "numpy", "scipy", "numba", "scikit-learn")


def facts(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Versions and machine, for the record; None where a package is not installed."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "platform": platform.platform(),
        "processor": processor(),
        "threads": effective_jobs(-1),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in packages},
    }


def fact_items(known: dict[str, Any]) -> dict[str, str]:
    """`facts` as a page shows them."""
    versions = [f"{name} {number}" for name, number in known["versions"].items() if number is not None]
    load = ", ".join(f"{value:.1f}" for value in known["load"])
    return {
        "when": known["when"],
        "machine": f"{known['processor']}, {known['threads']} threads"
        + (f" (load before the start {load})" if load else ""),
        "system": f"{known['platform']}, Python {known['python']}",
        "versions": ", ".join(versions),
    }


def peak_mb(process: int | None = None) -> float | None:
    """Largest resident memory so far in MiB of this process, or on Linux of another; None where the system does not tell."""
    return memory_peak(process) / 2**20 or None


def installed(name: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """The processor's name as its maker gives it, where the system tells."""
    if sys.platform == "linux":
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
