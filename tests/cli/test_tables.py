"""Tests of tables on the command line: the same models and codes as from arrays, times of events, and refusals."""

import numpy as np
import pytest
from tests.cli.conftest import done, refused

from pointillist import load, load_codes

pytestmark = pytest.mark.usefixtures("no_leftovers")
LEARN = ["--filters", "2", "--size", "9", "--penalty", "0.3", "--epochs", "1", "--jobs", "1", "-q"]
CHANNELS = ["--crops", "6", "--crop-size", "60", "--channels", "last"]


@pytest.fixture
def stored(tmp_path):
    """A recording with a gap as an array and as a table with times and decimal commas."""
    rng = np.random.default_rng(0)
    samples = 0.01 * rng.standard_normal((300, 2)).astype(np.float32)
    for beat in range(5, 290, 30):
        samples[beat : beat + 9] += np.outer(np.hanning(9), [1, 0.5])
    samples[100:104, 1] = np.nan
    np.save(tmp_path / "r.npy", samples)
    cells = [";".join("" if np.isnan(one) else str(one) for one in row) for row in samples]
    lines = ["t;left;right", *(f"{i / 250};{row}" for i, row in enumerate(cells))]
    (tmp_path / "r.csv").write_text("\n".join(lines).replace(".", ","), encoding="utf-8-sig")
    return tmp_path


def test_tables_are_as_good_as_arrays(cli, stored):
    for kind in ("npy", "csv"):
        assert cli("learn", stored / f"r.{kind}", *LEARN, *CHANNELS, "-o", stored / f"{kind}.st").code == 0
        answer = cli("encode", stored / f"{kind}.st", stored / f"r.{kind}", "-o", stored / f"{kind}.codes", "-q")
        assert (answer.code, answer.err) == (0, "")
    np.testing.assert_array_equal(load(stored / "csv.st").filters_, load(stored / "npy.st").filters_)
    one, two = (load_codes(stored / f"{kind}.codes") for kind in ("npy", "csv"))
    np.testing.assert_array_equal(one.values[0], two.values[0])


def test_times_of_events_are_those_of_the_table(cli, stored):
    assert cli("learn", stored / "r.csv", *LEARN, *CHANNELS, "-o", stored / "m").code == 0
    encode = ["encode", stored / "m", stored / "r.csv", "-o", stored / "c", "--events", stored / "e.csv"]
    answer = done(cli(*encode))
    assert "a second has 250 samples, as the tables say" in answer.err
    events = np.genfromtxt(stored / "e.csv", delimiter=",", names=True)
    np.testing.assert_allclose(events["time"], events["sample"] / 250)
    assert "as the tables say" not in cli(*encode, "--sampling-rate", "50").err
    events = np.genfromtxt(stored / "e.csv", delimiter=",", names=True)
    np.testing.assert_allclose(events["time"], events["sample"] / 50)
    (stored / "other.csv").write_text((stored / "r.csv").read_text().replace("t;", "t [ms];"))
    refused(cli(*encode, stored / "other.csv"), "say that a second has 250, 250000 samples: give --sampling-rate")
    refused(cli("encode", stored / "m", stored / "e.csv", "-o", stored / "c"), "table of events")


def test_a_column_alone(cli, stored):
    answer = cli("learn", f"{stored / 'r.csv'}::left", *LEARN, "--ndim", "1", "-o", stored / "m")
    assert (answer.code, answer.err) == (0, "")
    assert load(stored / "m").filters_.shape == (2, 9)


def test_refusals(cli, stored):
    (stored / "odd.csv").write_text("1,2\n3,many\n")
    for paths, words, message in [
        ([stored / "r.csv"], [], "(--ndim 1, or --channels last)"),
        ([stored / "r.csv"], ["--channels", "first"], "(--channels last)"),
        ([stored / "r.csv"], ["--ndim", "1"], "(--normalise none)"),
        ([stored / "odd.csv"], ["--ndim", "1"], "odd.csv: line 2, column 2: 'many' is no number"),
        ([f"{stored / 'r.csv'}::middle"], ["--ndim", "1"], "no column called 'middle'"),
    ]:
        refused(cli("learn", *paths, *LEARN, *words, "-o", stored / "m"), message)
    skipped = cli(
        "learn", stored / "r.csv", stored / "odd.csv", *LEARN, *CHANNELS, "--on-error", "skip", "-o", stored / "m"
    )
    assert skipped.code == 0
