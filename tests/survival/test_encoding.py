"""Kill -9 while ``pointillist encode`` works, then ``--resume``: the codes of the undisturbed run, and nothing else left."""

import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from pointillist import save
from pointillist.cli.app import run
from pointillist.data import contrast_normalise, photographs
from pointillist.learners import OnlineCSC
from pointillist.storage import PartFolder, read_arrays

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

SIGNALS = 32


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with images, one of them damaged, and a model."""
    folder = tmp_path_factory.mktemp("encoding")
    (folder / "images").mkdir()
    picture, rng = photographs("test")["camera"], np.random.default_rng(0)
    for i, (y, x) in enumerate(rng.integers(0, 250, (SIGNALS, 2))):
        Image.fromarray((255 * picture[y : y + 64, x : x + 64]).astype(np.uint8)).save(folder / "images" / f"{i}.png")
    (folder / "images" / "7.png").write_bytes(b"no image")
    model = OnlineCSC(8, 7, penalty=0.5, random_state=0)
    model.fit(contrast_normalise(picture[:60, :60])[None])
    save(model, folder / "model.safetensors", preprocessing={"normalise": "contrast"})
    return folder


def words(stored, output, *options):
    given = ["encode", stored / "model.safetensors", stored / "images", "-o", output, "--jobs", "1", "-q"]
    return [str(word) for word in [*given, "--on-error", "skip", "--checkpoint-every", "1", *options]]


def content(path):
    held = read_arrays(path, "codes")
    return held.metadata, {name: (array.dtype, array.tobytes()) for name, array in held.arrays.items()}


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_runs_end_as_one_that_was_not(stored, tmp_path, kills):
    folder, rng = tmp_path, random.Random(kills)
    whole, output = folder / "whole.safetensors", folder / "codes.safetensors"
    assert run(words(stored, whole)) == 0
    parts = PartFolder(output)
    for _ in range(kills):
        before = len(parts.files())
        process = subprocess.Popen(
            [sys.executable, "-m", "pointillist.cli", *words(stored, output, "--resume")], stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while len(parts.files()) <= before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        _, err = process.communicate(timeout=60)
        assert b"Traceback" not in err, err
        assert not output.exists(), "the run was too short for so many kills"
    assert 0 < sum(len(read_arrays(path, "codes").metadata["signals"]) for path in parts.files()) < SIGNALS - 1
    assert run(words(stored, output, "--resume")) == 0
    assert content(output) == content(whole)
    assert sorted(path.name for path in folder.iterdir()) == ["codes.safetensors", "whole.safetensors"]
