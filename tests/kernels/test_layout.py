"""Tests of the flat layout that the kernels walk."""

import numpy as np
import pytest

from pointillist.kernels.layout import SPARE_SAMPLES, make_layout, make_pairs, run_width
from pointillist.kernels.vectors import FILTERS_A_BLOCK, width_of


@pytest.mark.parametrize(
    ("length", "width"), [(1, 4), (4, 4), (5, 8), (8, 8), (9, 16), (11, 16), (16, 16), (17, 16), (33, 16), (40, 16)]
)
def test_fewest_runs_then_least_padding(length, width):
    assert run_width(length) == width


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_runs_begin_with_a_line_of_the_cache(dtype):
    layouts = [make_layout(np.ones((n, 1, 11, 11), dtype), (4, 4), (14, 14)) for n in range(1, 9)]  # kept: other places
    assert {layout.runs.ctypes.data % 64 for layout in layouts} == {0}


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
