"""Tests of the flat layout, and of the kernels that no operator method covers; the rest is in tests/test_problem.py."""

import numpy as np
import pytest

from pointillist.kernels.convolution import (
    SPARE_SAMPLES,
    accumulate_boxes,
    add_gram,
    correlate_dense,
    curvatures,
    make_layout,
    make_pairs,
    row_offsets,
    run_width,
)
from pointillist.kernels.vectors import FILTERS_A_BLOCK, width_of
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.solvers.admm import band_width

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
    curvatures(ConvolutionOperator(filters, geometry).layout, codes, geometry.spread(weights), out)
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
    accumulate_boxes(layout, codes, values, flat, out)
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
    correlate_dense(operator.layout, geometry.spread(signal), 1, 3, part)
    np.testing.assert_array_equal(part.reshape(16, 2, width)[:9], whole[:, 1:3])
    one_by_one = operator.correlate(signal, np.arange(operator.n_codes)).reshape(whole.shape)
    np.testing.assert_allclose(whole, one_by_one, atol=1e-5 if dtype == np.float32 else 1e-13)


def test_padded_lanes_leave_the_spare_samples_zero():
    geometry = Geometry((5, 7), (2, 3), 1, "full")
    operator = ConvolutionOperator(np.ones((2, 1, 2, 3)), geometry)
    flat = operator.synthesise_padded(np.arange(operator.n_codes), np.ones(operator.n_codes))
    assert not np.any(flat[int(np.prod(geometry.padded)) :])


@pytest.mark.parametrize("size", [(5,), (19,), (3, 11), (2, 3, 18)])
@pytest.mark.parametrize("channels", [1, 2])
def test_runs_and_taps_hold_every_sample_at_its_place(size, channels):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((3, channels, *size))
    grid = tuple(4 + i for i in range(len(size)))
    padded = tuple(g + s - 1 for g, s in zip(grid, size, strict=True))
    layout = make_layout(filters, grid, padded)
    width = width_of(layout.run_lanes)
    n_runs = len(layout.run_offsets)
    for position, corner in enumerate(np.ndindex(*grid)):
        row, column = divmod(position, layout.row_length)
        base = layout.row_bases[row] + column
        assert base == np.ravel_multi_index(corner, padded)
    for k in range(3):
        expected = np.zeros((channels, *padded))
        expected[(slice(None), *(slice(s) for s in size))] = filters[k]
        flat = np.zeros(expected.size + SPARE_SAMPLES)
        for i in range(n_runs):
            place = layout.run_offsets[i]
            flat[place : place + width] += layout.runs[(k * n_runs + i) * width :][:width]
        np.testing.assert_array_equal(flat[: expected.size], expected.ravel())
        np.testing.assert_array_equal(expected.ravel()[layout.taps], filters[k].ravel())
    np.testing.assert_array_equal(layout.squares, layout.runs**2)


def test_spare_samples_cover_the_widest_overhang():
    widest_run = max(run_width(length) for length in range(1, 200))
    widest_block = max(
        width_of(make_layout(np.ones((1, 1, 3), dtype), (4,), (6,)).block_lanes) for dtype in (np.float32, np.float64)
    )
    assert max(widest_run, widest_block) <= SPARE_SAMPLES


@pytest.mark.parametrize("size", [(5,), (18,), (3, 11), (2, 3, 4)])
@pytest.mark.parametrize("channels", [1, 2])
def test_pairs_hold_every_sample_of_a_block_at_its_place(size, channels):
    n_filters = FILTERS_A_BLOCK + 3
    filters = np.random.default_rng(0).standard_normal((n_filters, channels, *size))
    padded = tuple(s + 3 + i for i, s in enumerate(size))
    pairs = make_pairs(filters, padded)
    samples = pairs.samples.reshape(2, len(pairs.offsets), FILTERS_A_BLOCK, 2)
    for k in range(2 * FILTERS_A_BLOCK):
        expected = np.zeros((channels, *padded))
        if k < n_filters:
            expected[(slice(None), *(slice(s) for s in size))] = filters[k]
        flat = np.zeros(expected.size + SPARE_SAMPLES)
        for offset, pair in zip(pairs.offsets, samples[k // FILTERS_A_BLOCK, :, k % FILTERS_A_BLOCK], strict=True):
            flat[offset : offset + 2] += pair
        np.testing.assert_array_equal(flat[: expected.size], expected.ravel())


@pytest.mark.parametrize(
    ("signal", "size"), [((25,), (18,)), ((18,), (18,)), ((7, 8), (3, 4)), ((5, 17), (2, 17)), ((4, 5, 6), (2, 3, 2))]
)
@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
def test_band_is_the_lower_triangle_of_the_gram_matrix(signal, size, boundary, reference):
    rng = np.random.default_rng(0)
    geometry = Geometry(signal, size, 1, boundary)
    filters = rng.standard_normal((2, 1, *size))
    filters[0].ravel()[::3] = 0
    roots = rng.random((1, *signal))
    matrix = roots.ravel()[:, None] * reference.matrix(filters, geometry)
    codes = np.flatnonzero(rng.random(matrix.shape[1]) < 0.7)
    layout = ConvolutionOperator(filters, geometry).layout
    samples, width = int(np.prod(signal)), band_width(signal, size)
    places = geometry.spread(np.arange(1, samples + 1).reshape(1, *signal)) - 1
    band = np.zeros(samples * (width + 1) + SPARE_SAMPLES)
    offsets = row_offsets((1, *size), (1, *signal), width_of(layout.run_lanes))
    add_gram(layout, codes, places, geometry.spread(roots), offsets, width, band)
    gram = matrix[:, codes] @ matrix[:, codes].T
    rows = band[: samples * (width + 1)].reshape(samples, width + 1)
    for j in range(samples):
        for i in range(j, samples):
            found = rows[j, i - j] if i - j <= width else 0.0
            assert found == pytest.approx(gram[i, j], abs=1e-12)
