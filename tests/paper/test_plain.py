"""Tests of blocks as JSON: they survive it, and what is no block is refused."""

import json

import pytest
from paper.plain import from_plain, to_plain

from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Compare, Picture, SideBySide, Table, Verdict, Verdicts

PICTURE = Picture("data:image/png;base64,AA==", 3, 2, "a picture")


@pytest.mark.parametrize(
    "block",
    [
        Chart("t", "x", "y", [Curve("a", [1.0, 2.0], [3.0, 4.0], "c1", "dashed")], {"level": 2.0}, log_x=True),
        Table(["a", "b"], [["one", 1], ["two", None]], "title", "note", ["one"]),
        Compare(PICTURE, PICTURE, "title"),
        Verdicts([Verdict("claim", "paper", "ours", True, "numbers")]),
        SideBySide([PICTURE, SideBySide([PICTURE])]),
    ],
)
def test_json_and_back(block):
    assert from_plain(json.loads(json.dumps(to_plain(block)))) == block


@pytest.mark.parametrize(
    "plain", [{"kind": "Script"}, {"kind": []}, {"kind": "Text"}, {"kind": "Text", "text": "", "more": 1}]
)
def test_refusals(plain):
    with pytest.raises(ValueError, match="kind must be one of"):
        from_plain(plain)
