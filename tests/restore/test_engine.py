"""Plain synthesis of blurred codes, refitting, and the penalty that predicts hidden samples."""

import numpy as np
import pytest
import scipy.signal
from tests.restore.conftest import random_blur

from pointillist.codes import SparseCodes
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.restore.engine import (
    Damaged,
    Settings,
    choose_penalty,
    code,
    contrast,
    predicted_penalty,
    refit,
    separate,
    synthesise,
    trial_of,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("boundary", ["same", "full"])
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (2, 4)])
def test_blurring_the_synthesis_gives_what_was_coded(boundary, size):
    blur, filters, space = random_blur(RNG, size), RNG.standard_normal((3, 1, 4, 5)), (16, 17)
    geometry = Geometry(space, blur.extended((4, 5)), 1, boundary)
    dense = RNG.standard_normal((1, 3, *geometry.grid)) * (RNG.random((1, 3, *geometry.grid)) < 0.1)
    codes = SparseCodes.from_dense(dense)
    blurred = ConvolutionOperator(blur.filters(filters), geometry).synthesise(codes.indices[0], codes.values[0])
    sharp = synthesise(codes, filters, [(1, *space)], blur, boundary)[0]
    again = scipy.signal.convolve(sharp[0], blur.kernel, mode="same")
    height, width = size
    inner = (slice(height, 16 - height), slice(width, 17 - width))
    np.testing.assert_allclose(again[inner], blurred[0][inner], atol=1e-9)


def test_refitting_lowers_the_squared_error(picture, filters):
    weights = (np.random.default_rng(1).random(picture.shape) < 0.6).astype(float)
    damaged, settings = Damaged([(picture * weights)[None]], [weights[None]]), Settings(n_jobs=1)
    smooth = separate(damaged, settings)
    codes = code(damaged, smooth, filters[:, None], 0.1, settings).codes
    fitted = refit(damaged, smooth, filters[:, None], codes, settings)
    np.testing.assert_array_equal(fitted.indices[0], codes.indices[0])

    def loss(some):
        fit = smooth[0].sharp + synthesise(some, filters[:, None], [(1, *picture.shape)], damaged.blur, "same")[0]
        return np.sum(weights * (picture - fit[0]) ** 2)

    assert loss(fitted) < 0.7 * loss(codes)


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
