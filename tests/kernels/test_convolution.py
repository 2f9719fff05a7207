"""Tests of the convolution kernels that no operator method covers; the rest is in tests/test_problem.py."""

import numpy as np
import pytest

from pointillist.kernels import convolution
from pointillist.problem import ConvolutionOperator, Geometry

CASES = [((30,), (19,), 1), ((9, 12), (3, 4), 2), ((5, 6, 7), (2, 3, 2), 1)]


@pytest.mark.parametrize(("signal", "size", "channels"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_curvatures_are_weighted_column_norms(signal, size, channels, dtype, reference):
    rng = np.random.default_rng(0)
    geometry = Geometry(signal, size, channels, "same")
    filters = rng.standard_normal((3, channels, *size)).astype(dtype)
    weights = rng.random((channels, *signal)).astype(dtype)
    matrix = reference.matrix(filters, geometry)
    codes = np.flatnonzero(rng.random(matrix.shape[1]) < 0.3)
    out = np.empty(len(codes), dtype)
    convolution.curvatures(ConvolutionOperator(filters, geometry).layout, codes, geometry.spread(weights), out)
    expected = np.sum(weights.ravel()[:, None] * matrix[:, codes] ** 2, axis=0)
    np.testing.assert_allclose(out, expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize(("signal", "size", "channels"), CASES)
def test_accumulated_boxes_are_the_codes_times_patches(signal, size, channels):
    rng = np.random.default_rng(1)
    geometry = Geometry(signal, size, channels, "full")
    filters = rng.standard_normal((3, channels, *size))
    layout = ConvolutionOperator(filters, geometry).layout
    flat = rng.standard_normal(geometry.padded_length)
    codes = np.flatnonzero(rng.random(3 * geometry.n_positions) < 0.3)
    values = rng.standard_normal(len(codes))
    out = np.ones(filters.size)
    convolution.accumulate_boxes(layout, codes, values, flat, out)
    box = flat[: channels * int(np.prod(geometry.padded))].reshape(channels, *geometry.padded)
    expected = np.ones_like(filters)
    for code, value in zip(codes, values, strict=True):
        k, position = divmod(code, geometry.n_positions)
        corner = np.unravel_index(position, geometry.grid)
        window = tuple(slice(c, c + s) for c, s in zip(corner, size, strict=True))
        expected[k] += value * box[(slice(None), *window)]
    np.testing.assert_allclose(out.reshape(filters.shape), expected, atol=1e-12)


@pytest.mark.parametrize("width", [3, 8, 15, 16, 17, 31, 32, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_correlation_of_some_rows_is_that_of_all(width, dtype):
    rng = np.random.default_rng(2)
    geometry = Geometry((6, width + 2), (2, 3), 1, "valid")
    assert geometry.grid == (5, width)
    operator = ConvolutionOperator(rng.standard_normal((9, 1, 2, 3)).astype(dtype), geometry)
    signal = rng.standard_normal((1, *geometry.signal)).astype(dtype)
    whole = operator.correlate(signal)
    part = np.full(16 * 2 * width, np.nan, dtype)
    convolution.correlate_dense(operator.layout, geometry.spread(signal), 1, 3, part)
    np.testing.assert_array_equal(part.reshape(16, 2, width)[:9], whole[:, 1:3])
    one_by_one = operator.correlate(signal, np.arange(operator.n_codes)).reshape(whole.shape)
    np.testing.assert_allclose(whole, one_by_one, atol=1e-5 if dtype == np.float32 else 1e-13)


def test_padded_lanes_leave_the_spare_samples_zero():
    geometry = Geometry((5, 7), (2, 3), 1, "full")
    operator = ConvolutionOperator(np.ones((2, 1, 2, 3)), geometry)
    flat = operator.synthesise_padded(np.arange(operator.n_codes), np.ones(operator.n_codes))
    assert not np.any(flat[int(np.prod(geometry.padded)) :])
