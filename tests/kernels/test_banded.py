"""The banded Gram matrix against the dense one."""

import numpy as np
import pytest

from pointillist.kernels import banded
from pointillist.kernels.layout import SPARE_SAMPLES, row_offsets
from pointillist.kernels.vectors import width_of
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.solvers.admm import band_width


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
    banded.add_gram(layout, codes, places, geometry.spread(roots), offsets, width, band)
    gram = matrix[:, codes] @ matrix[:, codes].T
    rows = band[: samples * (width + 1)].reshape(samples, width + 1)
    for j in range(samples):
        for i in range(j, samples):
            found = rows[j, i - j] if i - j <= width else 0.0
            assert found == pytest.approx(gram[i, j], abs=1e-12)
