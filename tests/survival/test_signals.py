"""Signals to the command line: what was learned is kept, and ``--resume`` ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from pointillist import load
from pointillist.data import photographs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    picture = photographs("test")["camera"]
    for i in range(4):
        crop = picture[60 + 20 * i : 100 + 20 * i, 60:100]
        Image.fromarray((255 * crop).astype(np.uint8)).save(folder / f"{i}.png")
    return folder


def learn(images, output, *options):
    settings = ["--filters", "6", "--size", "5", "--jobs", "1", "--epochs", "60", "--batch", "2"]
    command = [sys.executable, "-m", "pointillist.cli", "learn", str(images), "-o", str(output), *settings, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process, code=0):
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out


@pytest.fixture(scope="module")
def whole(images, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "filters.safetensors"
    ended(learn(images, output))
    return load(output)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_stopped_run_is_resumed_to_the_bit(images, whole, tmp_path, number):
    output = tmp_path / "filters.safetensors"
    process = learn(images, output, "--checkpoint-every", "1h")
    for line in process.stderr:
        if line.startswith("step 1/"):
            break
    process.send_signal(number)
    assert "--resume" in ended(process, code=128 + number)
    stopped = load(output)
    assert 1 <= stopped.n_iter_ < whole.n_iter_
    assert len(list(tmp_path.iterdir())) == 2
    ended(learn(images, output, "--resume"))
    model = load(output)
    np.testing.assert_array_equal(model.filters_, whole.filters_)
    assert model.n_iter_ == whole.n_iter_
    assert [entry.name for entry in tmp_path.iterdir()] == ["filters.safetensors"]


def test_a_killed_stream_of_crops_is_resumed_to_the_bit(images, tmp_path):
    crops = ["--crops", "40", "--crop-size", "24", "--epochs", "1", "--checkpoint-every", "1"]
    whole, output = tmp_path / "whole.safetensors", tmp_path / "filters.safetensors"
    ended(learn(images, whole, *crops))
    process = learn(images, output, *crops)
    while process.poll() is None and len(list(tmp_path.glob("filters.checkpoint-*"))) < 2:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)
    assert not output.exists()
    ended(learn(images, output, *crops, "--resume"))
    np.testing.assert_array_equal(load(output).filters_, load(whole).filters_)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["filters.safetensors", "whole.safetensors"]
