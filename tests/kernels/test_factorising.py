"""Small factorisations against NumPy's."""

import numpy as np
import pytest

from pointillist.kernels.compiling import allocating_kernel
from pointillist.kernels.factorising import factorise, room


@allocating_kernel
def factorised(matrix, sides):
    """The upper factor of a matrix, and the sides (n, k) divided by its transpose, with what a row has besides."""
    n, k = sides.shape
    system = room(n, n + k, matrix.dtype)
    system[:n, :n], system[:n, n : n + k] = matrix, sides
    factorise(system.ravel(), system.shape[1], n, n + k)
    return system


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("n", [*range(1, 20), 37, 80])
@pytest.mark.parametrize("k", [1, 4, 6])
def test_factor_and_right_sides(dtype, close, n, k):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n + 5))
    matrix, sides = root @ root.T, rng.standard_normal((n, k))
    found = factorised(np.triu(matrix).astype(dtype), sides.astype(dtype))
    upper = np.linalg.cholesky(matrix).T
    np.testing.assert_allclose(np.triu(found[:n, :n]), upper, atol=close * np.max(upper))
    expected = np.linalg.solve(upper.T, sides)
    np.testing.assert_allclose(
        found[:n, n : n + k], expected, atol=close * np.max(np.abs(expected)) * np.linalg.cond(upper)
    )


def test_a_singular_matrix_leaves_finite_numbers():
    assert np.all(np.isfinite(factorised(np.ones((9, 9)), np.ones((9, 1)))))
