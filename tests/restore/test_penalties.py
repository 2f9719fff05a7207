"""Paths of penalties, what people may pass, and the penalty that predicts hidden samples."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.restore import penalty_path
from pointillist.restore.engine import Damaged, Settings
from pointillist.restore.penalties import choose_penalty, predicted_penalty

RNG = np.random.default_rng(0)


def test_a_path_starts_at_zero_codes_and_agrees_with_encode():
    signals, filters = RNG.standard_normal((2, 14, 15)), RNG.standard_normal((4, 3, 3)) / 3
    path = penalty_path(signals, filters, n=5, smallest=0.05, tol=1e-6)
    values = [point.penalty for point in path]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(0.05 * values[0])
    assert path[0].result.codes.nnz == 0
    alone = pt.encode(signals, filters, values[-1], tol=1e-6)
    np.testing.assert_allclose(path[-1].result.objective, alone.objective, rtol=1e-5)


def test_a_path_of_ones_own_with_weights():
    signals, filters = RNG.standard_normal((1, 40)), RNG.standard_normal((2, 5))
    weights = np.ones((1, 40))
    weights[0, :10] = 0
    path = penalty_path(signals, filters, penalties=[0.1, 1.0], weights=weights)
    assert [point.penalty for point in path] == [1.0, 0.1]


@pytest.mark.parametrize("change", [{"n": 0}, {"smallest": 1.5}, {"penalties": [-1.0]}])
def test_bad_paths(change):
    with pytest.raises(ValueError, match=r"n must|smallest|penalty"):
        penalty_path(RNG.standard_normal((1, 20)), RNG.standard_normal((2, 5)), **change)


def test_no_path_for_silence():
    with pytest.raises(ValueError, match="zero"):
        penalty_path(np.zeros((1, 20)), RNG.standard_normal((2, 5)))


def seen(picture, keep=0.6):
    weights = (np.random.default_rng(1).random(picture.shape) < keep).astype(float)
    return Damaged([(picture * weights)[None]], [weights[None]])


def test_what_people_pass(picture, filters):
    damaged, bank, settings = seen(picture), filters[:, None], Settings()
    assert choose_penalty("auto", 0.7, damaged, bank, settings) == 0.7
    assert choose_penalty(0.3, 0.7, damaged, bank, settings) == 0.3
    assert choose_penalty("0.3", 0.7, damaged, bank, settings) == 0.3
    whole = choose_penalty("100%", 0.7, damaged, bank, settings)
    assert choose_penalty("5%", 0.7, damaged, bank, settings) == pytest.approx(0.05 * whole)


@pytest.mark.parametrize("penalty", [0, -1.0, np.nan, "much", "x%", "-5%", True, None, [1.0]])
def test_bad_penalties(picture, filters, penalty):
    with pytest.raises(ValueError, match="penalty"):
        choose_penalty(penalty, 0.7, seen(picture), filters[:, None], Settings())


@pytest.mark.parametrize("picture", [np.full((40, 44), 0.3), np.add.outer(np.arange(40), np.arange(44)) / 90])
def test_a_part_of_nothing_but_rounding_is_no_penalty(picture, filters):
    damaged = Damaged([picture[None]], [np.ones((1, *picture.shape))])
    assert choose_penalty("5%", 0.7, damaged, filters[:, None], Settings()) == pytest.approx(0.05)


def test_hidden_samples_want_more_penalty_under_noise(picture, filters):
    noisy = picture + 0.15 * np.random.default_rng(2).standard_normal(picture.shape)
    quiet = predicted_penalty(seen(picture), filters[:, None], Settings(n_jobs=1))
    loud = predicted_penalty(seen(noisy), filters[:, None], Settings(n_jobs=1))
    assert 2 * quiet < loud
    assert quiet == predicted_penalty(seen(picture), filters[:, None], Settings(n_jobs=2))
