"""A few small images, a model learned from them, and a way to run the command line in this process."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from pointillist.cli.app import run
from pointillist.data import photographs

SMALL = ["--filters", "4", "--size", "5", "--jobs", "1"]


def done(answer):
    """The answer of a command that did what it was asked for."""
    assert answer.code == 0, answer.out + answer.err
    return answer


def refused(answer, *words):
    """One line of error, which holds the words, beside any warnings."""
    assert answer.code == 2, answer.out + answer.err
    lines = [line for line in answer.err.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, answer.err
    assert lines[0].startswith("error: ")
    assert not [word for word in words if word not in answer.err], answer.err


def _write(folder, count=3):
    picture = photographs("test")["camera"]
    for i in range(count):
        corner = 60 + 40 * i
        crop = picture[corner : corner + 36, corner : corner + 40]
        Image.fromarray((255 * crop).astype(np.uint8)).save(folder / f"image{i + 1}.png")


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    _write(folder)
    return folder


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    _write(folder)
    assert run(["learn", str(folder), "-o", str(folder / "m.safetensors"), *SMALL, "--epochs", "2", "-q"]) == 0
    return (folder / "m.safetensors").read_bytes()


@pytest.fixture
def model(tmp_path, model_bytes):
    path = tmp_path / "model.safetensors"
    path.write_bytes(model_bytes)
    return path


@pytest.fixture
def cli(capsys):
    """Run a command line; its exit code and what it printed."""

    def call(*arguments):
        code = run([str(word) for word in arguments])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return call


@pytest.fixture
def learn(cli, images, tmp_path):
    """``pointillist learn`` on the small images with small settings, unless told otherwise."""

    def call(*arguments, paths=(images,), output=tmp_path / "out.safetensors"):
        return cli("learn", *paths, "-o", output, *SMALL, *arguments)

    return call


@pytest.fixture
def no_leftovers(tmp_path):
    """Nothing but what was asked for stays behind."""
    yield
    names = [name for _, _, files in os.walk(tmp_path) for name in files]
    assert not [name for name in names if name.startswith(".") and not name.startswith(".z")]  # zarr 2 keeps .zarray
