"""A second process that compiles the largest kernel, that of sweeps, while the first compiles others: if none is on disk.

This module loads nothing that is slow, so that the second process can begin before the first has loaded its libraries.
"""

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_SWEEPING = """
import numpy
from pointillist.kernels.sweep import Effort
from pointillist.problem import Geometry, Problem
from pointillist.solvers.sweeping import SweepContext
filters, code = numpy.ones((1, 1, {size}, {size}), "float32"), numpy.zeros(1, int)
geometry = Geometry(({side}, {side}), ({size}, {size}), 1, "same")
context = SweepContext(Problem(filters=filters, geometry=geometry, penalty=numpy.ones((1, 1), "float32")), 0, map)
residual = geometry.spread(numpy.ones((1, {side}, {side}), "float32"))
context.sweep(code, numpy.ones(1, "float32"), residual, Effort(1.0, 0, 2))
"""

_processes: list[subprocess.Popen[bytes]] = []


def begin_compiling(filter_size: int) -> None:
    """Sweep over a code of a filter of so many samples a side in a second process, unless there are kernels on disk.

    Nothing happens on a machine with one core, where the second process would only be in the way.
    """
    if (os.cpu_count() or 1) < 2 or not sys.executable or are_compiled():
        return
    sweeping, nowhere = _SWEEPING.format(size=filter_size, side=3 * filter_size), subprocess.DEVNULL
    with suppress(OSError):  # this process compiles everything then
        command = [sys.executable, "-P", "-c", sweeping]
        _processes.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))
        atexit.register(_end)


def is_compiling() -> bool:
    """True from the begin of a second process until it was waited for."""
    return bool(_processes)


def end_compiling(longest: float = 120.0) -> None:
    """Wait until the second process is done, however it ends; after `longest` seconds it is given up."""
    from pointillist.kernels.compiling import compilation

    with compilation.elsewhere(), suppress(subprocess.TimeoutExpired):
        for process in _processes:
            process.wait(longest)
    _end()


def are_compiled() -> bool:
    """Look for kernels where numba keeps them: in the folder that NUMBA_CACHE_DIR names, or beside their source.

    Where numba may write to neither it takes a folder of the user's; the second process then finds the kernels itself.
    """
    source, named = Path(__file__).resolve().parent, os.environ.get("NUMBA_CACHE_DIR")
    folders = Path(named).glob(f"{source.name}_*") if named else [source / "__pycache__"]
    pattern = f"*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"
    return any(True for folder in folders for _ in folder.glob(pattern))


def _end() -> None:
    for process in _processes:
        process.kill()
        process.wait()
    _processes.clear()
