"""Every command on consoles that lack Greek letters, dashes and accents: cp1252 of Windows, and ASCII."""

import shutil
import sys
from io import BytesIO, TextIOWrapper

import numpy as np
import pytest
import typer
from PIL import Image

from pointillist.cli import demo, main
from pointillist.cli.app import app

COMMANDS = sorted(typer.main.get_command(app).commands)
HERE = "Ωmega 写"
"""A folder that neither encoding can write; every command prints where its files are."""

SMALL = ["--filters", "3", "--size", "5", "--jobs", "1"]
WORDS = {
    "anomalies": (["{here}/grey.png", "-m", "{here}/m.safetensors", "-o", "{here}/scores"], "scores/events.csv"),
    "app": (["{here}/Ωmega 写.png", "--no-browser"], None),
    "deblur": (["{here}/marked.png", "--gaussian", "1.5", "--force"], "marked-deblurred.png"),
    "demo": (["--output", "{here}/demo", "--jobs", "1"], "demo/report.html"),
    "demosaic": (["{here}/grey.png"], "grey-coloured.png"),
    "denoise": (["{here}/grey.png"], "grey-denoised.png"),
    "encode": (["{here}/m.safetensors", "{here}/grey.png", "-o", "{here}/codes.safetensors"], "codes.safetensors"),
    "info": (["{here}/m.safetensors"], "m.safetensors"),
    "inpaint": (["{here}/marked.png"], "marked-inpainted.png"),
    "learn": (["{here}/grey.png", "-o", "{here}/n.safetensors", *SMALL, "--report", "{here}/page.html"], "page.html"),
    "show": (["{here}/m.safetensors", "-o", "{here}/filters.png"], "filters.png"),
    "super-resolve": (["{here}/grey.png"], "grey-enlarged.png"),
}
"""What each command is given, and the file that is there when it has ended; none where it ends with an error."""


@pytest.fixture
def here(tmp_path, model_bytes, monkeypatch):
    folder = tmp_path / HERE
    folder.mkdir()
    (folder / "m.safetensors").write_bytes(model_bytes)
    pixels = np.random.default_rng(0).integers(60, 200, (30, 34, 3), np.uint8)
    Image.fromarray(pixels[..., 0]).save(folder / "grey.png")
    pixels[10:13, 5:25] = 255, 0, 255
    Image.fromarray(pixels).save(folder / "marked.png")
    shown = {True: pixels[..., 1] / 255, False: pixels / 255}
    monkeypatch.setattr(demo, "photographs", lambda split, grey=True: {"camera": shown[grey]})
    for name, value in {"N_FILTERS": 3, "FILTER_SIZE": 5, "N_EPOCHS": 1, "CROP": 20}.items():
        monkeypatch.setattr(demo, name, value)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def console(monkeypatch):
    """A function that runs a command on a console of an encoding: its exit code, and the bytes that it printed."""

    def call(encoding, *words):
        streams = [TextIOWrapper(BytesIO(), encoding) for _ in range(2)]
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as ended:
            main(words)
        for stream in streams:
            stream.flush()
        return ended.value.code, b"".join(stream.buffer.getvalue() for stream in streams)

    return call


def test_the_list_has_every_command():
    assert sorted(WORDS) == COMMANDS


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.filterwarnings("ignore")
def test_commands_end_as_on_any_other_console(console, here, encoding, command):
    words, made = WORDS[command]
    code, printed = console(encoding, command, *[word.format(here=here) for word in words])
    assert code == (0 if made else 2), printed.decode(encoding)
    assert b"?mega ?" in printed
    assert made is None or (here / made).exists()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("command", [[], *[[name] for name in COMMANDS]], ids=lambda words: "".join(words) or "all")
def test_help_is_printed(console, encoding, command):
    code, printed = console(encoding, *command, "--help")
    assert code == 0
    assert b"Usage: pointillist" in printed
