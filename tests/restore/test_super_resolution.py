"""Pictures are enlarged without a shift."""

import numpy as np
import pytest
from scipy.ndimage import zoom

from pointillist.restore import super_resolve
from pointillist.restore.blur import Blur
from pointillist.restore.picture import Picture
from pointillist.restore.super_resolution import decimation_kernel, on_fine_grid

RNG = np.random.default_rng(0)


def test_enlarging_beats_interpolation(picture, error):
    coarse = picture.reshape(36, 2, 40, 2).mean(axis=(1, 3))
    fine, details = super_resolve(coarse, return_details=True)
    assert fine.shape == picture.shape
    cubic = zoom(coarse, 2, order=3, mode="nearest", grid_mode=True)
    assert error(fine, picture) < 0.995 * error(cubic, picture)
    averaged = fine.reshape(36, 2, 40, 2).mean(axis=(1, 3))
    assert error(averaged, coarse) < 0.01
    assert details.penalty > 0


@pytest.mark.parametrize(("factor", "kernel"), [(2, "bicubic"), (3, "box"), (2, np.ones((4, 4)))])
def test_enlarging_a_ramp_does_not_shift_it(filters, factor, kernel):
    fine = np.add.outer(np.arange(24.0 * factor), np.arange(20.0 * factor)) / (50 * factor)
    coarse = fine.reshape(24, factor, 20, factor).mean(axis=(1, 3))
    enlarged = super_resolve(coarse, factor, filters, kernel=kernel, data_range=1.0)
    np.testing.assert_allclose(enlarged, fine, atol=5e-3)


def test_enlarging_colour_with_alpha(colour_picture, filters):
    image = np.dstack([np.rint(255 * colour_picture[:20, :22]), np.arange(440).reshape(20, 22) % 256]).astype(np.uint8)
    enlarged = super_resolve(image, 2, filters)
    assert enlarged.shape == (40, 44, 4)
    assert enlarged.dtype == np.uint8
    np.testing.assert_array_equal(enlarged[::2, 1::2, 3], image[..., 3])


@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["box", "bicubic"])
def test_coarse_samples_lie_where_their_kernels_are_centred(kernel, factor):
    """A ramp is sampled at the middle of the coarse pixels; the box averages any picture."""
    blur, shape = Blur(decimation_kernel(kernel, factor)), (4 * factor, 5 * factor)
    assert np.sum(blur.kernel) == pytest.approx(1)
    extended = blur.extended(shape)
    x = RNG.standard_normal((1, *extended)) if kernel == "box" else np.add.outer(*map(np.arange, extended))[None] * 1.0
    expected = blur.crop(x, shape).reshape(1, 4, factor, 5, factor).mean(axis=(2, 4))
    fine = on_fine_grid(Picture(expected, np.ones_like(expected), 1.0), blur, factor)
    np.testing.assert_allclose(fine.planes[fine.weights > 0], blur.apply(x)[fine.weights > 0])
    assert np.sum(fine.weights) == expected.size
