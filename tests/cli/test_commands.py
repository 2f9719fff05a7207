"""Walks over all commands, so that a new one forgets nothing: one grammar of paths, help, consoles, and what signals end."""

import os
import shutil
import signal
import sys
from io import BytesIO, TextIOWrapper

import numpy as np
import pytest
import typer
from PIL import Image
from tests.cli.conftest import done, refused

import pointillist as pt
from pointillist.cli import main
from pointillist.cli.app import app

COMMANDS = sorted(typer.main.get_command(app).commands)
SMALL = ["--filters", "3", "--size", "5", "--jobs", "1"]
FOLDERS = {
    "learn": ["learn", "{}", "-o", "out.safetensors", *SMALL, "--epochs", "1"],
    "encode": ["encode", "model.safetensors", "{}", "-o", "codes.safetensors"],
    "anomalies": ["anomalies", "{}", "--model", "model.safetensors", "-o", "answers"],
    "inpaint": ["inpaint", "{}", "-o", "answers"],
    "denoise": ["denoise", "{}", "-o", "answers", "--sigma", "5"],
    "deblur": ["deblur", "{}", "-o", "answers", "--gaussian", "1"],
    "super-resolve": ["super-resolve", "{}", "-o", "answers"],
    "demosaic": ["demosaic", "{}", "-o", "answers"],
    "info": ["info", "{}"],
}
"""Commands that read any number of files, with {} for these."""
CALLS = FOLDERS | {
    "show": ["show", "{}"],
    "app": ["app", "{}", "--no-browser"],
    "demo": ["demo", "--output", "answers"],
}
MENDING = ("inpaint", "denoise", "deblur", "super-resolve", "demosaic")
FILES = {
    "learn": ["--output", "--mosaic", "--report", "--validation", "--log", "--tensorboard"],
    "encode": ["--output", "--reconstruction"],
    "anomalies": ["--output", "--model"],
    "show": ["--output"],
    "demo": ["--output"],
    **{name: ["--output", "--reference", "--compare", "--filters"] for name in MENDING},
}
"""Options that name files."""
INSIDE = {
    "learn": "OnlineCSC",
    "demo": "photographs",
    **{name: "load" for name in ("encode", "anomalies", "show")},
    **{name: "read_photograph" for name in MENDING},
}
"""A public function that each command calls while it works."""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, images, model):
    monkeypatch.chdir(tmp_path)


def words_of(name, path=None):
    path = path or ("model.safetensors" if name in ("info", "show") else "images")
    return [word.format(path) for word in CALLS[name]]


def test_every_command_is_known_here():
    assert sorted(CALLS) == COMMANDS


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, some in FILES.items() for option in some])
def test_a_dash_is_no_file(cli, tmp_path, name, option):
    """``-o -`` created a file of that name once."""
    refused(cli(*words_of(name), option, "-"), option, "standard output")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", [*FOLDERS, "show", "app"])
def test_standard_input_is_not_read(cli, name):
    refused(cli(*words_of(name, "-")), "standard input is not read")


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_not_there_is_named(cli, tmp_path, name):
    (tmp_path / "empty").mkdir()
    for path, word in {
        "nowhere.png": "no such file or folder: nowhere.png",
        "empty": "folder empty holds no files to read: expected",
        "none/*.png": "no file matches none/*.png",
        "image[s]": "only folders (1): end it in /*",
    }.items():
        refused(cli(*words_of(name, path)), word)


@pytest.mark.parametrize("name", sorted(set(FOLDERS) - {"info"}))
def test_subfolders_are_read_or_counted(cli, tmp_path, name, monkeypatch):
    """``learn photos/`` used 100 of 300 images once and did not mention the subfolders."""
    deep = tmp_path / "photos" / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent, tmp_path / "photos"):
        pixels = np.random.default_rng(0).integers(0, 255, (24, 24), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{folder.name}.png")
    read = set()

    def stop(files, **how):
        read.update([str(files)] if name in MENDING else map(str, files))
        raise ValueError("stopped here")

    monkeypatch.setattr(*((pt, "read_photograph", stop) if name in MENDING else (_reading(), "open_source", stop)))
    found = {}
    for option in ((), ("--no-recursive",), ("--recursive",)):
        read.clear()
        answer = cli(*words_of(name, "photos"), *option, "--on-error", "skip")
        found[option] = len(read)
        told = "photos: 2 more in subfolders not read; --recursive reads them too" in answer.err
        assert told is (option == ()), answer.err
    assert list(found.values()) == [1, 1, 3]
    deepest = set(read)
    read.clear()
    cli(*words_of(name, "photos/**/*.png"), "--on-error", "skip")
    assert read == deepest


def _reading():
    from pointillist.cli import reading

    return reading


def test_answers_lie_in_subfolders_as_their_pictures_do(cli, tmp_path):
    for folder in ("photos", "photos/a"):
        (tmp_path / folder).mkdir()
        Image.new("L", (12, 12), 90).save(tmp_path / folder / "same.png")
        Image.new("L", (12, 12), 0).save(tmp_path / folder / "same-mask.png")
    (tmp_path / "masks" / "a").mkdir(parents=True)
    for folder in ("masks", "masks/a"):
        mask = np.zeros((12, 12), np.uint8)
        mask[4:6, 4:6] = 255
        Image.fromarray(mask).save(tmp_path / folder / "same.png")
    options = ("--mask", "masks", "-o", "out", "--save-mask", "seen", "--jobs", "1")
    done(cli("inpaint", "photos/**/same.png", *options))
    for folder in ("out", "seen"):
        names = sorted(str(path.relative_to(tmp_path / folder)) for path in (tmp_path / folder).rglob("*.png"))
        assert names == (["a/same.png", "same.png"] if folder == "out" else ["a/same-mask.png", "same-mask.png"])


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", INSIDE)
def test_signals_end_every_command_with_their_code(cli, monkeypatch, name, number):
    """``learn && next`` went on once."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {one: signal.signal(one, handler) for one, handler in handlers.items()}  # nohup makes children ignore them
    monkeypatch.setattr(pt, INSIDE[name], lambda *_, **__: os.kill(os.getpid(), number))
    answer = cli(*words_of(name))
    for one, handler in before.items():
        signal.signal(one, handler)
    assert answer.code == 128 + number, answer.err
    assert "Traceback" not in answer.err
    assert answer.err.splitlines()[-1].startswith("error: interrupted")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_names_no_python_types_and_nothing_behind_a_switch(cli, command):
    page = cli(*command.split(), "--help").out
    for words in ("bool", "list[", "<int", "<float", "<str", "<Path", "INTEGER", "FLOAT", "default: None"):
        assert words not in page, f"{words} in {page}"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_commands_end_as_on_any_other_console(tmp_path, monkeypatch, encoding):
    """Consoles that lack Greek letters, dashes and accents: cp1252 of Windows, and ASCII."""
    here = tmp_path / "Ωmega 写"
    here.mkdir()
    shutil.copy("model.safetensors", here)
    Image.fromarray(np.random.default_rng(0).integers(60, 200, (30, 34), np.uint8)).save(here / "grey.png")
    found = {
        "info {here}/model.safetensors": 0,
        "encode {here}/model.safetensors {here}/grey.png -o {here}/codes": 0,
        "denoise {here}/grey.png": 0,
        "app {here}.png --no-browser": 2,
    }
    for line, expected in found.items():
        streams = [TextIOWrapper(BytesIO(), encoding) for _ in range(2)]
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as ended:
            main([word.replace("{here}", str(here)) for word in line.split()])
        for stream in streams:
            stream.flush()
        printed = b"".join(stream.buffer.getvalue() for stream in streams)
        assert ended.value.code == expected, printed.decode(encoding)
        assert b"?mega ?" in printed
