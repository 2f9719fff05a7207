"""Tests of ``pointillist anomalies``: what it writes are the scores of the library, and it refuses what it cannot do."""

import csv
import json

import numpy as np
import pytest
from tests.cli.conftest import done, refused

import pointillist as pt
from pointillist import contrast_normalise, load_signals

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.fixture
def series(tmp_path):
    """A pulse every 40 samples, one of them upside down."""
    values = 0.01 * np.random.default_rng(0).standard_normal(4000).astype(np.float32) + 3
    for beat in range(20, 3990, 40):
        values[beat : beat + 9] += np.hanning(9) * (-1 if beat == 2020 else 1)
    np.save(tmp_path / "series.npy", values)
    return tmp_path / "series.npy"


def test_a_series_by_its_own_filters(cli, series, tmp_path):
    answer = done(cli("anomalies", series, "--size", "40", "-o", tmp_path / "out", "--jobs", "1"))
    signals = pt.remove_baseline(np.load(series)[None], 40)
    found = pt.anomaly_score(signals, pt.learn_windows(signals, 40, n_jobs=1, random_state=0))
    np.testing.assert_allclose(np.load(tmp_path / "out" / "series-scores.npy"), found.scores[0], rtol=1e-6)
    with open(tmp_path / "out" / "events.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["peak"]) for row in rows] == found.events()["peak"].tolist()
    strongest = max(rows, key=lambda row: float(row["score"]))
    assert 2010 <= int(strongest["peak"]) <= 2070
    assert "wrote the scores" in answer.out
    assert "<html" in (tmp_path / "out" / "anomalies.html").read_text()


def test_the_model_that_it_learned_gives_the_same_scores(cli, series, tmp_path):
    cli("anomalies", series, "--size", "40", "-o", tmp_path / "one", "--jobs", "1", "-q")
    model = tmp_path / "one" / "model.safetensors"
    answer = done(cli("anomalies", series, "-m", model, "-o", tmp_path / "two", "--jobs", "1", "--json"))
    one, two = (np.load(tmp_path / folder / "series-scores.npy") for folder in ("one", "two"))
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)
    facts = json.loads(answer.out)
    assert facts["signals"][0]["name"] == str(series)
    assert {"signal", "start", "stop", "peak", "score", "cause"} == set(facts["events"][0])


def test_images_by_a_model(cli, images, model, tmp_path):
    answer = cli("anomalies", images, "-m", model, "-o", tmp_path / "out", "--false-alarms", "0.05", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    signals = contrast_normalise(load_signals(images))
    found = pt.anomaly_score(signals, pt.load(model), false_alarms=0.05)
    for i, score in enumerate(found.scores, start=1):
        np.testing.assert_allclose(np.load(tmp_path / "out" / f"image{i}-scores.npy"), score, rtol=1e-5)
    head = (tmp_path / "out" / "events.csv").read_text().splitlines()[0]
    assert head == "signal,start_y,start_x,stop_y,stop_x,peak_y,peak_x,score,cause"


def test_files_are_replaced_only_when_asked(cli, series, tmp_path):
    command = ["anomalies", series, "--size", "40", "-o", tmp_path / "out", "-q"]
    assert cli(*command).code == 0
    refused(cli(*command), "--overwrite")
    assert cli(*command, "--overwrite").code == 0


def test_refusals(cli, series, model, tmp_path):
    for wrong, word in [
        ([], "--model"),
        (["-m", model, "--size", "40"], "--size"),
        (["--size", "1"], "--size"),
        (["--size", "40", "--false-alarms", "0.7"], "0.7"),
        (["--size", "40", "-o", series], "give a folder"),
        (["-m", tmp_path / "missing"], "missing"),
        (["-m", model, "--signed"], "for --size"),
        (["-m", model, "--channels", "last"], "leave --channels out"),
        (["--size", "40", "--channels", "first"], "2 or 3 axes"),
    ]:
        refused(cli("anomalies", series, *(wrong if "-o" in wrong else [*wrong, "-o", tmp_path / "out"])), word)
    assert not (tmp_path / "out" / "events.csv").exists()


def test_several_channels_from_arrays_and_tables(cli, series, tmp_path):
    """The layout is kept in the model, a gap in one channel is no event, and the page shows all channels."""
    values = np.load(series)
    recording = np.stack([values, 0.5 * values, -values])
    recording[0, 1000:1040] = np.nan
    np.save(tmp_path / "r.npy", recording)
    np.savetxt(tmp_path / "r.csv", recording.T, delimiter=";", fmt="%.9g")
    table = [tmp_path / "r.csv", "--size", "40", "--channels", "last", "-o", tmp_path / "out", "--jobs", "1"]
    assert cli("anomalies", *table).code == 0
    kept = tmp_path / "out" / "model.safetensors"
    assert pt.load(kept).preprocessing_ == {"normalise": "none", "baseline": 40, "channels": "last"}
    array = ["anomalies", tmp_path / "r.npy", "-m", kept, "--channels", "first", "-o", tmp_path / "again", "-q"]
    answer = cli(*array)
    assert (answer.code, answer.err) == (0, "")
    one, two = (np.load(tmp_path / folder / "r-scores.npy") for folder in ("out", "again"))
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)
    found = pt.remove_baseline(recording[None], 40, channels=True)
    np.testing.assert_allclose(pt.anomaly_score(found, pt.load(kept)).scores[0], two, rtol=1e-4, atol=1e-4)
    with open(tmp_path / "again" / "events.csv", newline="") as file:
        peaks = [int(row["peak"]) for row in csv.DictReader(file) if float(row["score"]) > 6]
    assert all(2010 <= peak <= 2070 for peak in peaks)
    assert peaks
    assert ">channel<" in (tmp_path / "again" / "anomalies.html").read_text()


def test_columns_of_tables_and_pictures_in_colour(cli, series, images, tmp_path):
    values = np.load(series)
    lines = [f"{one},{two}" for one, two in zip(values, 2 * values, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["left/up,b", *lines]))
    assert cli("anomalies", tmp_path / "s.csv", "--size", "40", "--signed", "-o", tmp_path / "out", "-q").code == 0
    assert {path.name for path in (tmp_path / "out").glob("*.npy")} == {"s-left_up-scores.npy", "s-b-scores.npy"}
    assert pt.load(tmp_path / "out" / "model.safetensors").nonnegative is False
    learn = ["learn", images, "--colour", "--nonnegative", "--filters", "3", "--size", "5", "--epochs", "1", "-q"]
    assert cli(*learn, "-o", tmp_path / "m").code == 0
    assert pt.load(tmp_path / "m").nonnegative is True
    answer = cli("anomalies", images, "-m", tmp_path / "m", "-o", tmp_path / "colour", "-q")
    assert (answer.code, answer.err) == (0, "")
