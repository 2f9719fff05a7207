"""Tests of codes files: what was written comes back, and damage is told plainly."""

import numpy as np
import pytest

from pointillist import SparseCodes
from pointillist.errors import ModelFileError
from pointillist.storage import load_codes, load_codes_metadata, read_arrays, save_codes, save_model, write_arrays


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
    save_codes(codes, path)
    arrays = read_arrays(path, "codes").arrays
    arrays["indices"][0] = 10**6
    write_arrays(path, "codes", {}, arrays)
    with pytest.raises(ModelFileError, match="outside the grid"):
        load_codes(path)
    del arrays["grids"]
    write_arrays(path, "codes", {}, arrays)
    with pytest.raises(ModelFileError, match="grids"):
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
    codes.names = None
    assert SparseCodes.concatenate([again, codes]).names is None


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", 3], "abc"])
def test_names_must_fit(tmp_path, codes, names):
    with pytest.raises(ValueError, match="names must"):
        SparseCodes(codes.indices, codes.values, codes.grids, codes.n_filters, names=names)
    with pytest.raises(ValueError, match="names must"):
        save_codes(codes, tmp_path / "c", {"names": names})
    arrays = read_arrays_of(codes, tmp_path)
    write_arrays(tmp_path / "c", "codes", {"names": names}, arrays)
    with pytest.raises(ModelFileError, match="damaged codes file: names must"):
        load_codes(tmp_path / "c")


def test_names_are_said_once(tmp_path, codes):
    codes.names = ["a", "b", "c"]
    with pytest.raises(ValueError, match="different names"):
        save_codes(codes, tmp_path / "c", {"names": ["x", "y", "z"]})


def read_arrays_of(codes, folder):
    save_codes(codes, folder / "c")
    return read_arrays(folder / "c", "codes").arrays
