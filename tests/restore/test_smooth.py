"""The smooth part against a dense least-squares solution, and what it does to ramps and holes."""

import numpy as np
import pytest
import scipy.signal

from pointillist.restore import smooth
from pointillist.restore.blur import Blur
from pointillist.restore.smooth import smooth_part

RNG = np.random.default_rng(0)


def bending_rows(shape):
    """All second differences of a picture as rows of a matrix, mixed ones with weight √2."""
    n = int(np.prod(shape))
    pictures = np.eye(n).reshape(n, *shape)
    mixed = np.sqrt(2) * np.diff(np.diff(pictures, axis=1), axis=2)
    parts = [np.diff(pictures, 2, axis=1), np.diff(pictures, 2, axis=2), mixed]
    return np.concatenate([part.reshape(n, -1) for part in parts], axis=1).T


@pytest.mark.parametrize("size", [(1, 1), (3, 2)])
def test_dense_reference(monkeypatch, size):
    monkeypatch.setattr(smooth, "_TOLERANCE", 1e-7)
    monkeypatch.setattr(smooth, "_STILL", 1e-7)
    blur, space, mu = Blur(RNG.random(size)), (7, 6), 0.7
    signal = RNG.standard_normal((1, *space))
    weights = (RNG.random(signal.shape) < 0.6).astype(float)
    extended = blur.extended(space)
    basis = np.eye(int(np.prod(extended))).reshape(-1, *extended)
    seen = np.stack([scipy.signal.convolve(one, blur.kernel, mode="valid").ravel() for one in basis], axis=1)
    rows = np.concatenate([np.sqrt(weights.ravel())[:, None] * seen, np.sqrt(2 * mu) * bending_rows(extended)])
    target = np.concatenate([np.sqrt(weights.ravel()) * signal.ravel(), np.zeros(len(rows) - signal.size)])
    expected = np.linalg.lstsq(rows, target)[0]
    part = smooth_part(np.where(weights > 0, signal, np.nan), weights, blur, mu)
    np.testing.assert_allclose(part.seen.ravel(), seen @ expected, atol=1e-5)  # the solver works in float32
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
