"""Compilation of kernels, and a clock that stands still meanwhile.

numba compiles a kernel when a process first calls it with arguments of new types, unless it finds it on disk. That takes
a second or so for each of the larger ones, so that kernels are kept cheap: they allocate nothing, so that no references
are counted; what only other kernels call is a `helper` without an entry for Python, or a `routine`; loops stand where an
expression of arrays would bring its broadcasting and its messages along; and rare ways through a kernel are kernels of
their own.
"""

import gc
import logging
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from time import perf_counter
from typing import Any

from llvmlite import binding as llvm
from numba import njit
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

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


class _Part(JITCodeLibrary):
    """Code of a function as numba writes it, to be linked into its callers and optimised there; calls of it stay calls.

    numba optimises a `helper` and makes machine code of it, and does both once more for every kernel that it is linked into:
    the first step of learning would wait 12 s for its kernels instead of 7.5. No public interface of numba leaves that out,
    so this is the one place that builds on its insides, and the reason why its version has an upper bound.
    """

    def add_ir_module(self, ir_module: Any) -> None:
        """Take up code, and say in it that it is not to be inlined."""
        for function in ir_module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        """Leave this to those that the code is linked into."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalized = True


class _Routine(Compiler):
    """Compiles a function to a `_Part`."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function of Python."""
        state = self.state
        state.library, state.flags.no_compile = _Part(state.targetctx.codegen(), func.__qualname__), True
        result = super().compile_extra(func)
        # Callers find the code by its entry for Python, which is never entered but has to be a builtin: here the library's.
        entry = result.library.__sizeof__
        state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


routine = helper(pipeline_class=_Routine)
"""Compile a function as a part of the kernels that call it, and not by itself; Python never does."""

relaxed_routine = helper(pipeline_class=_Routine, fastmath={"contract", "reassoc"}, error_model="numpy")
"""Compile a `routine` that may sum in any order, and divides by zero without a message."""

Watcher = Callable[[int], object]

_PACKAGE = __name__.rpartition(".")[0]


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
        """True while something is being compiled."""
        return self._depth > 0

    def on_start(self, event: Any) -> None:
        """Take note that a function begins to be compiled."""
        self._enter()
        if self._depth == 1:
            self._collected = gc.isenabled()
            gc.disable()
            if _is_ours(event):
                if self.kernels == 0:
                    log.info(
                        "compiling kernels for this machine and precision, some seconds; later runs find them on disk"
                    )
                self._tell()

    def on_end(self, event: Any) -> None:
        """Take note that a function is compiled."""
        gc.collect(0)  # what this function left behind, while it is still young
        self._leave()
        if self._depth == 0:
            if self._collected:
                gc.enable()
            if _is_ours(event):
                self.kernels += 1
                self._tell()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let the clock stand still while this process waits for kernels that another one compiles."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._begin = perf_counter()

    def _leave(self) -> None:
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


@contextmanager
def watching_compilation(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with the number of kernels compiled so far, whenever one begins or ends to be compiled."""
    compilation.watchers.append(watcher)
    try:
        yield
    finally:
        compilation.watchers.remove(watcher)


def environment() -> dict[str, str]:
    """Versions of Python and of the numerical libraries, the machine and its processor: what bits of results depend on."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
        "machine": platform.machine(),
        "processor": llvm.get_host_cpu_name(),
    }
