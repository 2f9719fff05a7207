"""Tests of memory figures, also where Python's modules for Unix are missing."""

import subprocess
import sys

import pytest

from pointillist.learners import memory

_WITHOUT = """
import sys
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
import numpy as np
import pointillist as pt
from pointillist.learners import memory
import pointillist.cli.planning
from pointillist.cli.running import run
from pointillist.report.machine import peak_mb
np.save("a.npy", np.random.default_rng(0).random((3, 20, 20)))
words = ["learn", "a.npy", "-o", "m.safetensors", "--filters", "3", "--size", "5", "--epochs", "1", "-q"]
assert run([*words, "--max-memory", "9G", "--report", "r.html"]) == 0
assert memory.memory_now() > 10**7 and peak_mb() > 10
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need the modules that are hidden")
def test_learning_needs_no_module_that_only_unix_has(tmp_path):
    done = subprocess.run([sys.executable, "-c", _WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_figures_of_this_process():
    assert 10**7 < memory.memory_now() <= memory.memory_peak()


@pytest.mark.skipif(sys.platform == "win32", reason="asks as Unix does")
def test_linux_without_proc_tells_the_peak(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_SELF", tmp_path / "proc")
    assert memory.memory_now() == memory.memory_peak() > 10**7


def test_a_system_that_does_not_tell_gives_zero(monkeypatch):
    monkeypatch.setattr(sys, "platform", "wasi")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert memory.memory_peak() == memory.memory_now() == 0
