"""Tests of the blocks as values: they survive JSON and refuse what cannot be drawn."""

import json

import numpy as np
import pytest

from pointillist.plot.blocks import (
    Chart,
    Compare,
    Curve,
    Picture,
    SideBySide,
    Table,
    Trace,
    Verdict,
    Verdicts,
    Waveforms,
    from_plain,
    to_plain,
)

PICTURE = Picture("data:image/png;base64,AA==", 3, 2, "a picture")


@pytest.mark.parametrize(
    "block",
    [
        Chart("t", "x", "y", [Curve("a", [1.0, 2.0], [3.0, 4.0], "c1", "dashed")], {"level": 2.0}, log_x=True),
        Table(["a", "b"], [["one", 1], ["two", None]], "title", "note", ["one"]),
        Compare(PICTURE, PICTURE, "title"),
        Waveforms([[[1.0, 2.0]]], "caption"),
        Trace("title", 3, [[1.0, 2.0]], [[1.0, 1.5]], [4], [[3.0, 0.0, -1.5]], 2),
        Verdicts([Verdict("claim", "paper", "ours", True, "numbers")]),
        SideBySide([PICTURE, SideBySide([PICTURE])]),
    ],
)
def test_json_and_back(block):
    assert from_plain(json.loads(json.dumps(to_plain(block)))) == block


def test_arrays_become_lists():
    curve = Curve("a", np.arange(3), np.ones(3, np.float32))
    assert json.loads(json.dumps(to_plain(curve)))["y"] == [1.0, 1.0, 1.0]


def test_refusals():
    with pytest.raises(ValueError, match="must have 2 cells, got 1"):
        Table(["a", "b"], [["one"]], "title")
    with pytest.raises(ValueError, match="kind must be one of"):
        from_plain({"kind": "Script"})
    for plain in ({"kind": []}, {"kind": "Text"}, {"kind": "Text", "text": "", "more": 1}):
        with pytest.raises(ValueError, match=r"kind|Text"):
            from_plain(plain)
    with pytest.raises(ValueError, match="as many x as y"):
        Curve("a", [1.0], [])
    with pytest.raises(ValueError, match="must have one shape"):
        Trace("title", 0, [[1.0, 2.0]], [[1.0]], [0], [], 1)
