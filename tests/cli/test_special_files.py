"""Tests that pipes, sockets and devices in place of files are refused at once, by every reader and command."""

import os
import socket

import numpy as np
import pytest
import tifffile
from PIL import Image

import pointillist as pt

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes"),
    pytest.mark.timeout(30, func_only=True),
]
SUFFIXES = (".png", ".jpg", ".tif", ".npy", ".h5", ".zarr", ".zip", ".dng", ".heic", ".safetensors")


@pytest.fixture
def pipe(tmp_path):
    def make(suffix):
        path = tmp_path / f"pipe{suffix}"
        os.mkfifo(path)
        return path

    return make


def load_signals_of_series(path):
    return pt.load_signals(path, ndim=1)


def read_opened(path):
    return pt.open_source(path).read(0)


READERS = [pt.load_image, pt.load_images, pt.load_signals, load_signals_of_series, read_opened, pt.read_photograph]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_readers_of_signals_and_pictures_refuse_pipes(pipe, read, suffix):
    path = pipe(suffix)
    named = r"is a pipe, not a file|ndim=1 only"  # images are refused as series, unopened
    with pytest.raises(pt.UnreadableFileError, match=named):
        read(path)


@pytest.mark.parametrize("read", [pt.load, pt.load_codes])
def test_readers_of_models_and_codes_refuse_pipes(pipe, read):
    with pytest.raises(pt.ModelFileError, match=r"is a pipe, not a file: give the (model|codes) file itself"):
        read(pipe(".safetensors"))


def test_sockets_and_devices_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket.png")
        for path, what in {"socket.png": "a socket", os.devnull: "a device"}.items():
            for read in (pt.load_image, pt.load_signals):
                with pytest.raises(pt.UnreadableFileError, match=f"{path} is {what}, not a file"):
                    read(path)
            with pytest.raises(pt.ModelFileError, match=f"{path} is {what}, not a file"):
                pt.load(path)


def test_pipes_in_folders_and_patterns_are_left_out(pipe, tmp_path):
    path = pipe(".png")
    Image.fromarray(np.eye(9, dtype=np.uint8)).save(tmp_path / "a.png")
    assert len(pt.load_images(tmp_path)) == len(pt.load_signals(tmp_path / "*.png")) == 1
    assert len(pt.load_images([path, tmp_path / "a.png"], on_error="skip")) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_commands_refuse_pipes(cli, model, images, pipe, tmp_path, suffix):
    path, picture, out = pipe(suffix), images / "image1.png", tmp_path / "out.safetensors"
    commands = [
        ("info", path), ("show", path), ("encode", path, picture, "-o", out), ("encode", model, path, "-o", out),
        ("learn", path, "-o", out), ("learn", picture, "--validation", path, "-o", out),
        ("inpaint", path), ("inpaint", picture, "--mask", path),
        ("inpaint", picture, "--reference", path, "--mask", picture), ("denoise", picture, "--filters", path),
        ("denoise", path, "-o", images), ("denoise", path, "--crop", "0,0,9,9"),
    ]  # fmt: skip
    for command in commands:
        done = cli(*command)
        assert (done.code, "is a pipe, not a file" in done.err) == (2, True), (command, done.err)
        assert len(done.err.strip().splitlines()) == 1
    assert not out.exists()


def test_complaints_about_damaged_files_are_one_line(cli, tmp_path, caplog):
    tifffile.imwrite(tmp_path / "a.tif", np.eye(30, dtype=np.uint8), photometric="minisblack", compression="zlib")
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+") as file:
        file.pages.first.tags["ImageLength"].overwrite(900)
    done = cli("learn", tmp_path / "a.tif", "-o", tmp_path / "out")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert not caplog.records
