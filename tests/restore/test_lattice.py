"""Codes of a lattice's phases describe what codes of the filters describe, where samples were seen."""

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.restore.lattice import Lattice

BAYER = Lattice(2, ((0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1)))


@pytest.mark.parametrize("boundary", ["same", "full"])
@pytest.mark.parametrize("shape", [(12, 14), (13, 11)])
def test_phases_synthesise_what_is_seen_of_the_filters(boundary, shape):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((3, 3, 5, 4))
    phases = BAYER.filters(filters)
    coarse = Geometry(BAYER.coarse(shape), phases.shape[2:], 4, boundary)
    index = np.sort(rng.choice(len(phases) * coarse.n_positions, 40, replace=False))
    codes = SparseCodes([index], [rng.standard_normal(40)], [coarse.grid], len(phases))
    seen = ConvolutionOperator(phases, coarse).synthesise(index, codes.values[0])
    fine = BAYER.fine(codes, coarse.offset, filters.shape[2:], shape)
    whole = ConvolutionOperator(filters, Geometry(shape, filters.shape[2:], 3, "full"))
    expected = whole.synthesise(fine.indices[0], fine.values[0])
    inside = BAYER.gathered(np.ones((3, *shape))) > 0
    np.testing.assert_allclose(seen[inside], BAYER.gathered(expected)[inside], atol=1e-12)
    assert np.all(np.diff(fine.indices[0]) > 0)
