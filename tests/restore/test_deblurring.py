"""Blurs are undone, without a shift: the linear step against a dense solve, the codes against what they must explain."""

import numpy as np
import pytest
import scipy.signal

import pointillist as pt
from pointillist.codes import SparseCodes
from pointillist.problem import Geometry
from pointillist.restore import deblur
from pointillist.restore.blur import Blur
from pointillist.restore.deblurring import Area, code_in_turns
from pointillist.restore.engine import Settings, convolution, synthesise

RNG = np.random.default_rng(0)


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
        ({"psf": np.ones((17, 17))}, "image, blurred by this psf, must have at least 23 × 23"),
        ({"image": np.zeros((1, 1)), "psf": np.ones((1, 1))}, "image must have at least"),
    ],
)
def test_bad_blurs_are_named(filters, change, message):
    arguments = {"image": np.zeros((20, 20)), "psf": np.ones((3, 3)), "filters": filters, **change}
    with pytest.raises(ValueError, match=message):
        deblur(**arguments)


@pytest.mark.parametrize("boundary", ["full", "same"])
@pytest.mark.parametrize("kernel", [(4, 3), (7, 1)])
def test_the_linear_step_agrees_with_a_dense_solve(boundary, kernel):
    blur, shape, size, rho = Blur(RNG.random(kernel) / np.prod(kernel)), (9, 8), (3, 5), 0.1
    weights = (RNG.random((2, *shape)) < 0.8).astype(np.float32)
    detail = RNG.standard_normal((2, *shape)).astype(np.float32)
    area = Area(blur, shape, size, Settings(boundary))
    target = RNG.standard_normal((2, *area.shape)).astype(np.float32)
    found = area.nearest(detail, weights, np.zeros_like(target), target, rho, 40)
    # The samples that are seen of each sample of the area, by the definition of the blur.
    seen = Geometry(shape, blur.extended(size), 1, boundary)
    dense = np.zeros((*shape, *area.shape))
    for row, column, i, j in np.ndindex(*shape, *kernel):
        # What lies before the first sample of the area is at the end of its Fourier transform.
        dense[row, column, row + seen.offset[0] - i, column + seen.offset[1] - j] += blur.kernel[i, j]
    dense = dense.reshape(np.prod(shape), -1)
    for i in range(2):
        normal = dense.T * weights[i].ravel() @ dense + rho * np.eye(dense.shape[1])
        right = dense.T @ (weights[i] * detail[i]).ravel() + rho * target[i].ravel()
        np.testing.assert_allclose(found[i].ravel(), np.linalg.solve(normal, right), atol=1e-3)


@pytest.mark.parametrize("boundary", ["full", "same"])
def test_codes_have_the_places_of_blurred_filters(boundary):
    plain = RNG.standard_normal((3, 1, 5, 5)).astype(np.float32)
    plain /= np.linalg.norm(plain, axis=(2, 3), keepdims=True)
    blur, shape = Blur(np.full((3, 2), 1 / 6)), (1, 40, 36)
    settings = Settings(boundary, tol=0.05)
    operator = convolution(blur.filters(plain), shape, boundary)
    places = RNG.choice(operator.geometry.n_positions * 3, 12, replace=False)
    places.sort()
    values = RNG.choice([-1.0, 1.0], 12).astype(np.float32)
    detail = operator.synthesise(places, values)
    area = Area(blur, shape[1:], (5, 5), settings)
    found = code_in_turns(area, detail, np.ones_like(detail), plain, 1e-4, settings)
    seen = operator.synthesise(found.codes.indices[0], found.codes.values[0])
    assert np.linalg.norm(seen - detail) < 0.1 * np.linalg.norm(detail)
    assert found.gap.max() <= 0.05
    sharp = synthesise(found.codes, plain, [shape], blur, boundary)[0]
    right = synthesise(SparseCodes([places], [values], found.codes.grids, 3), plain, [shape], blur, boundary)[0]
    assert np.linalg.norm(sharp - right) < 0.5 * np.linalg.norm(right)
