"""A second process that learns a little from noise, so that kernels are compiled on two cores where none are on disk yet.

This module loads nothing that is slow, so that the second process can begin before the first has loaded its libraries.
"""

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_LEARNING = """
import numpy, pointillist
noise = numpy.random.default_rng(0).standard_normal((1, {side}, {side})).astype("float32")
model = pointillist.OnlineCSC(n_filters=9, filter_size={size}, penalty=0.1, random_state=0, n_jobs=1)
model.partial_fit(noise).partial_fit(noise)
"""

_processes: list[subprocess.Popen[bytes]] = []


def begin_compiling(filter_size: int) -> None:
    """Learn filters of so many samples a side in a second process, unless there are kernels on disk.

    Nothing happens on a machine with one core, where the second process would only be in the way.
    """
    if (os.cpu_count() or 1) < 2 or not sys.executable or are_compiled():
        return
    learning, nowhere = _LEARNING.format(size=filter_size, side=5 * filter_size), subprocess.DEVNULL
    with suppress(OSError):  # this process compiles everything then
        command = [sys.executable, "-P", "-c", learning]
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
