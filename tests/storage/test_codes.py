"""Tests of codes files: what was written comes back, and damage is told plainly."""

import csv

import numpy as np
import pytest

from pointillist import SparseCodes
from pointillist.errors import ModelFileError
from pointillist.storage import (
    load_codes,
    load_codes_metadata,
    read_arrays,
    save_codes,
    save_model,
    write_arrays,
    write_events,
)


@pytest.fixture
def codes():
    parts = [np.random.default_rng(i).standard_normal((3, 4 + i, 5)).astype(np.float32) for i in range(2)]
    dense = [np.where(np.abs(part) > 1, part, 0) for part in parts]
    return SparseCodes.from_dense([*dense, np.zeros((3, 2, 2), np.float32)])


def test_codes_come_back(tmp_path, codes):
    save_codes(codes, tmp_path / "c", {"names": ["a", "b", "c"]})
    again = load_codes(tmp_path / "c")
    assert again.grids == codes.grids
    assert again.n_filters == 3
    for i in range(3):
        np.testing.assert_array_equal(again[i].to_dense(), codes[i].to_dense())
        assert again.values[i].dtype == np.float32
    assert load_codes_metadata(tmp_path / "c") == {"names": ["a", "b", "c"]}


def test_damaged_codes_are_told_plainly(tmp_path, codes):
    path = tmp_path / "c"
    with pytest.raises(FileNotFoundError, match="no such codes file"):
        load_codes(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match="not a codes file"):
        load_codes(path)
    save_model(path, np.zeros((2, 3), np.float32), {})
    with pytest.raises(ModelFileError, match="holds pointillist-model, not pointillist-codes"):
        load_codes(path)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"indices": np.array([10**6, 4])}, "outside the grid"),
        ({"offsets": np.array([0, 1])}, "must go up from 0 to 2"),
        ({"n_filters": np.array(2**40)}, "n_filters must be at most"),
        ({"grids": None}, "grids"),
    ],
)
def test_codes_whose_arrays_do_not_fit_each_other_are_refused(tmp_path, changed, words):
    path = tmp_path / "codes.safetensors"
    save_codes(SparseCodes([np.array([1, 4])], [np.array([1.0, 2.0])], [(5,)], 2), path)
    stored = read_arrays(path, "codes")
    arrays = {name: array for name, array in {**stored.arrays, **changed}.items() if array is not None}
    write_arrays(path, "codes", stored.metadata, arrays)
    with pytest.raises(ModelFileError, match=words):
        load_codes(path)


def test_names_go_with_their_signals(tmp_path, codes):
    assert codes.names is None
    codes.names = ["a.png", "b.png", "c.npy[0]"]
    save_codes(codes, tmp_path / "c", {"penalty": 1.0})
    again = load_codes(tmp_path / "c")
    assert again.names == codes.names
    assert again[[2, 0]].names == ["c.npy[0]", "a.png"]
    assert SparseCodes.concatenate([again[1], again[0]]).names == ["b.png", "a.png"]
    assert again.on_host().names == codes.names
    with pytest.raises(ValueError, match="different names"):
        save_codes(codes, tmp_path / "c", {"names": ["x", "y", "z"]})
    codes.names = None
    assert SparseCodes.concatenate([again, codes]).names is None


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", 3], "abc"])
def test_names_must_fit(tmp_path, codes, names):
    with pytest.raises(ValueError, match="names must"):
        SparseCodes(codes.indices, codes.values, codes.grids, codes.n_filters, names=names)
    with pytest.raises(ValueError, match="names must"):
        save_codes(codes, tmp_path / "c", {"names": names})
    save_codes(codes, tmp_path / "c")
    write_arrays(tmp_path / "c", "codes", {"names": names}, read_arrays(tmp_path / "c", "codes").arrays)
    with pytest.raises(ModelFileError, match="damaged codes file: names must"):
        load_codes(tmp_path / "c")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_events_come_back(tmp_path, dtype):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((2, 3, 60_000)) < 0.2, rng.standard_normal((2, 3, 60_000)), 0).astype(dtype)
    events = SparseCodes.from_dense(dense).events(sampling_rate=3.0)
    write_events(events, tmp_path / "events.csv")
    with (tmp_path / "events.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(events) > 2**16
    for name in events.dtype.names:
        np.testing.assert_array_equal(np.array([row[name] for row in rows]).astype(events.dtype[name]), events[name])
    write_events(SparseCodes.from_dense(np.zeros((1, 2, 4, 5))).events(), tmp_path / "events.csv")
    assert (tmp_path / "events.csv").read_text() == "signal,row,column,filter,amplitude\n"
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]
