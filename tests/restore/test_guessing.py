"""First guesses are coded at one penalty, chosen once and near the damage, where missing pixels are scattered."""

import time

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

from pointillist.restore import guessing
from pointillist.restore.engine import Settings
from pointillist.restore.guessing import Coder, fill_canvas
from pointillist.restore.pictures import open_canvas

HEIGHT, WIDTH = 260, 400


def halves(left, right, seed=0):
    """A picture (260, 400) with noise of one deviation on its left and of another on its right."""
    noise = np.random.default_rng(seed).standard_normal((HEIGHT, WIDTH))
    return 0.5 + noise * np.where(np.arange(WIDTH) < WIDTH // 2, left, right)


def damage(side):
    """Scattered pixels in the tiles of one side alone."""
    missing = np.random.default_rng(1).random((HEIGHT, WIDTH)) < 0.3
    missing[:, 120:280] = False
    missing[:, 280:] &= side == "right"
    missing[:, :120] &= side == "left"
    return missing


def coder(picture, missing, filters, price="auto", **settings):
    canvas = open_canvas(picture, missing, data_range=1.0)
    return Coder(canvas, filters[:, None], price, Settings(n_jobs=1, **settings))


def test_the_penalty_is_chosen_once_for_all_tiles_and_threads(monkeypatch, filters):
    calls = []

    def predicted(*arguments):
        calls.append(arguments)
        time.sleep(0.02)  # so that other threads ask meanwhile
        return 0.25

    monkeypatch.setattr(guessing, "predicted_penalty", predicted)
    picture, missing = halves(0.05, 0.05), np.zeros((HEIGHT, WIDTH), bool)
    missing[::40, ::9] = True
    settings = Settings(n_jobs=3)
    canvas = open_canvas(picture, missing, data_range=1.0)
    target = picture[None].copy()
    made = fill_canvas(canvas, Coder(canvas, filters[:, None], "auto", settings), target, settings, everywhere=True)
    assert len(made) == 1
    assert len(made[0].coded) == 8
    assert made[0].penalty == 0.25
    assert len(calls) == 1


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("price", ["auto", "5%"])
def test_the_penalty_is_that_of_the_damaged_part(filters, side, price):
    """What lies on the other side changes nothing; ten times the detail here asks for more penalty."""
    quiet, loud = (0.005, 0.1) if side == "left" else (0.1, 0.005), (0.05, 0.1) if side == "left" else (0.1, 0.05)
    missing = damage(side)
    here = coder(halves(*quiet), missing, filters, price).penalty
    other = halves(quiet[0], quiet[1] / 3) if side == "left" else halves(quiet[0] / 3, quiet[1])
    assert coder(other, missing, filters, price).penalty == here
    assert coder(halves(*loud), missing, filters, price).penalty > 3 * here


def test_numbers_and_percentages(filters):
    picture, missing = halves(0.05, 0.05), damage("left")
    assert coder(picture, missing, filters, 0.07).penalty == 0.07
    assert coder(picture, missing, filters, "0.07").penalty == 0.07
    five, ten = (coder(picture, missing, filters, price).penalty for price in ("5%", "10%"))
    assert ten == pytest.approx(2 * five)
    assert 0 < five < 1


@pytest.mark.parametrize("price", ["auto", "5%"])
def test_holes_of_whole_tiles_leave_something_to_choose_by(filters, price):
    missing = np.zeros((HEIGHT, WIDTH), bool)
    missing[128:256, 128:256] = True
    assert 0 < coder(halves(0.05, 0.05), missing, filters, price).penalty < 1


@pytest.mark.parametrize("price", ["auto", "5%"])
def test_one_seen_pixel_leaves_something_to_choose_by(filters, price):
    missing = np.ones((100, 100), bool)
    missing[50, 50] = False
    assert coder(np.full((100, 100), 0.5), missing, filters, price).penalty > 0


def scattered_and_scratched():
    """Scattered pixels in the first tile, and a scratch in the last ones."""
    missing = np.zeros((128, WIDTH), bool)
    missing[:, :128] = np.random.default_rng(2).random((128, 128)) < 0.4
    missing[60:63, 300:390] = True
    return missing


@pytest.mark.parametrize(("everywhere", "boxes"), [(False, {(0, 0)}), (True, {(0, 0), (0, 208), (0, 336)})])
def test_only_scattered_pixels_are_coded_unless_everywhere(filters, everywhere, boxes):
    missing = scattered_and_scratched()
    settings = Settings(n_jobs=1)
    picture = halves(0.05, 0.05)[:128]
    canvas = open_canvas(picture, missing, data_range=1.0)
    target = picture[None].copy()
    made = fill_canvas(canvas, Coder(canvas, filters[:, None], 0.1, settings), target, settings, everywhere=everywhere)
    assert set(made[0].coded) == boxes
    np.testing.assert_array_equal(target[0][~missing], picture[~missing])
    assert np.all(target[0][missing] != picture[missing])


def test_without_a_coder_nothing_is_coded_and_deviations_are_in_the_pictures_units():
    picture = np.rint(255 * np.clip(halves(0.05, 0.1)[:128], 0, 1)).astype(np.uint8)
    missing, settings = scattered_and_scratched(), Settings(n_jobs=1)
    canvas = open_canvas(picture, missing)
    target, deviation = picture[None].copy(), np.zeros((1, *missing.shape))
    assert fill_canvas(canvas, None, target, settings, deviation=deviation) == []
    np.testing.assert_array_equal(deviation[0] > 0, missing)
    # White noise cannot be predicted: the right half's is 25 grey levels.
    assert np.median(deviation[0][:, 300:][missing[:, 300:]]) == pytest.approx(25, rel=0.2)


def test_each_mask_has_a_coder_of_its_own(filters):
    rng = np.random.default_rng(3)
    picture = rng.random((60, 64, 3))
    missing = rng.random(picture.shape) < 0.3
    missing[..., 1] = False
    settings = Settings(n_jobs=1)
    canvas = open_canvas(picture, missing)
    target = np.moveaxis(picture, -1, 0).copy()
    made = fill_canvas(canvas, Coder(canvas, filters[:, None], 0.1, settings), target, settings)
    assert len(made) == 2
    np.testing.assert_array_equal(np.moveaxis(target, 0, -1)[~missing], picture[~missing])


def test_codes_are_trusted_where_they_tell_hidden_pixels_better(filters):
    """A picture that is made of the filters, and one that is a smooth random texture."""
    rng = np.random.default_rng(5)
    codes = np.where(rng.random((48, 96, 96)) < 3e-4, 1.0, 0.0)
    drawn = 0.5 + sum(scipy.signal.convolve(z, f, "same") for z, f in zip(codes, filters, strict=True))
    texture = 0.5 + scipy.ndimage.gaussian_filter(rng.standard_normal((96, 96)), 1.2)
    missing = rng.random((96, 96)) < 0.4

    def trust(picture):
        canvas = open_canvas(picture, missing, data_range=1.0)
        return Coder(canvas, filters[:, None], 0.02, Settings(n_jobs=1)).trust()

    assert 0 <= trust(texture) < 0.3 < trust(drawn) <= 1
