"""Tests of the largest magnitude of many numbers, against NumPy."""

import numpy as np
import pytest

from pointillist.kernels.magnitudes import largest_magnitude
from pointillist.model import large


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_of_either_sign(dtype, sign):
    array = np.random.default_rng(0).standard_normal((3, 70)).astype(dtype)
    array[1, 5] = sign * dtype(9.5)
    assert largest_magnitude(array) == 9.5
    assert largest_magnitude(np.full((2, 2), -0.0, dtype)) == 0
    tiny = np.nextafter(dtype(0), dtype(1))
    assert largest_magnitude(np.array([[0, -tiny]], dtype)) == tiny
    array[2, 8] = -np.inf
    assert largest_magnitude(array) == np.inf
    array[0, 0] = -np.nan
    assert np.isnan(largest_magnitude(array))


@pytest.mark.parametrize("special", [2.0, -30.0, np.inf, -np.inf, np.nan])
def test_small_and_large_arrays_are_measured_alike(monkeypatch, special):
    array = np.random.default_rng(1).standard_normal((2, 40)).astype(np.float32)
    array[1, 3] = special
    few = large.largest(array)
    monkeypatch.setattr(large, "_MANY", 1)
    np.testing.assert_equal(large.largest(array), few)
    np.testing.assert_equal(large.largest(array[:, ::2]), large.largest(array[:, ::2].copy()))
    assert np.isfinite(few) == np.isfinite(special)
    if np.isfinite(special):
        assert few == np.max(np.abs(array))
