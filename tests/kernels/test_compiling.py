"""Tests of the clock that stands still while kernels are compiled, and of what is told about them."""

import gc
import logging

import pytest
from numba.core import event

from pointillist.kernels import compiling, convolution


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
