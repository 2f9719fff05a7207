"""The kernel for pairs of neighbouring codes against a double loop."""

import numpy as np
import pytest

from pointillist.dictionary.statistics import ToeplitzStatistics
from pointillist.model.geometry import Geometry


@pytest.mark.parametrize(
    ("grid", "size"), [((23,), (4,)), ((3,), (3,)), ((6, 9), (3, 2)), ((5, 4), (1, 3)), ((4, 5, 6), (2, 3, 2))]
)
def test_pairs_are_all_products_of_close_codes(grid, size):
    rng = np.random.default_rng(0)
    n_filters, weight = 3, 1.7
    signal = tuple(g + s - 1 for g, s in zip(grid, size, strict=True))
    geometry = Geometry(signal, size, 1, "valid")
    assert geometry.grid == grid
    codes = np.where(rng.random((n_filters, *grid)) < 0.4, rng.standard_normal((n_filters, *grid)), 0)
    indices = np.flatnonzero(codes)
    sums = ToeplitzStatistics(n_filters, 1, size)
    sums._add_pairs(geometry, indices, codes.ravel()[indices], weight)
    centre = np.array(size) - 1
    expected = np.zeros((n_filters, n_filters, *sums.span))
    places = [(k, np.array(at), codes[(k, *at)]) for k in range(n_filters) for at in np.ndindex(*grid)]
    for k, at, value in places:
        for m, other, product in places:
            shift = other - at
            if value and product and np.all(np.abs(shift) <= centre):
                expected[(k, m, *(shift + centre))] += weight * value * product
    for k in range(n_filters):
        for m in range(k, n_filters):
            np.testing.assert_allclose(sums.pairs[sums.first[k] + m - k], expected[k, m], atol=1e-12)
