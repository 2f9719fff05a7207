"""Tests of ``pointillist learn --colour`` and of everything that is done with its model."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import done, refused

from pointillist import load, load_codes
from pointillist.data import photographs


@pytest.fixture
def coloured(tmp_path):
    """A folder of two small photographs in colour."""
    folder = tmp_path / "coloured"
    folder.mkdir()
    for name in ("coffee", "astronaut"):
        crop = photographs(grey=False)[name][60:96, 70:110]
        Image.fromarray((255 * crop).astype(np.uint8)).save(folder / f"{name}.png")
    return folder


@pytest.fixture
def learned(learn, coloured, tmp_path):
    answer = done(learn("--colour", "--epochs", "1", "--report", tmp_path / "report.html", paths=[coloured]))
    assert "4 filters of 5×5 in 3 channels" in answer.out
    return tmp_path / "out.safetensors"


def test_filters_have_three_channels_that_differ(learned):
    model = load(learned)
    assert model.filters_.shape == (4, 3, 5, 5)
    assert np.ptp(model.filters_, axis=1).max() > 1e-3
    assert model.preprocessing_ == {"normalise": "contrast", "channels": "last"}


def test_show_info_and_report_are_in_colour(cli, learned, tmp_path):
    assert cli("show", learned, "-o", tmp_path / "filters.png").code == 0
    with Image.open(tmp_path / "filters.png") as picture:
        assert picture.mode == "RGB"
        assert np.ptp(np.asarray(picture), axis=-1).max() > 0
    assert "5×5 in 3 channels" in cli("info", learned).out
    assert json.loads(cli("info", learned, "--json").out)["parameters"]["channels"] is True
    assert "<img" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_reports_begin_with_the_photograph_in_colour_though_filters_are_grey(learn, coloured, tmp_path):
    photograph = coloured / "coffee.png"
    answer = learn("--epochs", "1", "--report", tmp_path / "grey.html", "--validation", photograph, paths=[coloured])
    assert answer.code == 0, answer.err
    text = (tmp_path / "grey.html").read_text(encoding="utf-8")
    first = re.search(r'src="data:image/png;base64,([^"]*)"', text)[1]
    with Image.open(io.BytesIO(base64.b64decode(first))) as shown, Image.open(photograph) as stored:
        np.testing.assert_array_equal(np.asarray(shown), np.asarray(stored))
    assert f"<h3>{photograph}</h3>" in text


def test_encode_needs_no_option_and_reconstructs_in_colour(cli, learned, coloured, tmp_path):
    answer = cli("encode", learned, coloured, "-o", tmp_path / "c.safetensors", "--reconstruction", tmp_path / "made")
    assert answer.code == 0, answer.err
    assert "3×36×40" in answer.out
    with Image.open(tmp_path / "made" / "coffee.png") as picture:
        assert (picture.mode, picture.size) == ("RGB", (40, 36))


def test_arrays_among_the_photographs_have_their_channels_last(learn, coloured, tmp_path):
    np.save(coloured / "more.npy", photographs(grey=False)["rocket"][40:80, 40:90])
    answer = done(learn("--colour", "--epochs", "1", paths=[coloured]))
    assert "from 3 signals" in answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--channels", "first"], "--channels"), (["--ndim", "1"], "--ndim"), (["--ndim", "3"], "--ndim")],
)
def test_what_contradicts_colour_is_refused(learn, coloured, arguments, words):
    refused(learn("--colour", *arguments, paths=[coloured]), "--colour", words)


def test_subfolders_are_read_and_coded_in_colour(learn, cli, coloured, tmp_path):
    (coloured / "more").mkdir()
    (coloured / "coffee.png").rename(coloured / "more" / "coffee.png")
    answer = done(learn("--colour", "--recursive", "--epochs", "1", paths=[coloured]))
    assert "from 2 signals" in answer.out
    words = ["encode", tmp_path / "out.safetensors", coloured, "--recursive", "-o", tmp_path / "c.safetensors"]
    assert "2 signals" in cli(*words, "--plan").out
    assert cli(*words, "-q").code == 0
    assert load_codes(tmp_path / "c.safetensors").names == [
        str(coloured / "astronaut.png"), str(coloured / "more" / "coffee.png")
    ]  # fmt: skip


def test_unread_subfolders_of_held_out_photographs_are_mentioned_once(learn, coloured, images, tmp_path):
    (coloured / "more").mkdir()
    (coloured / "coffee.png").rename(coloured / "more" / "coffee.png")
    report = ["--report", tmp_path / "r.html", "--validation", coloured]
    answer = done(learn("--epochs", "1", *report, paths=[images]))
    assert answer.err.count("1 more in subfolders not read") == 1
