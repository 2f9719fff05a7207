"""What people may pass, and the penalty that predicts hidden samples."""

import numpy as np
import pytest

from pointillist.restore.engine import Damaged, Settings, choose_penalty, contrast, predicted_penalty, trial_of


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

    def chosen(damaged, n_jobs=1):
        bank, settings = filters[:, None], Settings(n_jobs=n_jobs)
        return predicted_penalty(trial_of(damaged, bank, settings), contrast(damaged), bank, settings)

    assert 2 * chosen(seen(picture)) < chosen(seen(noisy))
    assert chosen(seen(picture)) == chosen(seen(picture), n_jobs=2)
