"""Noise of four kinds is taken away."""

import numpy as np
import pytest

from pointillist.restore import denoise, denoising
from pointillist.restore.denoising import destabilise, find_impulses, find_outliers, stabilise
from pointillist.restore.engine import Settings
from pointillist.restore.picture import open_canvas
from pointillist.restore.subject import Tuning

RNG = np.random.default_rng


def test_gaussian_known_and_estimated(picture, filters, error):
    noisy = picture + 0.1 * RNG(0).standard_normal(picture.shape)
    for sigma in (0.1, None):
        cleaner, details = denoise(noisy, sigma, filters, return_details=True, data_range=1.0)
        assert error(cleaner, picture) < 0.6 * error(noisy, picture)
        assert details.sigma == pytest.approx(0.1, rel=0.3)
        assert details.penalty == pytest.approx(2.2 * details.sigma)


def test_sigma_is_in_the_pictures_own_units(picture, filters, error):
    noisy = np.clip(np.rint(255 * picture + 25 * RNG(0).standard_normal(picture.shape)), 0, 255).astype(np.uint8)
    cleaner, details = denoise(noisy, 25, filters, return_details=True)
    assert cleaner.dtype == np.uint8
    assert details.sigma == 25
    assert error(cleaner / 255, picture) < 0.6 * error(noisy / 255, picture)


def test_nan_is_filled_in(picture, filters, error):
    noisy = picture + 0.05 * RNG(0).standard_normal(picture.shape)
    noisy[RNG(1).random(picture.shape) < 0.1] = np.nan
    cleaner = denoise(noisy, 0.05, filters)
    assert error(cleaner, picture) < 0.06


def test_salt_and_pepper(picture, filters, error):
    chance = RNG(0).random(picture.shape)
    noisy = np.rint(255 * picture).astype(np.uint8)
    noisy[chance < 0.1], noisy[chance > 0.9] = 0, 255
    cleaner, details = denoise(noisy, filters=filters, noise="salt_pepper", return_details=True)
    assert error(cleaner / 255, picture) < 0.2 * error(noisy / 255, picture)
    kept = ~details.missing
    np.testing.assert_array_equal(cleaner[kept], noisy[kept])
    assert np.mean(kept[(chance >= 0.1) & (chance <= 0.9)]) > 0.95


CALM = 0.3 + 0.4 * np.add.outer(np.arange(40), np.arange(44)) / 82


def test_a_clean_picture_is_left_alone(filters):
    cleaner, details = denoise(CALM, filters=filters, noise="outliers", return_details=True)
    np.testing.assert_allclose(cleaner, CALM, rtol=1e-15)
    assert not np.any(details.missing)
    assert np.isnan(details.penalty)


def test_few_outliers_are_filled_in_by_neighbours_without_codes(filters):
    noisy = CALM.copy()
    noisy[5::13, 7::13] = 1
    cleaner, details = denoise(noisy, filters=filters, noise="outliers", return_details=True)
    np.testing.assert_array_equal(details.missing, noisy == 1)
    np.testing.assert_allclose(cleaner, CALM, atol=1e-3)
    assert np.isnan(details.penalty)
    assert details.codes.nnz == 0


def test_outliers_of_any_value_in_colour(colour_picture, filters, error):
    wrong = RNG(0).random(colour_picture.shape) < 0.05
    noisy = np.where(wrong, RNG(1).random(colour_picture.shape), colour_picture)
    cleaner, details = denoise(noisy, filters=filters, noise="outliers", return_details=True)
    assert error(cleaner, colour_picture) < 0.5 * error(noisy, colour_picture)
    assert details.missing.shape == colour_picture.shape


@pytest.mark.parametrize("dtype", [np.uint16, np.float64])
def test_poisson(picture, filters, error, dtype):
    noisy = RNG(0).poisson(30 * picture).astype(dtype)
    cleaner = denoise(noisy, filters=filters, noise="poisson")
    assert cleaner.dtype == dtype
    assert error(cleaner / 30, picture) < 0.7 * error(noisy / 30, picture)
    assert np.mean(cleaner) == pytest.approx(np.mean(noisy), rel=0.03)
    if dtype is np.float64:
        halved = denoise(noisy / 2, filters=filters, noise="poisson", gain=2.0)
        np.testing.assert_allclose(2 * halved, cleaner, atol=1e-3)


def test_outliers_include_specks_of_dust(filters, error):
    sky = np.stack([0.4 + 0.002 * np.mgrid[:64, :72][axis] for axis in (0, 1, 1)], axis=-1)
    sky += 0.005 * RNG(0).standard_normal(sky.shape)
    dusty = sky.copy()
    for row, column, size in ((20, 20, 3), (40, 50, 5), (15, 55, 7)):
        dusty[row : row + size, column : column + size] = 0.95
    cleaner, details = denoise(dusty, filters=filters, noise="outliers", return_details=True, data_range=1.0)
    assert details.missing[15:22, 55:62].all()
    assert error(cleaner, sky) < 0.1 * error(dusty, sky)


@pytest.mark.parametrize("large", [4000, 10000])
def test_pepper_in_a_white_sky_is_found_and_the_sky_kept(picture, filters, monkeypatch, large):
    monkeypatch.setattr(denoising, "SUBJECT", Tuning(large=large, side=24))
    noisy = np.rint(40 + 160 * picture).astype(np.uint8)
    noisy[:, :60] = 255
    noisy[20, 20] = 0
    odd = find_impulses(open_canvas(noisy), filters[:, None], Settings())[0]
    assert odd[20, 20]
    assert np.sum(odd[:, :55]) == 1


def test_what_is_missing_is_not_odd(picture, filters):
    holed = picture.copy()
    holed[10:14, 10:14] = np.nan
    holed[40, 40] = 1 - np.round(holed[40, 40])
    for find in (find_impulses, find_outliers):
        odd = find(open_canvas(holed), filters[:, None], Settings())
        assert odd.shape == (1, *picture.shape)
        assert not np.any(odd[0, 10:14, 10:14])
        assert odd[0, 40, 40]


@pytest.mark.parametrize("mean", [2.0, 5.0, 40.0])
def test_counts(mean):
    counts = np.random.default_rng(0).poisson(mean, 200_000)
    values = stabilise(counts)
    assert np.std(values) == pytest.approx(1, abs=0.12)
    assert destabilise(np.mean(values, keepdims=True))[0] == pytest.approx(mean, rel=0.02)


def test_levels_in_small_types_are_numbers_like_others():
    picture = (255 * np.random.default_rng(0).random((24, 24))).astype(np.uint16)
    same = [denoise(picture, sigma=kind(2.0)) for kind in (np.float16, float)]
    np.testing.assert_array_equal(*same)
