"""Trees as arrays answer as a walk from node to node does."""

import numpy as np
import pytest

from pointillist.errors import ModelFileError
from pointillist.retouch import specks
from pointillist.retouch.forest import load_forest, read_forest, save_forest
from pointillist.storage import write_arrays


def walked(forest, row):
    total = forest.base
    for node in forest.roots:
        while forest.left[node] != node:
            below = row[forest.feature[node]] <= forest.threshold[node]
            node = forest.left[node] if below else forest.right[node]
        total += forest.value[node]
    return total


def test_log_odds_are_sums_of_leaves():
    forest = load_forest("dust")
    assert forest.feature.max() < specks.FEATURES
    rows = np.random.default_rng(0).normal(size=(200, specks.FEATURES)).astype(np.float32)
    expected = np.array([walked(forest, row) for row in rows])
    got = forest.log_odds(rows)
    likely = got > -7
    np.testing.assert_allclose(got[likely], expected[likely], rtol=1e-4, atol=1e-4)
    assert np.all(expected[~likely] < 0)


def test_no_rows():
    assert load_forest("dust").log_odds(np.zeros((0, specks.FEATURES), np.float32)).shape == (0,)


def test_forests_are_written_and_read(tmp_path):
    forest, path = load_forest("dust"), tmp_path / "a.safetensors"
    save_forest(path, forest, {"kind": "dust", "candidates": 7})
    again, facts = read_forest(path)
    assert facts == {"kind": "dust", "candidates": 7}
    for name, value in vars(forest).items():
        np.testing.assert_array_equal(getattr(again, name), value)


def test_files_of_another_kind_are_refused(tmp_path):
    write_arrays(tmp_path / "a", "model", {}, {"filters": np.zeros((2, 3))})
    with pytest.raises(ModelFileError, match="holds pointillist-model, not pointillist-forest"):
        read_forest(tmp_path / "a")
