"""Blurs are undone, without a shift."""

import numpy as np
import pytest
import scipy.signal

import pointillist as pt
from pointillist.restore import deblur


@pytest.fixture(scope="module")
def psf():
    taps = np.exp(-0.5 * (np.arange(-3, 4) / 1.2) ** 2)
    return np.outer(taps, taps)


def test_blur_is_undone(psf, error):
    sharp = pt.photographs("test")["camera"][50:142, 120:220].astype(np.float64)
    blurred = scipy.signal.convolve(sharp, psf / np.sum(psf), mode="valid")
    sharp = sharp[3:-3, 3:-3]
    noisy = blurred + 0.005 * np.random.default_rng(0).standard_normal(blurred.shape)
    mended, details = deblur(noisy, psf, return_details=True)
    assert error(mended, sharp) < 0.6 * error(noisy, sharp)
    assert details.sigma == pytest.approx(0.005, rel=0.5)
    known = deblur(noisy, psf, sigma=0.02, return_details=True)[1]
    assert known.penalty == pytest.approx(0.17 * 0.02)


def test_motion_in_colour_keeps_the_type(colour_picture, filters, error):
    psf = np.eye(5)
    blurred = scipy.signal.convolve(colour_picture, psf[..., None] / 5, mode="same")
    seen = np.rint(255 * np.clip(blurred, 0, 1)).astype(np.uint8)
    mended = deblur(seen, psf, filters, sigma=1.0)
    assert mended.dtype == np.uint8
    inner = (slice(8, -8), slice(8, -8))
    assert error(mended[inner] / 255, colour_picture[inner]) < 0.6 * error(seen[inner] / 255, colour_picture[inner])


def test_a_point_is_no_blur(picture, filters, error):
    assert error(deblur(picture, np.ones((1, 1)), filters, 0.005), picture) < 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"psf": np.ones((30, 3))}, "psf of shape .* larger than the image"),
        ({"psf": np.ones((17, 17))}, "image, blurred by this psf, must have at least 23 × 23"),
        ({"psf": -np.ones((3, 3))}, "psf must be finite with a positive sum"),
        ({"sigma": -0.1}, "sigma"),
        ({"image": np.zeros((1, 1)), "psf": np.ones((1, 1))}, "image must have at least"),
    ],
)
def test_bad_blurs_are_named(filters, change, message):
    arguments = {"image": np.zeros((20, 20)), "psf": np.ones((3, 3)), "filters": filters, **change}
    with pytest.raises(ValueError, match=message):
        deblur(**arguments)
