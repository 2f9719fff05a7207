"""Tests of how kernels are compiled, of the clock that stands still meanwhile, and of what is told about them."""

import gc
import logging
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from numba import types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from pointillist.kernels import compiling, convolution
from pointillist.kernels.compiling import kernel, routine


@pytest.fixture
def now(monkeypatch):
    """What the clock on the wall shows."""
    shown = [100.0]
    monkeypatch.setattr(compiling, "perf_counter", lambda: shown[0])
    return shown


def compiled(dispatcher=convolution.correlate):
    """What numba says while it compiles a function."""
    return event.trigger_event("numba:compile", data={"dispatcher": dispatcher})


def test_the_clock_stands_still_while_kernels_are_compiled(now):
    begin = compiling.working_time()
    now[0] += 1
    with compiled():
        now[0] += 10
        assert compiling.working_time() == pytest.approx(begin + 1)
        with compiled():  # a function that the first one calls
            now[0] += 20
        now[0] += 30
    assert compiling.working_time() == pytest.approx(begin + 1)
    now[0] += 2
    assert compiling.working_time() == pytest.approx(begin + 3)


def test_the_clock_goes_on_after_a_kernel_that_cannot_be_compiled(now):
    begin = compiling.working_time()
    underway = compiled()
    underway.__enter__()
    now[0] += 10
    error = TypeError()
    underway.__exit__(TypeError, error, None)
    now[0] += 2
    assert compiling.working_time() == pytest.approx(begin + 2)


def test_watchers_hear_of_kernels_of_this_package_and_not_of_what_they_call(now):
    heard = []
    with compiling.watching_compilation(heard.append):
        with compiled(), compiled():
            pass
        with compiled(dispatcher=None):
            now[0] += 1
        with compiled():
            pass
    with compiled():
        pass
    first = heard[0]
    assert heard == [first, first + 1, first + 1, first + 2]


def test_the_first_kernel_is_logged(monkeypatch, caplog):
    monkeypatch.setattr(compiling.compilation, "kernels", 5)
    fresh = compiling.Compilation()
    event.register("numba:compile", fresh)
    try:
        with caplog.at_level(logging.INFO, "pointillist"):
            for _ in range(2):
                with compiled():
                    pass
    finally:
        event.unregister("numba:compile", fresh)
    assert fresh.kernels == 2
    assert [record.getMessage().split(" for ")[0] for record in caplog.records] == ["compiling kernels"]


@pytest.mark.parametrize("collected", [True, False])
def test_garbage_is_left_alone_meanwhile_and_then_as_before(collected):
    before = gc.isenabled()
    (gc.enable if collected else gc.disable)()
    try:
        with compiled():
            with compiled():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() == collected
    finally:
        (gc.enable if before else gc.disable)()


def test_numba_has_an_upper_bound_because_routines_build_on_its_insides():
    """`routine` subclasses the compiler and the code library of numba; raise the bound once this file passes with more."""
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    (bound,) = [one for one in settings["project"]["dependencies"] if one.startswith("numba")]
    most = tuple(map(int, bound.rpartition("<")[2].split(".")))
    assert tuple(map(int, version("numba").split(".")[:2])) < most


_KEPT = """
from pointillist.kernels.compiling import kernel, routine

@routine
def twice(value):
    return 2 * value

@kernel
def apply(value):
    return twice(value) + 1

assert apply(3) == 7
print(sum(apply.stats.cache_hits.values()), len(twice.overloads))
"""


def test_routines_compute_what_their_functions_do():
    @routine
    def square(values, n):
        return values[n] * values[n]

    @routine
    def squares(values):
        total = 0.0
        for n in range(len(values)):
            total += square(values, n)
        return total

    @kernel
    def length(values, out):
        out[0] = np.sqrt(squares(values)) + square(values, 0)

    for dtype in (np.float32, np.float64):
        out = np.zeros(1, dtype)
        length(np.array([3, 4], dtype), out)
        assert out[0] == 14


def test_a_routine_has_no_machine_code_of_its_own_and_stays_a_call():
    @routine
    def twice(value):
        return 2 * value

    @kernel
    def apply(value):
        return twice(value)

    twice.compile((types.int64,))
    (part,) = twice.overloads.values()
    with global_compiler_lock:
        assert not part.library.get_pointer_to_function(part.fndesc.llvm_func_name)
    assert apply(3) == 6
    assert f"call i32 @{part.fndesc.llvm_func_name}" in apply.inspect_llvm(apply.signatures[0])


def test_errors_of_routines_reach_python():
    @routine
    def inverse(value):
        return 1 // value

    @kernel
    def apply(value):
        return inverse(value)

    assert apply(1) == 1
    with pytest.raises(ZeroDivisionError):
        apply(0)


def test_kernels_on_disk_hold_their_routines(tmp_path):
    """A second process finds the kernel together with what it calls, and compiles nothing."""
    script = tmp_path / "kept.py"
    script.write_text(_KEPT)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["0", "1"], ["1", "0"]]
