"""Neighbours continue planes, stripes and textures into holes, and say how wrong they are."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from pointillist.restore.prediction import TUNING, predicted
from pointillist.restore.smooth import without_holes

Y, X = np.mgrid[:96, :100].astype(float)


def hole(top, left, height, width):
    missing = np.zeros(Y.shape, bool)
    missing[top : top + height, left : left + width] = True
    return missing


def filled(planes, missing, **options):
    """Values, deviation and the first guess of planes whose missing pixels are not to be read."""
    planes = np.where(missing, 1e6, np.atleast_3d(planes.T).T if planes.ndim == 2 else planes)
    guess = without_holes(np.mean(planes, axis=0)[None], ~missing[None])[0]
    return (*predicted(planes, missing, ~missing, guess, **options), guess)


@pytest.mark.parametrize("place", [(40, 41, 10, 10), (0, 50, 10, 30), (86, 90, 10, 10), (30, 3, 2, 90)])
@pytest.mark.parametrize("texture", [0.0, 1.0])
def test_planes_are_continued(place, texture):
    planes = np.stack([0.2 + 0.004 * X - 0.002 * Y, np.full(X.shape, 0.7), 0.9 - 0.006 * Y])
    missing = hole(*place)
    values, _, _ = filled(planes, missing, texture=texture)
    np.testing.assert_allclose(values[:, missing], planes[:, missing], atol=2e-5)
    np.testing.assert_array_equal(values[:, ~missing], planes[:, ~missing])


def test_grain_is_not_carried_into_a_hole_beside_a_lively_place():
    """The fill of a noisy sky comes nearer to what lies below the noise than the noise itself does."""
    rng = np.random.default_rng(3)
    sky = 0.5 + 0.001 * X + 0.05 * np.cos(Y / 40)
    lively = np.where(Y > 64, gaussian_filter(rng.standard_normal(Y.shape), 1.5), 0)
    noisy = sky + lively + rng.normal(0, 0.005, Y.shape)
    missing = hole(30, 10, 10, 80)
    values, _, _ = filled(noisy, missing)
    assert np.sqrt(np.mean((values[0] - sky)[missing] ** 2)) < 0.003


@pytest.mark.parametrize("angle", [0, 20, 45, 73, 90, 140])
def test_stripes_are_continued_as_stripes(angle, error):
    turn = np.deg2rad(angle)
    planes = 0.5 + 0.3 * np.sin(2 * np.pi / 7.3 * (np.cos(turn) * X + np.sin(turn) * Y))
    missing = hole(43, 37, 10, 10)
    values, _, guess = filled(planes, missing)
    assert error(values[0][missing], planes[missing]) < 0.1 * error(guess[missing], planes[missing])


@pytest.mark.parametrize(("width", "tolerance"), [(0.7, 0.1), (1.0, 0.1), (1.5, 0.25)])
def test_errors_of_a_stationary_texture_are_as_large_as_reported(width, tolerance):
    """With the truth as the first guess; smoother textures are predicted better than the nugget lets them say."""
    rng = np.random.default_rng(0)
    missing = np.zeros(Y.shape, bool)
    for top in range(8, 90, 20):
        missing[top : top + 5, 5:95] = True
    wrong, expected = 0.0, 0.0
    for _ in range(3):
        texture = gaussian_filter(rng.standard_normal(Y.shape), width, mode="wrap")
        values, deviation = predicted(np.where(missing, 0, texture)[None], missing, ~missing, texture, deviations=True)
        wrong += np.sum((values[0] - texture)[missing] ** 2)
        expected += np.sum(deviation[missing] ** 2)
        assert np.all(deviation[~missing] == 0)
    assert np.sqrt(wrong / expected) == pytest.approx(1, rel=tolerance)


def test_deviations_grow_into_a_hole_and_with_the_contrast():
    texture = gaussian_filter(np.random.default_rng(1).standard_normal(Y.shape), 1.5)
    missing = hole(40, 40, 16, 16)
    _, deviation, _ = filled(texture, missing, deviations=True)
    assert deviation[48, 48] > 2 * deviation[40, 48] > 0
    _, larger, _ = filled(10 * texture, missing, deviations=True)
    np.testing.assert_allclose(larger, 10 * deviation, rtol=1e-5)


def test_a_constant_picture_stays_one_and_no_error_is_expected():
    missing = hole(40, 30, 12, 50)
    values, deviation, _ = filled(np.full(Y.shape, 0.3), missing, deviations=True)
    np.testing.assert_allclose(values[0], 0.3, atol=1e-12)
    assert np.max(deviation) < 1e-6


def test_the_deepest_pixel_is_still_filled():
    side = 2 * TUNING.deepest
    missing = hole(30, 30, side, side)
    values, _, _ = filled(0.01 * X, missing)
    np.testing.assert_allclose(values[0][missing], 0.01 * X[missing], atol=2e-5)


def test_texture_gives_means_the_contrast_of_their_surroundings():
    rng = np.random.default_rng(3)
    texture = 0.5 + 0.1 * rng.standard_normal(Y.shape)
    missing = hole(40, 30, 8, 40)
    calm, half, full = (filled(texture, missing, texture=part)[0][0] for part in (0.0, 0.5, 1.0))
    spreads = [np.std(plane[missing]) / np.std(texture) for plane in (calm, half, full)]
    assert spreads[0] < 0.4 < spreads[1] < 0.8 < spreads[2] < 1.25
    np.testing.assert_array_equal(full[~missing], texture[~missing])
    assert np.mean(full[missing]) == pytest.approx(0.5, abs=0.03)


def test_texture_is_taken_from_known_pixels_only():
    """Where nothing around is known but a narrow frame there is nothing to take it from: the mean stays."""
    texture = 0.5 + 0.1 * np.random.default_rng(4).standard_normal((24, 24))
    missing = np.zeros((24, 24), bool)
    missing[3:21, 3:21] = True
    planes = np.where(missing, 1e6, texture)[None]
    guess = without_holes(planes, ~missing[None])[0]
    calm, full = (predicted(planes, missing, ~missing, guess, texture=part)[0] for part in (0.0, 1.0))
    np.testing.assert_array_equal(full, calm)
