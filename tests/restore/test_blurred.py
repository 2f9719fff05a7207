"""Scans through plain filters find what scans of blurred ones find."""

import numpy as np
import pytest

from pointillist.restore.blur import Blur
from pointillist.restore.blurred import BlurredDescent, blurred_coder
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.encoding import encode

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("boundary", ["full", "same"])
@pytest.mark.parametrize("size", [(3, 3), (5, 2)])
def test_codes_are_those_of_the_blurred_filters(boundary, size):
    plain, blur = RNG.standard_normal((4, 1, 5, 5)), Blur(RNG.random(size))
    blurred = blur.filters(plain)[:, 0]
    signal = RNG.standard_normal((1, 30, 26))
    settings = CoordinateDescent(tol=1e-4)
    expected = encode(signal, blurred, 8.0, boundary=boundary, solver=settings)
    found = encode(signal, blurred, 8.0, boundary=boundary, solver=blurred_coder(plain, blur.kernel, settings))
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-4)
    np.testing.assert_allclose(found.residuals[0], expected.residuals[0], atol=0.05)
    assert found.gap.max() <= 1e-4
    assert found.codes.nnz > 20


def test_a_point_needs_no_detour():
    assert not isinstance(blurred_coder(np.ones((1, 1, 3, 3)), np.ones((1, 1)), CoordinateDescent()), BlurredDescent)
