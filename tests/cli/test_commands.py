"""Walks over all commands, so that a new one forgets nothing: one grammar of paths, and what signals end it with."""

import os
import signal

import numpy as np
import pytest
import typer
from PIL import Image

from pointillist.cli.app import app
from pointillist.cli.paths import path_parameters
from pointillist.data.sources.opening import SIGNAL_SUFFIXES

COMMANDS = {command.name or command.callback.__name__.replace("_", "-"): command for command in app.registered_commands}

FOLDERS = {
    "learn": ("learn", "{}", "-o", "out.safetensors", "--filters", "4", "--size", "5", "--jobs", "1", "--epochs", "1"),
    "encode": ("encode", "model.safetensors", "{}", "-o", "codes.safetensors"),
    "anomalies": ("anomalies", "{}", "--model", "model.safetensors", "-o", "answers"),
    "inpaint": ("inpaint", "{}", "-o", "answers"),
    "denoise": ("denoise", "{}", "-o", "answers", "--sigma", "5"),
    "deblur": ("deblur", "{}", "-o", "answers", "--gaussian", "1"),
    "super-resolve": ("super-resolve", "{}", "-o", "answers"),
    "demosaic": ("demosaic", "{}", "-o", "answers"),
    "info": ("info", "{}"),
}
"""Commands that read any number of files, with {} for these."""
ONE = {
    "show": ("show", "{}"),
    "app": ("app", "{}", "--no-browser"),
    "demo": ("demo", "--output", "answers"),
}
"""Commands that read at most one file or folder."""
CALLS = FOLDERS | ONE
INSIDE = {
    "learn": "pointillist.cli.learn.make_learner",
    "encode": "pointillist.cli.groups.SignalReader.read",
    "anomalies": "pointillist.cli.anomalies.anomaly_score",
    "show": "pointillist.cli.inspect.save_mosaic",
    "info": "pointillist.cli.inspect.describe",
    "demo": "pointillist.cli.demo.photographs",
    "app": "pointillist.cli.serving.serve",
    "inpaint": "pointillist.cli.mending.read_photograph",
    "denoise": "pointillist.cli.mending.read_photograph",
    "deblur": "pointillist.cli.mending.read_photograph",
    "super-resolve": "pointillist.cli.mending.read_photograph",
    "demosaic": "pointillist.cli.mending.read_photograph",
}
"""A function that each command calls while it works."""
DASHES = {("encode", "events"), ("encode", "table")}
"""Options that write text to standard output if asked to."""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, images, model):
    monkeypatch.chdir(tmp_path)


def _paths():
    return [(name, option) for name, command in COMMANDS.items() for option in path_parameters(command.callback)]


def _refused(answer, *words):
    assert answer.code == 2, answer.out + answer.err
    assert answer.err.startswith("error: ")
    assert len(answer.err.splitlines()) == 1, answer.err
    assert not [word for word in words if word not in answer.err], answer.err


def test_every_command_is_known_here():
    assert set(COMMANDS) == set(CALLS)
    several = {name for name, option in _paths() if option == "paths"}
    assert several == set(FOLDERS)


def test_every_command_that_reads_folders_lets_choose_whether_subfolders_are_read():
    names = {name for name, command in COMMANDS.items() if "recursive" in command.callback.__annotations__}
    assert names == set(FOLDERS)


@pytest.mark.parametrize(("name", "option"), _paths())
def test_a_dash_is_refused_or_standard_output(cli, tmp_path, name, option):
    """``-o -`` created a file of that name once."""
    told = path_parameters(COMMANDS[name].callback)[option]
    assert told.allow_dash == ((name, option) in DASHES)
    if told.allow_dash:
        return
    if isinstance(told, typer.models.ArgumentInfo):
        before = ["model.safetensors"] if (name, option) == ("encode", "paths") else []
        behind = ["images"] if (name, option) == ("encode", "model") else []
        _refused(cli(name, *before, "-", *behind), "standard input is not read")
    else:
        words = [word.format("images") for word in CALLS[name]]
        parameters = typer.main.get_command(app).commands[name].params
        flag = next(parameter.opts[0] for parameter in parameters if parameter.name == option)
        _refused(cli(*words, flag, "-"), flag, "standard output")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_not_there_is_named(cli, tmp_path, name):
    (tmp_path / "empty").mkdir()
    for path, word in {
        "nowhere.png": "no such file or folder: nowhere.png",
        "empty": "folder empty holds no files to read: expected",
        "none/*.png": "no file matches none/*.png",
        "image[s]": "only folders (1): end it in /*",
    }.items():
        _refused(cli(*[given.format(path) for given in FOLDERS[name]]), word)


@pytest.mark.parametrize("name", sorted(set(FOLDERS) - {"info"}))
def test_subfolders_are_read_or_counted(cli, tmp_path, name, monkeypatch):
    """``learn photos/`` used 100 of 300 images once and did not mention the subfolders."""
    deep = tmp_path / "photos" / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent, tmp_path / "photos"):
        pixels = np.random.default_rng(0).integers(0, 255, (24, 24), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{folder.name}.png")
    words = [word.format("photos") for word in FOLDERS[name]]
    read = _watched(name, monkeypatch)
    answers = {option: cli(*words, *option) for option in ((), ("--no-recursive",), ("--recursive",))}
    files = [len(some) for some in read]
    assert files == [1, 1, 3], answers
    assert "photos: 2 more in subfolders not read; --recursive reads them too" in answers[()].err
    assert not any("subfolder" in answers[option].err for option in (("--no-recursive",), ("--recursive",)))
    cli(*[word.format("photos/**/*.png") for word in FOLDERS[name]])
    assert read[3] == read[2]


def _watched(name, monkeypatch):
    """Stop a command when it has found its files, which are noted."""
    noted = []

    def stop(files, **how):
        noted.append([str(file) for file in files])
        raise ValueError("stopped here")

    if name in ("learn", "encode", "anomalies"):
        monkeypatch.setattr("pointillist.cli.inputs.open_source", stop)
    else:
        monkeypatch.setattr("pointillist.cli.mending.make_task", lambda request, settings: stop(_sources(request)))
    return noted


def _sources(request):
    from pointillist.cli.jobs import make_jobs

    return [job.source for job in make_jobs(request)[0]]


def test_a_folder_of_nothing_but_subfolders_says_where_files_are(cli, tmp_path):
    (tmp_path / "photos" / "a").mkdir(parents=True)
    Image.new("L", (9, 9)).save(tmp_path / "photos" / "a" / "a.png")
    expected = ", ".join(sorted(SIGNAL_SUFFIXES))
    answer = cli("learn", "photos", "-o", "out.safetensors")
    _refused(answer, f"photos holds no files to read: expected {expected}; 1 more in subfolders not read; --recursive")


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
    answer = cli("inpaint", "photos/**/same.png", *options)
    assert answer.code == 0, answer.err
    for folder in ("out", "seen"):
        names = sorted(str(path.relative_to(tmp_path / folder)) for path in (tmp_path / folder).rglob("*.png"))
        assert names == (["a/same.png", "same.png"] if folder == "out" else ["a/same-mask.png", "same-mask.png"])


def _words(name):
    return [word.format("model.safetensors" if name in ("info", "show") else "images") for word in CALLS[name]]


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_signals_end_every_command_with_their_code(cli, monkeypatch, name, number):
    """``learn && next`` and ``app && next`` went on once."""
    if name == "app":
        pytest.importorskip("starlette")
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {one: signal.signal(one, handler) for one, handler in handlers.items()}  # nohup makes children ignore them
    monkeypatch.setattr(INSIDE[name], lambda *_, **__: os.kill(os.getpid(), number))
    answer = cli(*_words(name))
    for one, handler in before.items():
        signal.signal(one, handler)
    assert answer.code == 128 + number, answer.err
    assert "Traceback" not in answer.err
    assert "stopped" in answer.err if name == "app" else answer.err.splitlines()[-1].startswith("error: interrupted")
