"""Tests of the judge, and of following a learner."""

import numpy as np
import pytest
from paper.judging import follow, judge, powers_of_two

from pointillist import OnlineCSC, encode


@pytest.fixture
def images():
    return np.random.default_rng(0).standard_normal((5, 12, 12)).astype(np.float32)


def test_a_judgement_adds_up(images):
    filters = 3 * np.random.default_rng(1).standard_normal((2, 3, 3)).astype(np.float32)
    found = judge(images[:2], filters)
    bounded = filters / np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    result = encode(images[:2], bounded, 1.0)
    assert found.objective == pytest.approx(float(np.sum(result.objective)), rel=2e-3)
    assert found.psnr == pytest.approx(np.mean(found.each_psnr))
    assert found.large == sum(found.each_large) <= found.nonzeros


def test_filters_are_kept_when_due_and_at_the_end(images):
    model = OnlineCSC(2, 3, 1.0, n_epochs=1, random_state=0, n_jobs=1)
    kept = follow(model, images, "ours", due=powers_of_two)
    assert kept.seen == [1, 2, 4, 5]
    np.testing.assert_array_equal(kept.filters[-1], model.filters_)
