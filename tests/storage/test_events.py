"""Tests of events in CSV files: nothing is lost in the text."""

import csv

import numpy as np
import pytest

from pointillist import SparseCodes
from pointillist.storage import events as module
from pointillist.storage import write_events


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_come_back(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(module, "_ROWS", 7)
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((2, 3, 50)) < 0.2, rng.standard_normal((2, 3, 50)), 0).astype(dtype)
    events = SparseCodes.from_dense(dense).events(sampling_rate=3.0)
    write_events(events, tmp_path / "events.csv")
    with (tmp_path / "events.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(events) > 14
    for name in events.dtype.names:
        np.testing.assert_array_equal(np.array([row[name] for row in rows]).astype(events.dtype[name]), events[name])
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]


def test_an_empty_table_has_its_names(tmp_path):
    write_events(SparseCodes.from_dense(np.zeros((1, 2, 4, 5))).events(), tmp_path / "events.csv")
    assert (tmp_path / "events.csv").read_text() == "signal,row,column,filter,amplitude\n"
