"""Kill -9 at random moments, always resumed: the filters of the uninterrupted run, and nothing left lying about."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pointillist import load
from pointillist.storage import CheckpointFolder, load_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

PROGRAM = Path(__file__).with_name("program.py")


def start(output, options):
    command = [sys.executable, str(PROGRAM), str(output), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out.splitlines()


def kill_after(process, lines, delay):
    """Wait for so many lines (or the end), then a moment, then kill -9; the number of the last step that was told."""
    last = None
    for _ in range(lines):
        line = process.stdout.readline()
        if not line:
            break
        last = line.strip()
    time.sleep(delay)
    process.kill()
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return last


def survive(tmp_path, options, kills, longest_leg, seed):
    """Run once in peace and once with `kills`; what both ended with."""
    (tmp_path / "peace").mkdir()
    (tmp_path / "war").mkdir()
    whole = tmp_path / "peace" / "filters.safetensors"
    finish(start(whole, options))
    output = tmp_path / "war" / "filters.safetensors"
    folder, rng, steps, resumed = CheckpointFolder(output), random.Random(seed), 0, 0
    for _ in range(kills):
        process = start(output, options)
        # Now and then while it starts or loads; otherwise some steps on, wherever in a step or a checkpoint that is.
        early = rng.random() < 0.15
        last = kill_after(process, 0 if early else rng.randint(1, longest_leg), rng.uniform(0, 2.5 if early else 0.1))
        assert last != "done", "the run was too short for so many kills"
        steps += last is not None
        for path in folder.files():
            load_model(path)
        resumed += bool(folder.files())
    assert steps > 0
    assert resumed > 0
    lines = finish(start(output, options))
    assert lines[-1] == "done"
    assert int(lines[0]) > 1, "the last leg began from scratch"
    return load(whole), load(output), sorted(entry.name for entry in output.parent.iterdir())


def check(whole, survivor, left):
    np.testing.assert_array_equal(survivor.filters_, whole.filters_)
    np.testing.assert_array_equal(survivor.usage_, whole.usage_)
    assert [info["objective"] for info in survivor.history_] == [info["objective"] for info in whole.history_]
    assert left == ["filters.safetensors"]


@pytest.mark.parametrize(
    "options",
    [
        ["--rank", "1", "--robust"],
        pytest.param([], marks=pytest.mark.slow),
        pytest.param(["--rank", "2"], marks=pytest.mark.slow),
        pytest.param(["--robust"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_killed_three_times(tmp_path, options):
    whole, survivor, left = survive(tmp_path, [*options, "--epochs", "6"], kills=3, longest_leg=8, seed=2)
    check(whole, survivor, left)
    if "--rank" in options:
        np.testing.assert_array_equal(survivor.patterns_, whole.patterns_)
        np.testing.assert_array_equal(survivor.shapes_, whole.shapes_)
    if "--robust" in options:
        assert sum(info["outliers"] for info in whole.history_) > 0
        assert [info["outliers"] for info in survivor.history_] == [info["outliers"] for info in whole.history_]
        np.testing.assert_array_equal(survivor.outliers_, whole.outliers_)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_fifty_times(tmp_path):
    options = ["--filters", "64", "--size", "11", "--side", "64", "--signals", "40", "--epochs", "35", "--every", "1"]
    check(*survive(tmp_path, options, kills=50, longest_leg=26, seed=3))
