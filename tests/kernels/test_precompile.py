"""Tests of the second process that compiles kernels, and of whether its kernels are those that learning needs."""

import os
import subprocess
import sys
import time

import pytest

from pointillist.kernels import compiling, precompile

_STEP = """
import numpy as np
import pointillist as pt
from pointillist.kernels.compiling import compilation

image = np.random.default_rng(0).standard_normal((1, 60, 60)).astype(np.float32)
model = pt.OnlineCSC(n_filters=12, filter_size=11, penalty=0.3, random_state=0, n_jobs=1)
model.partial_fit(image).partial_fit(image)
print(compilation.kernels)
"""


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """A machine of two cores without kernels on disk."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    yield
    precompile.end_compiling()


@pytest.mark.slow
def test_what_is_compiled_beforehand_is_what_a_step_of_learning_needs(empty):
    """The step runs in a process of its own, which finds all kernels on disk: loading one counts as none."""
    precompile.begin_compiling(11)
    assert precompile.is_compiling()
    before = compiling.working_time()
    began = time.perf_counter()
    precompile.end_compiling()
    assert compiling.working_time() - before < 0.5 * (time.perf_counter() - began)
    assert not precompile.is_compiling()
    assert precompile.are_compiled()
    done = subprocess.run([sys.executable, "-c", _STEP], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["0"], done.stderr


def test_a_process_that_hangs_is_given_up(empty, monkeypatch):
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(subprocess, "Popen", lambda *command, **how: sleeping)
    precompile.begin_compiling(11)
    precompile.end_compiling(longest=0.1)
    assert sleeping.returncode is not None
    assert not precompile.is_compiling()


@pytest.mark.parametrize("case", ["compiled", "one core", "no more processes"])
def test_no_process_is_begun_where_it_is_of_no_use(empty, monkeypatch, tmp_path, case):
    if case == "compiled":
        folder = tmp_path / "kernels_0123"
        folder.mkdir()
        (folder / f"sweeps.sweep-1.py{sys.version_info.major}{sys.version_info.minor}.nbi").touch()
    elif case == "one core":
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
    else:

        def refuse(*command, **how):
            raise OSError("no more processes")

        monkeypatch.setattr(subprocess, "Popen", refuse)
    precompile.begin_compiling(11)
    assert not precompile.is_compiling()
