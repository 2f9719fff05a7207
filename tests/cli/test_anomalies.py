"""Tests of ``pointillist anomalies``: what it writes are the scores of the library, and it refuses what it cannot do."""

import csv
import json

import numpy as np
import pytest

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
    answer = cli("anomalies", series, "--size", "40", "-o", tmp_path / "out", "--jobs", "1")
    assert answer.code == 0, answer.err
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
    answer = cli("anomalies", series, "-m", model, "-o", tmp_path / "two", "--jobs", "1", "--json")
    assert answer.code == 0, answer.err
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
    again = cli(*command)
    assert again.code == 2
    assert "--overwrite" in again.err
    assert cli(*command, "--overwrite").code == 0


def test_refusals(cli, series, model, tmp_path):
    for wrong, word in [
        ([], "--model"),
        (["-m", model, "--size", "40"], "--size"),
        (["--size", "1"], "--size"),
        (["--size", "40", "--false-alarms", "0.7"], "0.7"),
        (["--size", "40", "-o", series], "give a folder"),
        (["-m", tmp_path / "missing"], "missing"),
    ]:
        answer = cli("anomalies", series, *(wrong if "-o" in wrong else [*wrong, "-o", tmp_path / "out"]))
        assert answer.code == 2
        assert word in answer.err
    assert not (tmp_path / "out" / "events.csv").exists()
