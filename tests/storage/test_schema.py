"""What a file's arrays and JSON may hold, refused in words otherwise."""

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.storage import codec, codes, files
from pointillist.storage.schema import DEPTH, check_array, parse_json


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "array a is missing"),
        ({"a": np.ones((2, 3))}, "must not be of type float64"),
        ({"a": np.ones((2, 3), int)}, r"must have shape \(any\), got \(2, 3\)"),
        ({"a": np.array([-1])}, "less than 0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, words):
    with pytest.raises(ValueError, match=words):
        check_array(arrays, "a", "i", (None,), least=0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "a key twice"),
        ("[NaN]", "must not hold NaN"),
        ("[" * (DEPTH + 2) + "]" * (DEPTH + 2), "nested more than"),
    ],
)
def test_json_that_is_no_record_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse_json(text)


def _stored(tmp_path, **changed):
    path = tmp_path / "codes.safetensors"
    one = SparseCodes([np.array([1, 4])], [np.array([1.0, 2.0])], [(5,)], 2)
    codes.save_codes(one, path)
    stored = codec.read_arrays(path, "codes")
    codec.write_arrays(path, "codes", stored.metadata, {**stored.arrays, **changed})
    return path


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"more": np.ones(1)}, "which codes do not have"),
        ({"offsets": np.array([0, 1])}, "must go up from 0 to 2"),
        ({"n_filters": np.array(2**40)}, "n_filters must be at most"),
    ],
)
def test_codes_whose_arrays_do_not_fit_each_other_are_refused(tmp_path, changed, words):
    with pytest.raises(ValueError, match=words):
        codes.load_codes(_stored(tmp_path, **changed))


def test_metadata_that_are_nested_too_deeply_are_refused(tmp_path):
    deep = []
    for _ in range(DEPTH + 2):
        deep = [deep]
    with pytest.raises(ValueError, match="nested more than"):
        codec.write_arrays(tmp_path / "a", "codes", {"deep": deep}, {})


def test_the_version_of_a_package_that_is_not_installed_is_unknown(monkeypatch):
    def missing(name):
        raise codec.PackageNotFoundError(name)

    monkeypatch.setattr(codec, "version", missing)
    assert codec.own_version() == "unknown"
    monkeypatch.setattr(codec, "version", lambda name: None)
    assert codec.own_version() == "unknown"


def test_a_stamp_changes_with_the_file(tmp_path):
    path = tmp_path / "file"
    assert files.stamp(path) is None
    path.write_text("one")
    first = files.stamp(path)
    path.write_text("another")
    assert first != files.stamp(path)
