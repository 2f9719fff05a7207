"""Tests of ``pointillist learn``: what it writes, what it says, and that only the asked-for files appear."""

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import done, refused

from pointillist import BatchCSC, OnlineCSC, contrast_normalise, load, load_signals

pytestmark = pytest.mark.usefixtures("no_leftovers")


def test_writes_a_model_and_says_what_it_did(learn, images, tmp_path):
    answer = done(learn("--epochs", "2"))
    assert "learned 4 filters of 5×5 from 3 signals" in answer.out
    assert f"next: pointillist show {tmp_path / 'out.safetensors'}" in answer.out
    assert "step 1/6" in answer.err
    assert "step 6/6" in answer.err
    model = load(tmp_path / "out.safetensors")
    assert isinstance(model, OnlineCSC)
    assert model.n_seen_ == 6
    assert model.preprocessing_ == {"normalise": "contrast"}
    assert model.extra_["data"]["signals"] == 3
    assert model.extra_["data"]["paths"] == [str(images)]


def test_does_what_the_estimator_does(learn, images, tmp_path):
    assert learn("--epochs", "2", "--seed", "3", "--penalty", "0.7", "-q").code == 0
    signals = contrast_normalise(load_signals(images))
    reference = OnlineCSC(4, 5, 0.7, random_state=3, n_jobs=1, n_epochs=2).fit(signals)
    np.testing.assert_array_equal(load(tmp_path / "out.safetensors").filters_, reference.filters_)


def test_batch_mode_with_options(learn, images, tmp_path):
    answer = learn(
        *["--mode", "batch", "--iterations", "3", "--boundary", "valid", "--init", "patches", "--normalise", "none"],
        *["--solver", "admm", "--validation", images / "image1.png", "--mosaic", tmp_path / "mosaic.png"],
    )
    assert answer.code == 0
    assert "objective of the held-out signals" in answer.out
    assert "--validation shares 1 signals" in answer.err
    model = load(tmp_path / "out.safetensors")
    assert isinstance(model, BatchCSC)
    assert (model.max_iter, model.boundary, model.update.init, model.solver) == (3, "valid", "patches", "admm")
    assert model.preprocessing_ == {"normalise": "none"}
    assert min(Image.open(tmp_path / "mosaic.png").size) >= 500


def test_a_few_files_are_seen_many_times_by_default(learn, tmp_path):
    assert learn("-q").code == 0
    assert load(tmp_path / "out.safetensors").n_iter_ == 60


def test_quiet_is_quiet_and_verbose_is_not(learn):
    quiet = learn("--epochs", "1", "--quiet")
    assert (quiet.out, quiet.err) == ("", "")
    assert "iteration 1: objective" in learn("--epochs", "1", "--verbose").err


def test_series_and_several_sizes(learn, tmp_path):
    np.save(tmp_path / "series.npy", np.random.default_rng(0).standard_normal((3, 80)))
    done(learn("--ndim", "1", "--size", "3,7", "--epochs", "1", paths=[tmp_path / "series.npy"]))
    model = load(tmp_path / "out.safetensors")
    assert model.filters_.shape == (4, 7)
    assert model.filter_size == [(3,), (7,)]


@pytest.mark.parametrize("mode", ["online", "batch"])
def test_narrow_signals_are_no_colours(learn, tmp_path, mode):
    """How many dimensions signals have is said by --ndim: nobody guesses that three columns are colours."""
    generator = np.random.default_rng(1)
    np.save(tmp_path / "many.npy", generator.standard_normal((2, 14, 3)))
    np.save(tmp_path / "one.npy", generator.standard_normal((14, 3)))
    options = ["--mode", mode, "--size", "3", "--validation", tmp_path / "one.npy"]
    done(learn(*options, paths=[tmp_path / "many.npy"]))


def test_skips_what_cannot_be_used_when_told_to(learn, images, tmp_path):
    Image.new("L", (40, 40), 128).save(images / "grey.png")
    Image.new("L", (3, 3), 0).save(images / "tiny.png")
    (images / "broken.png").write_bytes(b"not an image")
    answer = done(learn("--epochs", "1", "--on-error", "skip"))
    assert "(3 skipped)" in answer.out
    for name in ("grey.png", "tiny.png", "broken.png"):
        assert sum(name in line and line.startswith("warning: skipped") for line in answer.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "size"), [("5", (5, 5)), ("7x9", (7, 9)), ("5,7", [(5, 5), (7, 7)]), ("5x3,7X9", [(5, 3), (7, 9)])]
)
def test_sizes_as_people_write_them(learn, tmp_path, text, size):
    assert learn("--size", text, "--epochs", "1").code == 0
    assert load(tmp_path / "out.safetensors").filter_size == size


def test_report_of_a_run(learn, images, tmp_path):
    answer = done(learn("--epochs", "2", "--validation", images / "image1.png", "--report", tmp_path / "run.html"))
    assert str(tmp_path / "run.html") in answer.out
    page = (tmp_path / "run.html").read_text()
    assert "image1.png, as it is" in page
    assert "<dt>penalty</dt><dd>1.0</dd>" in page
    refused(learn("--report", tmp_path / "out.safetensors"), "give them different names")
