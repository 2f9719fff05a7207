"""Trees as arrays answer as a walk from node to node does, on the features of candidates."""

import numpy as np

from pointillist.retouch.dust import load_forest, speck_candidates

FEATURES = 29


def walked(forest, row):
    total = forest.base
    for node in forest.roots:
        while forest.left[node] != node:
            below = row[forest.feature[node]] <= forest.threshold[node]
            node = forest.left[node] if below else forest.right[node]
        total += forest.value[node]
    return total


def test_log_odds_are_sums_of_leaves():
    forest = load_forest()
    rows = np.random.default_rng(0).normal(size=(200, FEATURES)).astype(np.float32)
    expected = np.array([walked(forest, row) for row in rows])
    got = forest.log_odds(rows)
    likely = got > -7
    np.testing.assert_allclose(got[likely], expected[likely], rtol=1e-4, atol=1e-4)
    assert np.all(expected[~likely] < 0)


def test_no_rows():
    assert load_forest().log_odds(np.zeros((0, FEATURES), np.float32)).shape == (0,)


def test_candidates_are_counted_and_described():
    values = np.random.default_rng(1).random((60, 70, 3)).astype(np.float32) * 0.02 + 0.4
    values[20:23, 30:33] += 0.3
    for labels, features in speck_candidates(values):
        assert features.shape == (labels.max(), FEATURES)
        assert np.all(np.isfinite(features))
        assert labels[21, 31] > 0
    assert load_forest().feature.max() < FEATURES
    assert all(features.shape == (0, FEATURES) for _, features in speck_candidates(np.full((9, 9, 1), 0.5, np.float32)))
