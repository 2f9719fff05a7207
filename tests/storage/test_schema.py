"""What a file's arrays and JSON may hold, refused in words otherwise."""

import numpy as np
import pytest

from pointillist.storage import write_arrays
from pointillist.storage.schema import DEPTH, anything, check_array, check_form, number, parse_json, text, whole

FORM = {"names": [text], "counts": {...: whole(1)}, "gap": number(0, null=True), "more": {"known": text, ...: anything}}
GOOD = {"names": ["a"], "counts": {"x": 3}, "gap": None, "more": {"known": "", "other": [1]}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": "a"}, "it.names must be a list, got 'a'"),
        ({"names": ["a", 1]}, r"it.names\[1\] must be text, got 1"),
        ({"counts": []}, r"it.counts must be a mapping, got \[\]"),
        ({"counts": {"x": True}}, r"it.counts\['x'\] must be a whole number of at least 1, got True"),
        ({"counts": {"x": 2**63}}, "must be a whole number"),
        ({"gap": -1}, "it.gap must be a finite number of at least 0 or null, got -1"),
        ({"gap": 10**400}, "must be a finite number"),
        ({"more": {}}, "it.more has no entry 'known'"),
        ({"less": 0}, "it has an entry 'less', which it must not have"),
    ],
)
def test_values_that_have_not_their_form_are_refused_by_name(change, words):
    check_form(GOOD, FORM, "it")
    with pytest.raises(ValueError, match=words):
        check_form(GOOD | change, FORM, "it")


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
