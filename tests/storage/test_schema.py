"""What a file's arrays and JSON may hold, refused in words otherwise."""

import numpy as np
import pytest

from pointillist.storage import write_arrays
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


def test_metadata_that_are_nested_too_deeply_are_refused(tmp_path):
    deep = []
    for _ in range(DEPTH + 2):
        deep = [deep]
    with pytest.raises(ValueError, match="nested more than"):
        write_arrays(tmp_path / "a", "codes", {"deep": deep}, {})
