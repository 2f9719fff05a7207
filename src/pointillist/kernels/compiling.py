"""How kernels are compiled, and a clock that stands still meanwhile.

numba compiles a kernel when a process first calls it with arguments of new types, unless it finds it on disk. That takes
a second or so for each of the larger ones, so that kernels are kept cheap: they allocate nothing, so that no references
are counted; what only other kernels call is a `helper` without an entry for Python; loops stand where an expression of
arrays would bring its broadcasting and its messages along; and rare ways through a kernel are kernels of their own.
"""

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any

from numba import njit
from numba.core import event
from numba.core.registry import cpu_target

log = logging.getLogger(__name__)

_LEAN: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}  # no entry for C

_NO_REFERENCES: dict[str, Any] = {"_nrt": False}  # none are counted

kernel = njit(cache=True, **_LEAN, **_NO_REFERENCES)
"""Compile a function that Python calls and that neither allocates nor returns arrays; it is kept on disk."""

allocating_kernel = njit(cache=True, **_LEAN)
"""Compile a function that Python calls and that allocates arrays, which takes longer; it is kept on disk."""

relaxed = njit(cache=True, fastmath={"contract", "reassoc"}, **_LEAN)
"""Compile a function that Python calls, which may sum in any order and add products without rounding them before."""

helper = partial(njit, **_LEAN, no_cpython_wrapper=True)
"""Compile a function that kernels call, and Python never does; it may allocate where they may."""

spliced = njit(nogil=True, inline="always")
"""Put a function into the kernels that call it before they are compiled: for short ones, and those called once."""

Watcher = Callable[[int], object]

_PACKAGE = __name__.rpartition(".")[0]

# Whenever an index is compiled, the types that have one are tried in turn. Arrays come first among them if numba is told now
# of what it knows, and last if that happens when it looks for the first kernel on disk.
cpu_target.typing_context.refresh()


class Compilation(event.Listener):
    """Counts the kernels of this package that were compiled in this process, and the seconds that numba compiled for.

    numba compiles one function at a time, together with those that it calls: only the outermost is counted. Meanwhile
    Python looks for garbage after each function only: among the many objects of a compiler that would take a sixth of the
    time, for nothing.

    Attributes
    ----------
    kernels : int
        Kernels that were compiled so far.
    watchers : list of callables
        Each gets `kernels` when a kernel begins to be compiled, and when it is done.
    """

    def __init__(self) -> None:
        self.kernels = 0
        self.watchers: list[Watcher] = []
        self._depth, self._begin, self._seconds = 0, 0.0, 0.0
        self._collected = False  # whether the garbage collector was on before

    @property
    def seconds(self) -> float:
        """Seconds of compilation until now."""
        return self._seconds + (perf_counter() - self._begin if self._depth else 0.0)

    @property
    def busy(self) -> bool:
        """Whether something is being compiled now."""
        return self._depth > 0

    def on_start(self, event: Any) -> None:
        """Take note that a function begins to be compiled."""
        self._depth += 1
        if self._depth == 1:
            self._begin, self._collected = perf_counter(), gc.isenabled()
            gc.disable()
            if _is_ours(event):
                if self.kernels == 0:
                    log.info(
                        "compiling kernels for this machine and precision, some seconds; later runs find them on disk"
                    )
                self._tell()

    def on_end(self, event: Any) -> None:
        """Take note that a function is compiled."""
        self._depth -= 1
        gc.collect(0)  # what this function left behind, while it is still young
        if self._depth == 0:
            self._seconds += perf_counter() - self._begin
            if self._collected:
                gc.enable()
            if _is_ours(event):
                self.kernels += 1
                self._tell()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let the clock stand still while this process waits for kernels that another one compiles."""
        self._depth += 1
        if self._depth == 1:
            self._begin = perf_counter()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += perf_counter() - self._begin

    def _tell(self) -> None:
        for watcher in list(self.watchers):
            watcher(self.kernels)


def _is_ours(event: Any) -> bool:
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return str(getattr(function, "__module__", "")).startswith(_PACKAGE)


compilation = Compilation()
event.register("numba:compile", compilation)


def working_time() -> float:
    """Seconds by a clock that stands still while kernels are compiled; only differences mean something."""
    return perf_counter() - compilation.seconds


def awaits_kernels() -> bool:
    """Whether work waits for a kernel that is being compiled."""
    return compilation.busy


@contextmanager
def watching_compilation(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with the number of kernels compiled so far, whenever one begins or ends to be compiled."""
    compilation.watchers.append(watcher)
    try:
        yield
    finally:
        compilation.watchers.remove(watcher)
