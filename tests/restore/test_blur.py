"""Blurs against scipy, their adjoint, and where the samples of a coarse picture lie."""

import numpy as np
import pytest
import scipy.signal

from pointillist.restore.blur import Blur, as_kernel, decimation_kernel, first_sample

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (4, 3), (2, 5)])
def test_convolution_adjoint_and_centre(size):
    blur = Blur(RNG.random(size))
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
    blur = Blur(RNG.random((3, 2)))
    filters = RNG.standard_normal((2, 1, 4, 4))
    expected = scipy.signal.convolve(filters[1, 0], blur.kernel)
    np.testing.assert_allclose(blur.filters(filters)[1, 0], expected)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_the_box_averages_the_pixels_under_a_coarse_one(factor):
    kernel = decimation_kernel("box", factor)
    blur, shape = Blur(kernel), (3 * factor, 4 * factor)
    x = RNG.standard_normal((1, *blur.extended(shape)))
    top, left = first_sample(kernel, factor)
    coarse = blur.apply(x)[0, top::factor, left::factor]
    expected = blur.crop(x, shape)[0].reshape(3, factor, 4, factor).mean(axis=(1, 3))
    np.testing.assert_allclose(coarse, expected)


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("kernel", ["box", "bicubic"])
def test_kernels_do_not_shift(kernel, factor):
    """A ramp is sampled at the middle of the coarse pixels."""
    kernel = decimation_kernel(kernel, factor)
    assert np.sum(kernel) == pytest.approx(1)
    blur, shape = Blur(kernel), (4 * factor, 4 * factor)
    extended = blur.extended(shape)
    ramp = np.broadcast_to(np.arange(extended[0], dtype=float)[:, None], extended)[None]
    top, left = first_sample(kernel, factor)
    seen = blur.apply(ramp)[0, top::factor, left::factor][:, 0]
    fine = blur.crop(ramp, shape)[0, :, 0]
    np.testing.assert_allclose(seen, fine.reshape(4, factor).mean(axis=1))


@pytest.mark.parametrize(
    ("psf", "message"),
    [
        (np.ones(3), "psf must be a real array"),
        (np.zeros((3, 3)), "psf must be finite with a positive sum"),
        (np.full((2, 2), np.nan), "psf must be finite"),
        (np.ones((9, 3)), "psf of shape .* larger than the image"),
    ],
)
def test_bad_psf(psf, message):
    with pytest.raises(ValueError, match=message):
        as_kernel(psf, (8, 8))


@pytest.mark.parametrize("kernel", ["lanczos", np.ones((3, 3)), np.zeros((2, 2))])
def test_bad_kernels(kernel):
    with pytest.raises(ValueError, match="kernel"):
        decimation_kernel(kernel, 2)
