"""Tests of the events that a score is cut into."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.anomalies.scoring import bulk_threshold


def _score(values, extent, threshold=1.0):
    score = np.asarray(values, float)
    return pt.AnomalyScore([score], {"residual": [0.4 * score], "rhythm": [0.6 * score]}, threshold, extent)


def test_near_stretches_are_one_event_and_far_ones_two():
    values = np.zeros(100)
    values[[10, 14, 60]] = 2.0, 3.0, 1.5
    events = _score(values, (12,)).events()
    assert events[["start", "stop", "peak"]].tolist() == [(10, 15, 14), (60, 61, 60)]
    assert events["score"].tolist() == [3.0, 1.5]
    assert set(events["cause"]) == {"rhythm"}
    assert len(_score(values, (4,)).events()) == 3


def test_another_threshold():
    values = np.zeros(50)
    values[[5, 40]] = 2.0, 4.0
    found = _score(values, (4,))
    assert found.events(threshold=3.0)["peak"].tolist() == [40]
    assert len(found.events(threshold=9)) == 0
    with pytest.raises(ValueError, match="threshold must be"):
        found.events(threshold="high")


def test_boxes_of_an_image():
    values = np.zeros((20, 30))
    values[4:7, 10:12] = 2.0
    values[5, 11] = 5.0
    values[15, 25] = 3.0
    events = _score(values, (4, 4)).events()
    assert events["start"].tolist() == [[4, 10], [15, 25]]
    assert events["stop"].tolist() == [[7, 12], [16, 26]]
    assert events["peak"].tolist() == [[5, 11], [15, 25]]


def test_the_threshold_is_that_of_an_exponential_tail():
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=200_000)
    assert np.mean(scores > bulk_threshold([scores], 0.01)) == pytest.approx(0.01, rel=0.1)
    scores[:20_000] = 100.0
    assert 4 < bulk_threshold([scores], 0.01) < 7
