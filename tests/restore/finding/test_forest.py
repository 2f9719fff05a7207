"""Trees as arrays answer as a walk from node to node does."""

import numpy as np
import pytest

from pointillist.restore.finding import lines, specks
from pointillist.restore.finding.forest import load_forest


def walked(forest, row):
    total = forest.base
    for node in forest.roots:
        while forest.left[node] != node:
            below = row[forest.feature[node]] <= forest.threshold[node]
            node = forest.left[node] if below else forest.right[node]
        total += forest.value[node]
    return total


@pytest.mark.parametrize(("kind", "features"), [("dust", specks.FEATURES), ("scratches", lines.FEATURES)])
def test_log_odds_are_sums_of_leaves(kind, features):
    forest = load_forest(kind)
    assert forest.feature.max() < features
    rows = np.random.default_rng(0).normal(size=(200, features)).astype(np.float32)
    expected = np.array([walked(forest, row) for row in rows])
    got = forest.log_odds(rows)
    likely = got > -7
    np.testing.assert_allclose(got[likely], expected[likely], rtol=1e-4, atol=1e-4)
    assert np.all(expected[~likely] < 0)


def test_no_rows():
    assert load_forest("dust").log_odds(np.zeros((0, specks.FEATURES), np.float32)).shape == (0,)
