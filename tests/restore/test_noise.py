"""Noise is measured as strong as it is, and counts come back unbiased."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.restore.noise import destabilise, estimate_sigma, stabilise


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_sigma_beside_a_picture_and_holes(picture, sigma):
    rng = np.random.default_rng(0)
    noisy = picture + sigma * rng.standard_normal(picture.shape)
    assert estimate_sigma(noisy) == pytest.approx(sigma, rel=0.25)
    mask = rng.random(picture.shape) < 0.1
    assert estimate_sigma(np.where(mask, 0, noisy), mask) == pytest.approx(sigma, rel=0.4)
    assert estimate_sigma(np.where(mask, np.nan, noisy)) == estimate_sigma(np.where(mask, 0, noisy), mask)


def test_sigma_of_colour_is_that_of_its_channels():
    noise = np.random.default_rng(0).standard_normal((64, 64, 3)) * [1.0, 2.0, 3.0]
    expected = np.sqrt(np.mean([estimate_sigma(noise[..., c]) ** 2 for c in range(3)]))
    assert estimate_sigma(noise) == pytest.approx(expected)
    assert estimate_sigma(np.moveaxis(noise, -1, 0), channel_axis=0) == pytest.approx(expected)


def test_nothing_to_measure():
    assert estimate_sigma(np.ones((2, 2))) == 0
    assert estimate_sigma(np.ones((20, 20)), np.arange(400).reshape(20, 20) > 0) == 0
    assert estimate_sigma(np.add.outer(np.arange(20.0), np.arange(20.0))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("mean", [2.0, 5.0, 40.0])
def test_counts(mean):
    counts = np.random.default_rng(0).poisson(mean, 200_000)
    values = stabilise(counts)
    assert np.std(values) == pytest.approx(1, abs=0.12)
    assert destabilise(np.mean(values, keepdims=True))[0] == pytest.approx(mean, rel=0.02)


def test_levels_in_small_types_are_numbers_like_others():
    picture = (255 * np.random.default_rng(0).random((24, 24))).astype(np.uint16)
    same = [pt.denoise(picture, sigma=kind(2.0)) for kind in (np.float16, float)]
    np.testing.assert_array_equal(*same)
