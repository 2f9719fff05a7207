"""Tests of how the command line fails: one line that names the culprit, the right exit code, no traceback, no files."""

import errno
import subprocess
import sys
import warnings

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file
from tests.cli.conftest import done

import pointillist as pt
import pointillist.plot

pytestmark = pytest.mark.usefixtures("no_leftovers")


def _one_line(answer, code=2):
    assert answer.code == code
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1, answer.err
    assert answer.err.startswith("error: ")
    assert "Traceback" not in answer.err
    return answer.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--penalty", "0"], ["--penalty", "positive"]), (["--penalty", "nan"], ["--penalty", "positive"]),
        (["--sampling", "2"], ["--sampling", "(0, 1]"]),
        (["--sampling", "0.1,rows"], ["--sampling", "kind must be one of", "rows"]),
        (["--filters", "0"], ["--filters", "1"]), (["--size", "big"], ["--size", "5,11,21"]),
        (["--size", "0"], ["--size"]), (["--size", "3x3x3"], ["filter_size", "2"]),
        (["--size", "41"], ["36×40", "41×41", "smaller"]), (["--forgetting", "0.5"], ["forgetting", "at least 1"]),
        (["--jobs", "0"], ["--jobs", "-1"]), (["--epochs", "0"], ["--epochs"]),
        (["--iterations", "3"], ["--iterations", "--mode batch"]),
        (["--mode", "batch", "--epochs", "3"], ["--epochs", "--mode online"]),
        (["--solver", "magic"], ["--solver", "cd"]), (["--boundary", "round"], ["--boundary", "same"]),
        (["--filtrs", "3"], ["--filtrs", "--filters"]), (["--ndim", "1"], [".npy", "image1.png"]),
        (["--validation", "missing.png"], ["missing.png"]),
        (["--mosaic", "no/such/folder/m.png"], ["no/such/folder", "create it"]),
    ],
)  # fmt: skip
def test_bad_options_of_learn(learn, options, words):
    message = _one_line(learn("-q", *options))
    assert not [word for word in words if word not in message], message


def test_bad_inputs_of_learn(learn, images, tmp_path):
    assert "missing.png" in _one_line(learn("-q", paths=[tmp_path / "missing.png"]))
    (tmp_path / "empty").mkdir()
    assert "holds no files" in _one_line(learn("-q", paths=[tmp_path / "empty"]))
    whole = (images / "image1.png").read_bytes()
    (images / "broken.png").write_bytes(whole[: len(whole) // 2])
    assert "broken.png" in _one_line(learn("-q"))
    (images / "broken.png").unlink()
    Image.new("L", (40, 40), 128).save(images / "grey.png")
    assert "grey.png is constant" in _one_line(learn("-q"))
    (images / "grey.png").unlink()
    np.save(tmp_path / "nan.npy", np.full((20, 20), np.nan))
    assert "nan.npy holds NaN" in _one_line(learn("-q", paths=[tmp_path / "nan.npy"]))
    assert "nan.npy" in _one_line(learn("-q", "--on-error", "skip", paths=[tmp_path / "nan.npy"]))


def test_outputs_are_checked_before_the_work(learn, images, tmp_path, monkeypatch):
    monkeypatch.setattr(pt, "OnlineCSC", lambda *a, **k: pytest.fail("worked first"))
    assert "does not exist" in _one_line(learn(output=tmp_path / "no" / "m.safetensors"))
    assert "is a folder" in _one_line(learn(output=images))
    assert "same file" in _one_line(learn("--mosaic", tmp_path / "out.safetensors"))


def test_bad_models(cli, images, tmp_path, model):
    text = tmp_path / "text.safetensors"
    text.write_text("this is no model")
    foreign = tmp_path / "foreign.safetensors"
    save_file({"x": np.zeros(3)}, foreign)
    half = tmp_path / "half.safetensors"
    half.write_bytes(model.read_bytes()[:300])
    for command in (["encode"], ["show"], ["info"]):
        rest = [images, "-o", tmp_path / "codes"] if command == ["encode"] else []
        for path in (text, foreign, half, tmp_path / "missing.safetensors", images):
            assert path.name in _one_line(cli(*command, path, *rest))


def test_bad_options_of_encode(cli, images, tmp_path, model):
    codes = tmp_path / "codes.safetensors"
    assert "--penalty" in _one_line(cli("encode", model, images, "-o", codes, "--penalty", "-1"))
    assert "--tol" in _one_line(cli("encode", model, images, "-o", codes, "--tol", "2"))
    assert "does not exist" in _one_line(cli("encode", model, images, "-o", tmp_path / "no" / "c"))
    assert "is a file" in _one_line(cli("encode", model, images, "-o", codes, "--reconstruction", model))
    Image.new("L", (3, 3), 0).save(images / "tiny.png")
    assert "tiny.png is 3×3" in _one_line(cli("encode", model, images, "-o", codes))
    assert not codes.exists()


def test_mistyped_commands_get_a_suggestion(cli):
    assert "learn" in _one_line(cli("lern", "x"))
    assert "PATHS" in _one_line(cli("learn"))


def test_failures_that_are_nobodys_fault_exit_with_1(cli, model, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device", "mosaic.png")

    monkeypatch.setattr(pointillist.plot, "save_mosaic", full)
    assert "mosaic.png: No space left" in _one_line(cli("show", model), code=1)

    def broken(*arguments, **options):
        raise RuntimeError("oops")

    monkeypatch.setattr(pointillist.plot, "save_mosaic", broken)
    assert "unexpected RuntimeError: oops (add --debug" in _one_line(cli("show", model), code=1)
    answer = cli("show", model, "--debug")
    assert answer.code == 1
    assert "Traceback" in answer.err


def test_version_and_help_as_a_program():
    def program(*words):
        return subprocess.run(
            [sys.executable, "-m", "pointillist.cli", *words], capture_output=True, text=True, timeout=60
        )

    version = program("--version")
    assert version.returncode == 0
    assert version.stdout.startswith("pointillist ")
    bad = program("learn", "no-such-folder")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "error: no such file or folder: no-such-folder\n"


@pytest.mark.parametrize(
    ("category", "options", "shown"),
    [
        (UserWarning, [], ["warning: penalty is odd"]),
        (UserWarning, ["-q"], []),
        (RuntimeWarning, [], []),
        (RuntimeWarning, ["-v"], ["RuntimeWarning: penalty is odd"]),
    ],
)
def test_warnings_of_python_are_lines_without_a_place(learn, monkeypatch, category, options, shown):
    update = pt.FilterUpdate

    def warned(*arguments, **how):
        warnings.warn("penalty is\nodd", category, stacklevel=1)
        return update(*arguments, **how)

    monkeypatch.setattr(pt, "FilterUpdate", warned)
    answer = done(learn("--epochs", "1", *options))
    assert [line for line in answer.err.splitlines() if "odd" in line] == shown
    assert "test_running.py" not in answer.err


def test_filters_of_warnings_are_left_as_they_were(learn):
    before = list(warnings.filters)
    learn("--epochs", "1", "-q")
    assert list(warnings.filters) == before
