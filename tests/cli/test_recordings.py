"""Tests of recordings with channels on the command line: learned from in windows, coded whole, written as events."""

import csv
import json

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import done, refused

from pointillist import Robust, load, load_codes, open_source, recovery_score
from pointillist.cli import reading
from pointillist.data.sources import stacks
from pointillist.solvers import large_signals
from pointillist.storage import load_codes_metadata

pytestmark = pytest.mark.usefixtures("no_leftovers")
TIMES = np.linspace(-1, 1, 24)
SHAPES = np.stack([np.exp(-((3 * TIMES) ** 2)), np.exp(-((3 * TIMES) ** 2)) * np.sin(9 * TIMES)])
TRUTH = SHAPES[:, None] * np.array([[1.0, 0.5, 0, -0.5], [0, 1.0, 1.0, 0.3]])[:, :, None]
LEARN = ["--filters", "2", "--size", "24", "--jobs", "1", "-q", "--crops", "40", "--crop-size", "300"]
LEARN += ["--penalty", "0.3", "--epochs", "3"]


@pytest.fixture(scope="module")
def recording():
    rng = np.random.default_rng(0)
    signal = 0.02 * rng.standard_normal((4, 6000))
    for k, one in enumerate(TRUTH):
        for place in rng.choice(5900 // 60, 40, replace=False) * 60 + 7 * k:
            signal[:, place : place + 24] += rng.uniform(2, 4) * one
    return signal.astype(np.float32)


@pytest.fixture
def stored(tmp_path, recording):
    np.save(tmp_path / "first.npy", recording)
    np.save(tmp_path / "last.npy", np.ascontiguousarray(recording.T))
    return tmp_path


def test_learned_coded_and_written_as_events(cli, stored, recording):
    for layout in ("first", "last"):
        answer = cli("learn", stored / f"{layout}.npy", "--channels", layout, *LEARN, "-o", stored / f"{layout}.st")
        assert (answer.code, answer.err) == (0, "")
    model = load(stored / "first.st")
    assert model.preprocessing_ == {"normalise": "none", "channels": "first"}
    assert model.filters_.shape == (2, 4, 24)
    assert recovery_score(model.filters_, TRUTH, channels=True) > 0.95
    np.testing.assert_array_equal(load(stored / "last.st").filters_, model.filters_)
    words = ["-o", stored / "codes", "--events", stored / "events.csv", "--sampling-rate", "200"]
    assert "2 of 24 in 4 channels" in cli("info", stored / "first.st").out
    answer = done(cli("encode", stored / "last.st", stored / "last.npy", *words))
    assert f"events to {stored / 'events.csv'}" in answer.out
    assert "4×6000" in answer.out
    events = load_codes(stored / "codes").events(sampling_rate=200)
    with (stored / "events.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == events["time"].tolist()
    assert [int(row["sample"]) / 200 for row in rows] == events["time"].tolist()
    expected = model.transform(recording[None]).events()
    np.testing.assert_array_equal(events["sample"], expected["sample"])
    # The recording in the other layout, by the same model.
    again = cli("encode", stored / "last.st", stored / "first.npy", "--channels", "first", "-o", stored / "other", "-q")
    assert again.code == 0
    np.testing.assert_array_equal(load_codes(stored / "other").indices[0], load_codes(stored / "codes").indices[0])


def test_filters_of_a_rank_without_outliers(cli, stored, recording):
    """Foreign patterns in a tenth of the recording, and filters of rank one that do not show them."""
    rng = np.random.default_rng(1)
    recording = recording.copy()
    for begin in range(300, 6000, 2000):
        recording[:, begin : begin + 200] = 8 * np.repeat(rng.standard_normal((4, 40)), 5, axis=1)
    np.save(stored / "first.npy", recording)
    words = ["learn", stored / "first.npy", "--channels", "first", *LEARN, "--rank", "1", "--robust"]
    answer = done(cli(*[word for word in words if word != "-q"], "-o", stored / "m", "--report", stored / "page.html"))
    assert "2 filters of 24 in 4 channels (rank 1, robust) from 120 crops" in answer.out
    model = load(stored / "m")
    left = [info["outliers"] for info in model.history_]
    assert f"{sum(left):,} of all steps" in answer.out
    assert (model.rank, model.robust) == (1, Robust())
    assert recovery_score(model.filters_, TRUTH, channels=True) > 0.95
    assert np.all(np.linalg.svd(model.filters_, compute_uv=False)[:, 1] < 1e-5)
    settings = json.loads(cli("info", stored / "m", "--json").out)["parameters"]
    assert settings["rank"] == 1
    assert settings["robust"]["settings"]["alpha"] == 3.5
    page = (stored / "page.html").read_text()
    assert "<dt>rank</dt><dd>1</dd>" in page
    assert "<dt>robust</dt>" in page
    plan = cli(*words, "-o", stored / "other", "--plan")
    assert "2 filters of 24 in 4 channels (rank 1, robust): 120 steps" in plan.out
    assert not (stored / "other").exists()


@pytest.mark.parametrize("layout", ["first", "last"])
def test_large_recordings_stay_in_files(cli, stored, monkeypatch, layout):
    assert cli("learn", stored / "first.npy", "--channels", "first", *LEARN, "-o", stored / "m").code == 0
    words = ["--channels", layout, "--tol", "1e-4", "-q", "-o"]
    assert cli("encode", stored / "m", stored / f"{layout}.npy", *words, stored / "small").code == 0
    for module in (stacks, large_signals, reading):
        monkeypatch.setattr(module, "LARGE", 1000)
    assert cli("encode", stored / "m", stored / f"{layout}.npy", *words, stored / "large").code == 0
    one, two = (load_codes_metadata(stored / name)["signals"][0] for name in ("small", "large"))
    assert two["objective"] == pytest.approx(one["objective"], rel=1e-4)
    assert two["status"] == "converged"


def test_reports_and_pictures(cli, stored):
    files = ["-o", stored / "m", "--report", stored / "r.html", "--mosaic", stored / "f.png"]
    words = ["--channels", "first", *LEARN, *files]
    assert cli("learn", stored / "first.npy", *words, "--normalise", "contrast").code == 0
    model = load(stored / "m")
    assert model.preprocessing_["normalise"] == "contrast"
    assert "waveforms" in (stored / "r.html").read_text()
    assert cli("show", stored / "m", "-o", stored / "s.png").code == 0
    np.testing.assert_array_equal(np.asarray(Image.open(stored / "s.png")), np.asarray(Image.open(stored / "f.png")))
    assert cli("encode", stored / "m", stored / "first.npy", "-o", stored / "c", "-q").code == 0
    source = open_source(stored / "first.npy", ndim=1, channel_axis=0)
    assert load_codes(stored / "c").grids == [source.shape(0)[1:]]


def test_refusals(cli, stored, model, images, tmp_path):
    assert cli("learn", stored / "first.npy", "--channels", "first", *LEARN, "-o", stored / "m").code == 0
    refused(cli("encode", stored / "m", stored / "last.npy", "-o", stored / "c"), "say --channels last")
    for words, message in [
        (["--sampling-rate", "100"], "say where to with --events"),
        (["--events", stored / "c", "-o", stored / "c"], "name the same file"),
        (["--events", stored / "e.csv", "--sampling-rate", "0"], "not positive"),
        (["--reconstruction", stored / "pictures"], "not those of images"),
    ]:
        refused(cli("encode", stored / "m", stored / "first.npy", *words), message)
    refused(cli("encode", model, images, "--channels", "first", "-o", tmp_path / "c"), "leave --channels out")
    refused(
        cli("learn", stored / "first.npy", *LEARN, "--rank", "1", "-o", stored / "other"),
        "--rank is over channels: say where they are with --channels",
    )
    refused(
        cli("encode", model, images, "--events", tmp_path / "e.csv", "--sampling-rate", "5", "-o", tmp_path / "c"),
        "of one dimension",
    )


def test_events_of_images(cli, model, images, tmp_path):
    assert cli("encode", model, images, "--events", tmp_path / "e.csv", "-o", tmp_path / "c", "-q").code == 0
    lines = (tmp_path / "e.csv").read_text().splitlines()
    assert lines[0] == "signal,row,column,filter,amplitude"
    assert len(lines) == 1 + load_codes(tmp_path / "c").nnz
