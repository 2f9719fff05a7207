"""Tests of the LLVM intrinsics against numpy, for every width and both precisions."""

import numpy as np
import pytest
from numba import njit

from pointillist.kernels.vectors import add_runs, dot_changed_runs, dot_runs, lanes_of


@njit
def _dot(lanes, signal, base, filters, start, offsets):
    return dot_runs(lanes, signal, base, filters, start, offsets)


@njit
def _add(lanes, signal, base, filters, start, offsets, scale):
    add_runs(lanes, signal, base, filters, start, offsets, scale)


@njit
def _dot_changed(lanes, signal, step, base, filters, start, offsets, weights):
    return dot_changed_runs(lanes, signal, step, base, filters, start, offsets, weights)


@pytest.mark.parametrize(("width", "dtype"), [(4, np.float64), (8, np.float32), (16, np.float32)])
@pytest.mark.parametrize("n_runs", [0, 1, 2, 5])
def test_runs_agree_with_numpy(width, dtype, n_runs):
    rng = np.random.default_rng(n_runs)
    signal, weights, step = rng.standard_normal((3, 120)).astype(dtype)
    filters = rng.standard_normal(7 * width).astype(dtype)
    offsets = np.sort(rng.choice(80, n_runs, replace=False)).astype(np.int64)
    lanes, base, start, scale = lanes_of(width), 3, width, dtype(-1.7)
    runs = filters[start : start + n_runs * width].reshape(n_runs, width).astype(np.float64)
    places = (base + offsets[:, None] + np.arange(width)).astype(np.int64)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-13, "atol": 1e-13}

    np.testing.assert_allclose(
        _dot(lanes, signal, base, filters, start, offsets), np.sum(signal[places] * runs), **tolerance
    )
    for change in (None, step):
        for seen in (None, weights):
            expected = np.sum(
                (signal + (0 if change is None else change))[places] * runs * (1 if seen is None else seen[places])
            )
            found = _dot_changed(lanes, signal, change, base, filters, start, offsets, seen)
            np.testing.assert_allclose(found, expected, **tolerance)

    expected, changed = signal.astype(np.float64), signal.copy()
    np.add.at(expected, places, scale * runs)
    _add(lanes, changed, base, filters, start, offsets, scale)
    np.testing.assert_allclose(changed, expected, **tolerance)
    untouched = np.setdiff1d(np.arange(len(signal)), places)
    np.testing.assert_array_equal(changed[untouched], signal[untouched])
