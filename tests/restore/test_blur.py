"""Blurs against scipy, kernels by their parameters; blurs are found in noisy pictures, wrong ones are refused."""

import warnings

import numpy as np
import pytest
import scipy.signal
from tests.restore.conftest import random_blur

import pointillist as pt
from pointillist.restore import gaussian_kernel, motion_kernel
from pointillist.restore.blur import better_blur

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (4, 3), (2, 5)])
def test_convolution_adjoint_and_centre(size):
    blur = random_blur(RNG, size)
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
    blur = random_blur(RNG, (3, 2))
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


def test_bad_widths_and_motions():
    for sigma in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="sigma must be positive"):
            gaussian_kernel(sigma)
    for length, angle in ((0.5, 0), (np.nan, 0), (5, np.inf), (2000, 0)):
        with pytest.raises(ValueError, match=r"length must lie in|angle must be a finite"):
            motion_kernel(length, angle)


@pytest.fixture(scope="module")
def sharp():
    return pt.photographs("test", grey=False)["coffee"].astype(np.float64)


def _blurred(image, kernel):
    seen = scipy.signal.fftconvolve(image, kernel[..., None], mode="valid", axes=(0, 1))
    return seen + 2 / 255 * np.random.default_rng(0).standard_normal(seen.shape)


@pytest.mark.slow
@pytest.mark.parametrize(("length", "angle"), [(7.5, 100.0), (18.0, 33.0)])
def test_a_motion_is_found(sharp, length, angle):
    found = pt.estimate_blur(_blurred(sharp, pt.motion_kernel(length, angle)), data_range=1.0)
    assert found.length == pytest.approx(length, abs=1)
    assert abs((found.angle - angle + 90) % 180 - 90) < 3
    assert found.confidence > 0.5
    np.testing.assert_array_equal(found.kernel, pt.motion_kernel(found.length, found.angle))


@pytest.mark.parametrize("width", [1.0, 2.5])
def test_a_gaussian_is_found(sharp, width):
    found = pt.estimate_blur(_blurred(sharp, pt.gaussian_kernel(width)), "gaussian", sigma=2 / 255, data_range=1.0)
    assert found.sigma == pytest.approx(width, rel=0.15)
    assert found.confidence > 0.5
    assert found.length is None


def test_a_sharp_picture_has_no_blur(sharp):
    byte = np.rint(255 * sharp).astype(np.uint8)
    found = pt.estimate_blur(byte, "gaussian")
    assert found.confidence == 0
    assert found.kernel.shape == (1, 1)


@pytest.mark.slow
def test_a_sharp_picture_did_not_move(sharp):
    found = pt.estimate_blur(sharp, data_range=1.0)
    assert (found.length, found.confidence) == (1.0, 0.0)


def test_windows_with_gaps_are_left_out(sharp):
    grey = _blurred(sharp, pt.gaussian_kernel(2.0)).mean(axis=-1)
    gap = grey.copy()
    gap[:5, :5] = np.nan
    found = pt.estimate_blur(gap, "gaussian", data_range=1.0)
    assert found.sigma == pytest.approx(2.0, rel=0.15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "disk"}, "kind must be one of motion, gaussian"),
        ({"sigma": -1.0}, "sigma must be None or a finite number"),
        ({"image": np.zeros((40, 90))}, "at least 64 × 64"),
        ({"image": np.where(np.eye(64) > 0, np.nan, 1.0)}, "missing samples everywhere"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"image": np.zeros((80, 80)), "kind": "gaussian", **change}
    with pytest.raises(ValueError, match=message):
        pt.estimate_blur(**arguments)


@pytest.mark.parametrize("kind", ["motion", "gaussian"])
def test_a_constant_picture_has_no_blur_and_warns_of_nothing(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pt.estimate_blur(np.full((128, 128), 0.5), kind)
    assert found.confidence == 0
    assert found.kernel.shape == (1, 1)


@pytest.fixture(scope="module")
def camera():
    return pt.photographs("test")["camera"].astype(np.float64)


RIGHT = {"motion": pt.motion_kernel(11, 30), "gaussian": pt.gaussian_kernel(1.8)}
WRONG = {
    "turned": (RIGHT["motion"], pt.motion_kernel(11, 120)),
    "twice as long": (RIGHT["motion"], pt.motion_kernel(22, 30)),
    "too wide": (RIGHT["gaussian"], pt.gaussian_kernel(3.6)),
    "sharp": (np.ones((1, 1)), pt.motion_kernel(11, 30)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_right_blurs_are_undone(camera, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.BlurMisfitWarning)
        _, details = pt.deblur(
            _blurred(camera[..., None], RIGHT[name])[..., 0], RIGHT[name], return_details=True, data_range=1.0
        )
    assert details.misfit is None
    assert details.codes.nnz > 0


@pytest.mark.parametrize("name", WRONG)
def test_wrong_blurs_leave_the_picture_alone(camera, name):
    kernel, given = WRONG[name]
    seen = _blurred(camera[..., None], kernel)[..., 0]
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


def test_answers_that_ring_are_told(picture, filters):
    """Where the picture has too few windows for its spectrum the answer decides."""
    small, wide = picture[:60, :60], pt.gaussian_kernel(1.5)
    assert better_blur(small, wide) is None
    seen = scipy.signal.convolve(picture, wide, mode="valid")
    for given, rings in ((wide, False), (pt.motion_kernel(11, 20), True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.BlurMisfitWarning)
            answer, details = pt.deblur(seen, given, filters, return_details=True)
        assert ("rings" in (details.misfit or "")) == rings
        assert np.array_equal(answer, seen) == rings
