"""Pictures at half the size keep what was known, and come back to their size."""

import numpy as np
import pytest

from pointillist.restore.levels import doubled, halved, without_holes

SHAPES = [(24, 32), (25, 31), (24, 31), (1, 20), (21, 1)]


def ramp(shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    return np.stack([3.0 * y - 2.0 * x, 1.0 + 0 * y + x])


def whole(shape):
    return slice(0, shape[0]), slice(0, shape[1])


@pytest.mark.parametrize("shape", SHAPES)
def test_halving_is_the_mean_of_known_pixels(shape):
    rng = np.random.default_rng(0)
    planes, known = rng.standard_normal((2, *shape)), rng.random((1, *shape)) < 0.4
    half, there = halved(np.where(known, planes, np.nan), known)
    assert half.shape == (2, -(-shape[0] // 2), -(-shape[1] // 2))
    for i, j in np.ndindex(half.shape[1:]):
        four = known[0, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        assert there[0, i, j] == np.any(four)
        if np.any(four):
            expected = planes[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2][:, four].mean(axis=1)
            np.testing.assert_allclose(half[:, i, j], expected)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_ramps_survive_halving_and_doubling(shape):
    planes = ramp(shape)
    half, known = halved(planes, np.ones((1, *shape), bool))
    assert np.all(known)
    back = doubled(half, whole(shape))
    assert back.shape == planes.shape
    np.testing.assert_allclose(back[:, 2:-3, 2:-3], planes[:, 2:-3, 2:-3], atol=1e-12)


@pytest.mark.parametrize(
    "box", [(slice(0, 9), slice(3, 8)), (slice(5, 6), slice(11, 31)), (slice(20, 25), slice(30, 31))]
)
def test_a_box_of_the_doubled_picture_is_cut_from_the_whole(box):
    half = np.random.default_rng(1).standard_normal((2, 13, 16))
    np.testing.assert_array_equal(doubled(half, box), doubled(half, whole((25, 31)))[:, box[0], box[1]])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.9, 0.3, 0.02])
def test_known_pixels_are_kept_and_holes_lie_within_their_range(shape, share):
    rng = np.random.default_rng(2)
    planes, known = rng.random((3, *shape)), rng.random((3, *shape)) < share
    known[:, shape[0] // 2, shape[1] // 2] = True
    full = without_holes(np.where(known, planes, 1e9), known)
    np.testing.assert_array_equal(full[known], planes[known])
    for plane, there, filled in zip(planes, known, full, strict=True):
        assert np.min(plane[there]) - 1e-12 <= np.min(filled)
        assert np.max(filled) <= np.max(plane[there]) + 1e-12


def test_a_hole_in_a_ramp_is_filled_near_it():
    planes, known = ramp((64, 64)), np.ones((1, 64, 64), bool)
    known[:, 20:36, 24:44] = False
    full = without_holes(planes, known)
    assert np.max(np.abs(full[1] - planes[1])) < 0.25 * 20  # of the ramp's rise over the hole


@pytest.mark.parametrize("place", [(0, 0), (6, 9), (12, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_known_pixel_is_everywhere(place, dtype):
    planes, known = np.zeros((2, 13, 17), dtype), np.zeros((1, 13, 17), bool)
    planes[(slice(None), *place)], known[(0, *place)] = [3, -4], True
    full = without_holes(planes, known)
    assert full.dtype == dtype
    np.testing.assert_allclose(full, np.broadcast_to(np.array([3, -4])[:, None, None], full.shape))


def test_a_plane_of_which_nothing_is_known_becomes_zero():
    planes, known = np.ones((2, 5, 7)), np.zeros((2, 5, 7), bool)
    known[0, 2, 2] = True
    full = without_holes(planes, known)
    np.testing.assert_array_equal(full[0], 1)
    np.testing.assert_array_equal(full[1], 0)
