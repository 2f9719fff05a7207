"""Tests of the figures of merit."""

import numpy as np
import pytest

from pointillist.metrics import psnr


def test_psnr_uses_the_range_of_the_reference():
    truth = np.array([-1.0, 3.0, 0.0, 1.0])
    guess = truth + np.array([0.4, -0.4, 0.4, -0.4])
    assert psnr(truth, guess) == pytest.approx(20.0)
    assert psnr(truth.astype(np.float32), truth) == float("inf")


@pytest.mark.parametrize(
    ("truth", "guess", "message"), [([1, 2], [1, 2, 3], "one shape"), ([1, 1], [1, 2], "reference is constant")]
)
def test_psnr_refuses(truth, guess, message):
    with pytest.raises(ValueError, match=message):
        psnr(truth, guess)


def test_what_has_no_peak_is_refused():
    with pytest.raises(ValueError, match="reference is empty"):
        psnr(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match="squares overflow"):
        psnr(np.array([0.0, 1e200]), np.zeros(2))
