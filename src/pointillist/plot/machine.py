"""The facts that a report owes its reader: versions, machine, threads, and how much memory was taken."""

import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pointillist.parallel import effective_jobs
from pointillist.system import load, memory_peak, processor

PACKAGES = ("pointillist", "numpy", "scipy", "numba", "scikit-learn")


def facts(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Versions and machine, for the record; None where a package is not installed."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "platform": platform.platform(),
        "processor": processor(),
        "threads": effective_jobs(-1),
        "load": load(),
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in packages},
    }


def fact_items(known: dict[str, Any]) -> dict[str, str]:
    """`facts` as a page shows them."""
    versions = [f"{name} {number}" for name, number in known["versions"].items() if number is not None]
    busy = ", ".join(f"{value:.1f}" for value in known["load"])
    return {
        "when": known["when"],
        "machine": f"{known['processor']}, {known['threads']} threads"
        + (f" (load before the start {busy})" if busy else ""),
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
