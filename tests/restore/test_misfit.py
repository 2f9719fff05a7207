"""Wrong blurs are refused before they do harm, right ones are not."""

import warnings

import numpy as np
import pytest
import scipy.signal

import pointillist as pt
from pointillist.restore.blur import Blur
from pointillist.restore.misfit import misfit


@pytest.fixture(scope="module")
def sharp():
    return pt.photographs("test")["camera"].astype(np.float64)


def _blurred(image, kernel, sigma=2 / 255):
    seen = scipy.signal.fftconvolve(image, kernel, mode="valid")
    return seen + sigma * np.random.default_rng(0).standard_normal(seen.shape)


RIGHT = {"motion": pt.motion_kernel(11, 30), "gaussian": pt.gaussian_kernel(1.8)}
WRONG = {
    "turned": (RIGHT["motion"], pt.motion_kernel(11, 120)),
    "twice as long": (RIGHT["motion"], pt.motion_kernel(22, 30)),
    "too wide": (RIGHT["gaussian"], pt.gaussian_kernel(3.6)),
    "sharp": (np.ones((1, 1)), pt.motion_kernel(11, 30)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_right_blurs_are_undone(sharp, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.BlurMisfitWarning)
        _, details = pt.deblur(_blurred(sharp, RIGHT[name]), RIGHT[name], return_details=True, data_range=1.0)
    assert details.misfit is None
    assert details.codes.nnz > 0


@pytest.mark.parametrize("name", WRONG)
def test_wrong_blurs_leave_the_picture_alone(sharp, name):
    kernel, given = WRONG[name]
    seen = _blurred(sharp, kernel)
    with pytest.warns(pt.BlurMisfitWarning, match="force=True"):
        answer, details = pt.deblur(seen, given, return_details=True, data_range=1.0)
    np.testing.assert_array_equal(answer, seen)
    assert answer is not seen
    assert details.misfit
    assert details.codes.nnz == 0


def test_force_does_it_all_the_same(picture, filters):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.BlurMisfitWarning)
        assert np.any(pt.deblur(picture, np.ones((5, 5)), filters, force=True) != picture)


def test_crops_that_ring_are_told(picture):
    """Where the spectrum has too few windows the trial decides."""
    blur = Blur(pt.gaussian_kernel(1.0))
    small = picture[:60, :60]
    assert misfit(small, blur, lambda crop: crop) is None
    assert "rings" in misfit(small, blur, lambda crop: 4 * crop)
    assert misfit(small, Blur(np.ones((1, 1))), lambda crop: 4 * crop) is None
