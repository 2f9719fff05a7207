"""A picture, a small analytic dictionary and a measure of error that the restoration tests share."""

import numpy as np
import pytest
from scipy.fft import idctn

import pointillist as pt
from pointillist.restore.blur import Blur


def random_blur(rng, size):
    kernel = rng.random(size)
    return Blur(kernel / kernel.sum())


@pytest.fixture(scope="session")
def filters():
    """Cosines of 7×7 without the constant, of unit norm, least oscillating first: (48, 7, 7)."""
    bank = idctn(np.eye(49).reshape(49, 7, 7), axes=(1, 2), norm="ortho")
    order = np.argsort(np.add.outer(np.arange(7), np.arange(7)).ravel(), kind="stable")
    return bank[order[1:]].astype(np.float32)


@pytest.fixture(scope="session")
def colour_filters(filters):
    """The same in luminance, and the smoother half in two colour differences: (96, 3, 7, 7)."""
    axes = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([3.0, 2.0, 6.0])[:, None]
    parts = [filters, filters[:24], filters[:24]]
    return np.concatenate([part[:, None] * axis[:, None, None] for part, axis in zip(parts, axes, strict=True)])


@pytest.fixture(scope="session")
def picture():
    """Part of a photograph, (72, 80) in [0, 1]."""
    return pt.photographs("test")["camera"][60:132, 130:210].astype(np.float64)


@pytest.fixture(scope="session")
def colour_picture():
    """Part of a photograph, (64, 72, 3) in [0, 1]."""
    return pt.photographs("test", grey=False)["coffee"][80:144, 120:192].astype(np.float64)


@pytest.fixture(scope="session")
def error():
    """Root mean square difference."""
    return lambda a, b: float(np.sqrt(np.mean((np.asarray(a, np.float64) - np.asarray(b, np.float64)) ** 2)))
