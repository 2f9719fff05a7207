"""Tests of the benchmarks of series: what is set beside our figures belongs to the same sizes."""

import sys

import numpy as np
import pytest
from benchmarks.anomalies import matrix_profile
from benchmarks.series import PUBLISHED, beside_published
from benchmarks.tables import Table


def test_published_seconds_stand_beside_their_sizes():
    columns = ["samples", "passes", "ours, s", "objective", "recovery", "alphacsc, s", "its objective", "its recovery"]
    table = Table("ours", columns)
    table.add(10_000, 10, 0.5, 1.0, 0.9, "", "", "")
    table.add(20_000, 10, 0.6, 1.0, 0.8, "", "", "")
    found = beside_published(table, "cpu")
    assert found.rows == [[10_000, 10, 0.5, 0.9, PUBLISHED[10_000]], [20_000, 10, 0.6, 0.8, None]]
    assert "ours on cpu, s" in found.columns


@pytest.mark.parametrize("window", [20, 21])
def test_a_discord_lies_in_the_middle_of_its_window(window, monkeypatch):
    """The profile has a value for each first sample of a window; a stand-in for stumpy says which one is strange."""

    class Stand:
        @staticmethod
        def stump(series, window, normalize):
            distances = np.zeros((len(series) - window + 1, 4))
            distances[100, 0] = 1.0
            return distances

    monkeypatch.setitem(sys.modules, "stumpy", Stand)
    found = matrix_profile(np.zeros(300, np.float32), window, normalize=True)
    assert len(found) == 300
    assert np.flatnonzero(found).tolist() == [100 + window // 2]
