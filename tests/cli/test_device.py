"""``--device``: taken where there is a GPU, refused with a line that names the remedy where there is none."""

import sys

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import done, refused

from pointillist import load
from pointillist.cuda import device as devices

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.fixture
def no_cupy(monkeypatch):
    """A machine without CuPy, whatever this one has."""

    devices.open_device.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    yield
    devices.open_device.cache_clear()


@pytest.mark.usefixtures("no_cupy")
@pytest.mark.parametrize("command", ["learn", "encode", "inpaint", "denoise"])
def test_a_missing_device_is_one_line_with_the_remedy(cli, images, model, command):
    files = [images / "image1.png"] if command != "encode" else [model, images / "image1.png"]
    said = cli(command, *files, "--device", "cuda")
    assert said.code == 2
    assert "--device" in said.err
    assert "pip install 'pointillist[cuda]'" in " ".join(said.err.replace("│", " ").split())


def test_an_unknown_device_is_named(cli, images):
    refused(cli("denoise", images / "image1.png", "--device", "gpu"), "'gpu'")


@pytest.mark.gpu
def test_learning_and_encoding_on_a_device(cli, images, model, tmp_path):
    file, codes = tmp_path / "there.safetensors", tmp_path / "codes.safetensors"
    few = ["--filters", "4", "--size", "5", "--epochs", "2", "--batch", "3"]
    assert cli("learn", images, "-o", file, *few, "--device", "cuda").code == 0
    assert load(file).device == "cuda"
    assert cli("encode", file, images, "-o", codes, "--device", "cuda:0").code == 0
    there = cli("encode", file, images, "-o", codes)
    assert there.code == 0, "a model that a GPU learned serves where there is none"


@pytest.mark.gpu
def test_mending_on_a_device(cli, images, tmp_path):
    picture, target = images / "image1.png", tmp_path / "out.png"
    done(cli("denoise", picture, "-o", target, "--device", "cuda"))
    assert np.asarray(Image.open(target)).shape == np.asarray(Image.open(picture)).shape
