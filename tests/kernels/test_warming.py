"""Tests of the second process that compiles a kernel, and of whether its kernels are those that learning needs."""

import subprocess
import sys

import pytest

from pointillist.kernels import warming
from pointillist.kernels.compiling import working_time

_REHEARSED = """
import numpy as np
import pointillist as pt
from pointillist.kernels import convolution, descent, statistics, sweeps, warming
from pointillist.learners.calibration import compile_update

kernels = {
    f"{module.__name__}.{name}": kernel
    for module in (convolution, descent, statistics, sweeps)
    for name, kernel in vars(module).items()
    if hasattr(kernel, "signatures")
}
model = pt.OnlineCSC(n_filters=9, filter_size=11, penalty=0.1, random_state=0, n_jobs=1)
warming.compile_descent(11)
warming.compile_second_search(11)
warming.compile_search(11)
compile_update(model, (33, 33))
assert warming.is_compiled()
before = {name: len(kernel.signatures) for name, kernel in kernels.items()}
image = np.random.default_rng(0).standard_normal((1, 60, 60)).astype(np.float32)
model.partial_fit(image).partial_fit(image)
late = [name for name, kernel in kernels.items() if len(kernel.signatures) > before[name]]
assert not late, late
"""


def test_what_is_compiled_beforehand_is_what_a_step_of_learning_needs():
    """A process of its own, because other tests have called kernels with many types."""
    done = subprocess.run([sys.executable, "-c", _REHEARSED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def begun(monkeypatch):
    """The commands of processes that were begun, on a machine of two cores without kernels."""
    commands = []

    class Process:
        ended = waited = False

        def __init__(self, command, **how):
            commands.append(self)
            self.command = command

        def wait(self, seconds=None):
            self.waited = True

        def kill(self):
            self.ended = True

    monkeypatch.setattr(warming.subprocess, "Popen", Process)
    monkeypatch.setattr(warming.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(warming, "is_compiled", lambda: False)
    monkeypatch.setattr(warming, "_processes", [])
    return commands


def test_a_second_process_is_begun_and_waited_for(begun):
    warming.begin_compiling(11)
    assert [process.command[-1] for process in begun] == ["11"]
    assert warming.is_compiling()
    warming.end_compiling()
    assert begun[0].waited
    assert not warming.is_compiling()


def test_a_process_that_hangs_is_given_up(begun, monkeypatch):
    warming.begin_compiling(11)

    def hang(seconds=None):
        if seconds is not None:
            raise subprocess.TimeoutExpired("compile", seconds)

    begun[0].wait = hang
    warming.end_compiling()
    assert begun[0].ended
    assert not warming.is_compiling()


@pytest.mark.parametrize("case", ["compiled", "one core"])
def test_no_process_is_begun_where_it_is_of_no_use(begun, monkeypatch, case):
    if case == "compiled":
        monkeypatch.setattr(warming, "is_compiled", lambda: True)
    else:
        monkeypatch.setattr(warming.os, "cpu_count", lambda: 1)
    warming.begin_compiling(11)
    assert not begun
    assert not warming.is_compiling()


def test_a_process_that_cannot_be_begun_is_no_error(begun, monkeypatch):
    def refuse(*command, **how):
        raise OSError("no more processes")

    monkeypatch.setattr(warming.subprocess, "Popen", refuse)
    warming.begin_compiling(11)
    assert not warming.is_compiling()


def test_nothing_is_compiled_in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not warming.is_compiled()


def test_no_clock_counts_the_wait(begun, monkeypatch):
    shown = [100.0]
    monkeypatch.setattr("pointillist.kernels.compiling.perf_counter", lambda: shown[0])
    warming.begin_compiling(11)

    def wait(seconds=None):
        shown[0] += 7

    begun[0].wait = wait
    before = working_time()
    warming.end_compiling()
    # The process was waited for twice: until it was done, and to be rid of it.
    assert working_time() - before == pytest.approx(7)
