"""Blurs against scipy, their adjoint, and kernels by their parameters."""

import numpy as np
import pytest
import scipy.signal

from pointillist.restore import gaussian_kernel, motion_kernel
from pointillist.restore.blur import Blur

RNG = np.random.default_rng(0)


def _blur(size):
    kernel = RNG.random(size)
    return Blur(kernel / kernel.sum())


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (4, 3), (2, 5)])
def test_convolution_adjoint_and_centre(size):
    blur = _blur(size)
    space = (9, 11)
    x = RNG.standard_normal((2, *blur.extended(space)))
    y = RNG.standard_normal((2, *space))
    seen = blur.apply(x)
    assert seen.shape == y.shape
    assert np.vdot(seen, y) == pytest.approx(np.vdot(x, blur.adjoint(y)))
    middle = scipy.signal.convolve(blur.crop(x, space)[0], blur.kernel, mode="same")
    height, width = size
    inner = (slice(height, 9 - height), slice(width, 11 - width))
    np.testing.assert_allclose(seen[0][inner], middle[inner])


def test_filters_seen_through_the_blur():
    blur = _blur((3, 2))
    filters = RNG.standard_normal((2, 1, 4, 4))
    expected = scipy.signal.convolve(filters[1, 0], blur.kernel)
    np.testing.assert_allclose(blur.filters(filters)[1, 0], expected)


@pytest.mark.parametrize(("length", "angle"), [(1, 0), (5, 30), (12.5, 90), (7, 171)])
def test_a_motion_has_its_length_and_angle(length, angle):
    kernel = motion_kernel(length, angle)
    assert kernel.sum() == pytest.approx(1)
    np.testing.assert_allclose(kernel, kernel[::-1, ::-1], atol=0.02)
    rows, columns = np.indices(kernel.shape) - (len(kernel) - 1) / 2
    spread = np.array([[np.sum(kernel * a * b) for a in (columns, -rows)] for b in (columns, -rows)])
    along = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    assert along @ spread @ along == pytest.approx(length**2 / 12, abs=0.45)
    assert abs(along @ spread @ [-along[1], along[0]]) < 0.1


def test_a_gaussian_has_its_deviation():
    kernel = gaussian_kernel(2.0)
    offsets = np.arange(len(kernel)) - (len(kernel) - 1) / 2
    assert kernel.sum() == pytest.approx(1)
    assert np.sum(kernel.sum(axis=0) * offsets**2) == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("sigma", [0, -1, np.nan, np.inf])
def test_bad_widths(sigma):
    with pytest.raises(ValueError, match="sigma must be positive"):
        gaussian_kernel(sigma)


@pytest.mark.parametrize(("length", "angle"), [(0.5, 0), (np.nan, 0), (5, np.inf), (2000, 0)])
def test_bad_motions(length, angle):
    with pytest.raises(ValueError, match=r"length must lie in|angle must be a finite"):
        motion_kernel(length, angle)
