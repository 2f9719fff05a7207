"""The smooth part against a dense least-squares solution; halved pictures keep what was known and return to their size."""

import numpy as np
import pytest
import scipy.signal
from tests.restore.conftest import random_blur

from pointillist.restore.smooth import Tuning, doubled, halved, smooth_part, without_holes

RNG = np.random.default_rng(0)


def bending_rows(shape):
    """All second differences of a picture as rows of a matrix, mixed ones with weight √2."""
    n = int(np.prod(shape))
    pictures = np.eye(n).reshape(n, *shape)
    mixed = np.sqrt(2) * np.diff(np.diff(pictures, axis=1), axis=2)
    parts = [np.diff(pictures, 2, axis=1), np.diff(pictures, 2, axis=2), mixed]
    return np.concatenate([part.reshape(n, -1) for part in parts], axis=1).T


@pytest.mark.parametrize("size", [(1, 1), (3, 2)])
def test_dense_reference(size):
    blur, space, mu = random_blur(RNG, size), (7, 6), 0.7
    signal = RNG.standard_normal((1, *space))
    weights = (RNG.random(signal.shape) < 0.6).astype(float)
    extended = blur.extended(space)
    basis = np.eye(int(np.prod(extended))).reshape(-1, *extended)
    seen = np.stack([scipy.signal.convolve(one, blur.kernel, mode="valid").ravel() for one in basis], axis=1)
    rows = np.concatenate([np.sqrt(weights.ravel())[:, None] * seen, np.sqrt(2 * mu) * bending_rows(extended)])
    target = np.concatenate([np.sqrt(weights.ravel()) * signal.ravel(), np.zeros(len(rows) - signal.size)])
    expected = np.linalg.lstsq(rows, target)[0]
    # In float32, whose rounding of second differences of a rough start is all that is left.
    part = smooth_part(
        np.where(weights > 0, signal, np.nan), weights, blur, mu, tuning=Tuning(tolerance=1e-9, still=1e-9)
    )
    np.testing.assert_allclose(part.seen.ravel(), seen @ expected, atol=1e-5)
    np.testing.assert_allclose(part.sharp, blur.crop(expected.reshape(1, *extended), space), atol=1e-5)


def test_ramps_are_smooth_whatever_is_seen():
    ramp = np.add.outer(2.0 * np.arange(30), -np.arange(24))[None] / 50
    weights = (RNG.random(ramp.shape) < 0.3).astype(float)
    np.testing.assert_allclose(smooth_part(ramp, weights).sharp, ramp, atol=2e-2)


def test_colour_is_carried_between_channels():
    """Each channel sees other pixels; what they share is found by all."""
    y, x = np.mgrid[:40, :40]
    wave = np.sin(x / 3) * np.sin(y / 4)
    signal = np.stack([wave + 0.2, wave, wave - 0.1])
    owner = RNG.integers(3, size=wave.shape)
    weights = (owner == np.arange(3)[:, None, None]).astype(float)
    tied = smooth_part(signal, weights, mu=0.05, colour=True).sharp
    apart = smooth_part(signal, weights, mu=0.05).sharp
    assert np.std(tied - signal) < 0.7 * np.std(apart - signal)


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


def test_a_plane_of_which_nothing_is_known_becomes_zero():
    planes, known = np.ones((2, 5, 7)), np.zeros((2, 5, 7), bool)
    known[0, 2, 2] = True
    full = without_holes(planes, known)
    np.testing.assert_array_equal(full[0], 1)
    np.testing.assert_array_equal(full[1], 0)
