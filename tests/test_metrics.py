"""Tests of measures: of pictures, and of filters that are known."""

import numpy as np
import pytest
from scipy.signal import correlate

from pointillist.metrics import psnr, recovery_score


def test_psnr_uses_the_range_of_the_reference():
    truth = np.array([-1.0, 3.0, 0.0, 1.0])
    guess = truth + np.array([0.4, -0.4, 0.4, -0.4])
    assert psnr(truth, guess) == pytest.approx(20.0)
    assert psnr(truth.astype(np.float32), truth) == float("inf")


@pytest.mark.parametrize(
    ("truth", "guess", "message"),
    [
        ([1, 2], [1, 2, 3], "one shape"),
        ([1, 1], [1, 2], "reference is constant"),
        ([], [], "reference is empty"),
        ([0.0, 1e200], [0, 0], "squares overflow"),
    ],
)
def test_what_has_no_peak_is_refused(truth, guess, message):
    with pytest.raises(ValueError, match=message):
        psnr(np.array(truth), np.array(guess))


@pytest.mark.parametrize(("size", "channels"), [((16,), 0), ((16,), 3), ((5, 7), 0), ((5, 7), 2), ((3, 4, 5), 0)])
def test_known_filters_in_disguise(size, channels):
    rng = np.random.default_rng(0)
    shape = ((channels,) if channels else ()) + size
    truth = rng.standard_normal((4, *shape))
    order, scales = rng.permutation(4), rng.uniform(0.1, 9, 4) * rng.choice([-1, 1], 4)
    disguised = truth[order] * scales.reshape(-1, *[1] * len(shape))
    pads = [(0, 0)] * (len(shape) + 1 - len(size)) + [(i + 1, 3) for i in range(len(size))]
    found = np.pad(disguised, pads)
    score, recovery = recovery_score(found, truth, channels=channels > 0, return_details=True)
    assert score == pytest.approx(1)
    np.testing.assert_array_equal(order[recovery.assignment], np.arange(4))
    np.testing.assert_array_equal(recovery.signs, np.sign(scales)[recovery.assignment])
    np.testing.assert_array_equal(recovery.shifts, np.tile([-(i + 1) for i in range(len(size))], (4, 1)))
    assert recovery_score(truth, found, channels=channels > 0) == pytest.approx(1)


@pytest.mark.parametrize(("one", "other"), [((9,), (12,)), ((12,), (9,)), ((4, 6), (5, 3))])
def test_similarities_are_those_of_plain_correlation(one, other):
    rng = np.random.default_rng(1)
    filters, truth = rng.standard_normal((3, *one)), rng.standard_normal((2, *other))
    score, recovery = recovery_score(filters, truth, return_details=True)
    for i, k in enumerate(recovery.assignment):
        plain = correlate(truth[i], filters[k], mode="full")
        expected = np.abs(plain).max() / (np.linalg.norm(truth[i]) * np.linalg.norm(filters[k]))
        assert recovery.similarities[i] == pytest.approx(expected)
        place = np.unravel_index(np.argmax(np.abs(plain)), plain.shape)
        assert recovery.shifts[i].tolist() == [p - n + 1 for p, n in zip(place, one, strict=True)]
    assert score == pytest.approx(np.mean(recovery.similarities))


def test_one_filter_serves_one_true_filter_only():
    truth = np.eye(3, 20)[:, :20]
    truth[:, 5:9] = np.random.default_rng(0).standard_normal((3, 4))
    score, recovery = recovery_score(truth[:1], truth, return_details=True)
    assert recovery.assignment.tolist() == [0, -1, -1]
    assert score == pytest.approx(1 / 3)
    assert recovery_score(np.zeros((3, 20)), truth) == 0
    assert recovery_score(np.concatenate([truth, -truth]), truth) == pytest.approx(1)


def test_channels_are_not_shifted_against_each_other():
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((1, 2, 30))
    skewed = np.stack([truth[:, 0], np.roll(truth[:, 1], 5, axis=-1)], axis=1)
    assert recovery_score(skewed, truth, channels=True) < 0.9


@pytest.mark.parametrize(
    ("filters", "truth", "channels", "message"),
    [
        (np.zeros((2, 5)), np.zeros((2, 5, 5)), False, "truth has"),
        (np.zeros((2, 3, 5)), np.zeros((2, 2, 5)), True, "channels"),
        (np.zeros(5), np.zeros((2, 5)), False, "filters must be a real array"),
        (np.zeros((2, 5)), np.full((2, 5), np.nan), False, "truth must be finite"),
    ],
)
def test_refusals(filters, truth, channels, message):
    with pytest.raises(ValueError, match=message):
        recovery_score(filters, truth, channels=channels)
