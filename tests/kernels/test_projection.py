"""Tests of the pass over signals of many channels, against matrix products."""

import numpy as np
import pytest

from pointillist.kernels.projection import project


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("channels", "rank", "length"), [(7, 2, 30), (12, 5, 1100), (9, 4, 512), (5, 3, 1)])
def test_a_projection_is_a_matrix_product(dtype, channels, rank, length):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((channels, rank)))[0]
    signal = rng.standard_normal((channels, length)).astype(dtype)
    inside, energy = np.empty((rank, length), dtype), np.empty(length)
    project(basis, signal, inside, energy)
    exact = basis.T @ signal.astype(float)
    np.testing.assert_allclose(inside, exact, atol=32 * np.finfo(dtype).eps)
    np.testing.assert_allclose(energy, np.sum((signal - basis @ exact) ** 2, axis=0), atol=1e-13)


def test_a_signal_in_the_span_leaves_next_to_nothing():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    signal = 1e3 * basis @ rng.standard_normal((2, 40))
    inside, energy = np.empty((2, 40)), np.empty(40)
    project(basis, signal, inside, energy)
    assert np.all(energy >= 0)
    assert np.all(energy <= 1e-14 * np.sum(signal**2, axis=0))
