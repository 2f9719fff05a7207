"""Tests of transforms of many lines side by side, against NumPy's."""

import numpy as np
import pytest

from pointillist.kernels import fourier
from pointillist.kernels.fourier import LANES, TOGETHER


def _numbers(array):
    """Complex numbers from (..., TOGETHER): real parts, then imaginary parts."""
    return array[..., : TOGETHER // 2] + 1j * array[..., TOGETHER // 2 :]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 49, 60, 105, 128, 200, 270])
def test_lines_are_transformed_as_numpy_does_it(length):
    given = np.random.default_rng(length).standard_normal((2, length, 3, TOGETHER))
    found, (x, y) = given.copy(), np.empty((2, length * TOGETHER))
    begins = (3 * length * np.arange(2)[:, None] + np.arange(3)).ravel()
    fourier.transform_lines(LANES, fourier.line_of(length, np.float64), found.reshape(-1), begins, 3, x, y)
    np.testing.assert_allclose(_numbers(found), length * np.fft.ifft(_numbers(given), axis=1), atol=1e-12 * length)


def test_lengths_with_large_factors_are_refused():
    large = [n for n in range(1, 40) if any(n % prime == 0 for prime in (11, 13, 17, 19, 23, 29, 31, 37))]
    assert [n for n in range(1, 40) if not fourier.can_transform(n)] == large


@pytest.mark.parametrize("stored", [np.float32, np.float64])
def test_products_are_transformed_along_the_first_axis(stored):
    rng, line = np.random.default_rng(0), fourier.line_of(10, np.float64)
    spectra = rng.standard_normal((2, 3, 10, TOGETHER)).astype(stored)
    residual, out = rng.standard_normal((2, 3, 10, 2)), np.empty((4, 3, TOGETHER))
    fourier.transform_products(
        LANES, line, spectra.reshape(-1), residual, 4, *np.empty((2, 10 * TOGETHER)), out.reshape(-1)
    )
    products = np.sum(_numbers(spectra.astype(np.float64)) * (residual[..., :1] + 1j * residual[..., 1:]), axis=0)
    np.testing.assert_allclose(_numbers(out), 10 * np.moveaxis(np.fft.ifft(products, axis=1), 0, 1)[:4], atol=1e-12)
