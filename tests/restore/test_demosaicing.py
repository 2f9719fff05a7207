"""Mosaics of all four patterns become colour."""

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.restore import demosaic
from pointillist.restore.demosaicing import PATTERNS, fine_codes, gathered, phase_filters

BAYER = [(0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_colour_comes_back(colour_picture, colour_filters, error, pattern):
    seen = np.zeros(colour_picture.shape)
    for i, letter in enumerate(pattern):
        seen[i // 2 :: 2, i % 2 :: 2, "RGB".index(letter)] = 1
    mosaic = np.rint(255 * np.sum(colour_picture * seen, axis=2)).astype(np.uint8)
    mended, details = demosaic(mosaic, pattern.lower(), colour_filters, 0.02, return_details=True)
    assert mended.shape == colour_picture.shape
    assert mended.dtype == np.uint8
    np.testing.assert_array_equal(mended[seen > 0], mosaic.ravel())
    assert error(mended / 255, colour_picture) < 0.04
    assert len(details.codes) == 1


@pytest.mark.parametrize("boundary", ["same", "full"])
@pytest.mark.parametrize("shape", [(12, 14), (13, 11)])
def test_phases_synthesise_what_is_seen_of_the_filters(boundary, shape):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((3, 3, 5, 4))
    phases = phase_filters(filters, BAYER)
    coarse = Geometry(tuple(-(-n // 2) for n in shape), phases.shape[2:], 4, boundary)
    index = np.sort(rng.choice(len(phases) * coarse.n_positions, 40, replace=False))
    codes = SparseCodes([index], [rng.standard_normal(40)], [coarse.grid], len(phases))
    seen = ConvolutionOperator(phases, coarse).synthesise(index, codes.values[0])
    fine = fine_codes(codes, coarse.offset, filters.shape[2:], shape)
    whole = ConvolutionOperator(filters, Geometry(shape, filters.shape[2:], 3, "full"))
    expected = whole.synthesise(fine.indices[0], fine.values[0])
    inside = gathered(np.ones((3, *shape)), BAYER) > 0
    np.testing.assert_allclose(seen[inside], gathered(expected, BAYER)[inside], atol=1e-12)
    assert np.all(np.diff(fine.indices[0]) > 0)
