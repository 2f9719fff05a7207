"""Tests of stopping: a first signal keeps what was learned, a second one does not."""

import os
import signal
import subprocess
import sys

import pytest

from pointillist.cli.stopping import GracefulStop
from pointillist.learners.persistence import load

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


def test_ctrl_c_saves_what_was_learned(images, tmp_path):
    output = tmp_path / "out.safetensors"
    options = ["--filters", "4", "--size", "5", "--jobs", "1", "--epochs", "100000"]
    command = [sys.executable, "-m", "pointillist.cli", "learn", str(images), "-o", str(output), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("step 1/"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "stopping after this step" in err
    assert "stopped early" in out
    model = load(output)
    assert model.extra_["stopped_early"]
    assert 1 <= len(model.history_) < 300000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "out.safetensors"]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_interrupts(first):
    before = signal.getsignal(signal.SIGINT)
    with GracefulStop(announce=False) as stop:
        assert not stop({})
        os.kill(os.getpid(), first)
        assert stop({})
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
