"""A second process that compiles the largest kernel, where none is on disk yet, while the first compiles most others.

What else the second one compiles makes both end at about the same time.

This module loads nothing that is slow, so that the second process can begin before the first has loaded its libraries.
"""

import atexit
import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_KERNEL = "sweeps._descend"
_LONGEST = 120.0
"""Seconds after which the second process is given up; the kernel is then compiled in the first."""

_processes: list[subprocess.Popen[bytes]] = []


def begin_compiling(filter_size: int) -> None:
    """Compile the descent on filters of so many samples a side, and some more, in a second process, unless it is on disk.

    Nothing happens on a machine with one core, where the second process would only be in the way.
    """
    if (os.cpu_count() or 1) < 2 or not sys.executable or is_compiled():
        return
    command, nowhere = [sys.executable, "-P", "-m", __name__, str(filter_size)], subprocess.DEVNULL
    with suppress(OSError):  # this process compiles everything then
        _processes.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))
        atexit.register(_end)


def is_compiling() -> bool:
    """Whether a second process was begun that was not waited for yet."""
    return bool(_processes)


def end_compiling() -> None:
    """Wait until the second process is done, however it ends."""
    from pointillist.kernels.compiling import compilation

    with compilation.elsewhere(), suppress(subprocess.TimeoutExpired):
        for process in _processes:
            process.wait(_LONGEST)
    _end()


def is_compiled() -> bool:
    """Whether the kernel is on disk, where numba keeps it: in a folder that was named, beside its source, or the user's."""
    source = Path(__file__).resolve().parent
    hashed = f"{source.name}_{hashlib.sha1(str(source).encode(), usedforsecurity=False).hexdigest()}"
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(named) / hashed] if named else [source / "__pycache__", *(home / hashed for home in _homes())]
    pattern = f"{_KERNEL}-*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"
    return any(True for folder in folders for _ in folder.glob(pattern))


def _homes() -> list[Path]:
    """Where numba keeps kernels of a user, on all systems."""
    with suppress(RuntimeError):  # users without a home
        home = Path.home()
        unix = Path(os.environ.get("XDG_CACHE_HOME", home / ".cache"))
        windows = Path(os.environ.get("LOCALAPPDATA", home))
        return [unix / "numba", home / "Library" / "Caches" / "numba", windows / "numba" / "Cache"]
    return []


def _end() -> None:
    for process in _processes:
        process.kill()
        process.wait()
    _processes.clear()


def compile_descent(filter_size: int) -> None:
    """Descend on a code in a small picture of float32, for the sake of the kernel that this compiles and keeps."""
    import numpy as np

    from pointillist.kernels import bundles, combining, sweeps, team, updates

    layout, signal, _ = _small(filter_size)
    codes, one, lengths = np.zeros(1, np.int64), np.ones(1, np.float32), np.full(filter_size, filter_size)
    rows = np.arange(filter_size) * 3 * filter_size
    strips = sweeps.Strips(1, np.arange(2), np.array([0, filter_size]), rows, lengths, lengths, np.ones(1, bool))
    memory = combining.make_memory(np.zeros((combining.MEMORY + 1, len(signal)), np.float32), 1, 1)
    spare = bundles.bundle_spare((1, 1, filter_size, filter_size))
    together = bundles.make_bundles(layout, spare) if spare > 0 else None
    sweeps.descend(
        0, 1, team.make_team(), layout, updates.Places(codes, codes), sweeps.Codes(one.copy(), one, one, np.ones(1, bool)),
        np.float32(0), False, signal.copy(), signal, True, strips, memory, sweeps.Effort(1.0, 1, 1), together,
    )  # fmt: skip


def compile_second_search(filter_size: int) -> None:
    """Search some positions of a small picture again, for the sake of the kernels that only later rounds of descent need."""
    import numpy as np

    from pointillist.kernels import descent
    from pointillist.kernels.layout import make_pairs

    layout, signal, grid = _small(filter_size)
    best, winner = np.zeros(grid.prod(), np.float32), np.zeros(grid.prod(), np.int32)
    pairs = make_pairs(np.ones((1, 1, filter_size, filter_size), np.float32), (3 * filter_size,) * 2)
    descent.scan_positions(layout, pairs, signal, np.zeros(1, np.int64), _factors(layout), False, best, winner)
    lines = signal[: grid[0]].reshape(1, -1, 1)
    descent.window_sums(lines, 1, lines.copy())


def compile_search(filter_size: int) -> None:
    """Search a small picture of float32 for codes, for the sake of kernels that a descent needs before and after it."""
    import numpy as np

    from pointillist.kernels import convolution, descent

    layout, signal, grid = _small(filter_size)
    codes, one = np.zeros(1, np.int64), np.ones(1, np.float32)
    best, winner = np.zeros(grid.prod(), np.float32), np.zeros(grid.prod(), np.int32)
    descent.scan(layout, signal, 0, 1, _factors(layout), False, best, winner)
    fresh = descent.pick(best, winner, grid, 2, np.float32(1))
    descent.merge(codes, one, fresh, len(best), 1)
    convolution.curvatures(layout, codes, signal, one)
    descent.locate(layout, codes, codes.copy(), codes.copy())
    convolution.synthesise(layout, codes, np.ones(1), signal.astype(np.float64))


def _small(filter_size: int) -> tuple[Any, Any, Any]:
    """One filter laid out for a picture of three times its side, the flat picture, and the grid of positions."""
    import numpy as np

    from pointillist.kernels.layout import SPARE_SAMPLES, make_layout

    side = 3 * filter_size
    filters, grid = np.ones((1, 1, filter_size, filter_size), np.float32), np.full(2, side - filter_size + 1)
    layout = make_layout(filters, tuple(grid.tolist()), (side, side))
    return layout, np.ones(side**2 + SPARE_SAMPLES, np.float32), grid


def _factors(layout: Any) -> Any:
    """Factors 1/λ of one for all filters of a layout."""
    import numpy as np

    return np.ones((len(layout.blocks) // len(layout.taps), 1), np.float32)


if __name__ == "__main__":
    compile_descent(int(sys.argv[1]))
    compile_second_search(int(sys.argv[1]))
