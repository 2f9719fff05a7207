"""The gradient of second differences against differences that NumPy takes."""

import numpy as np
import pytest

from pointillist.kernels.bending import bend


def energy(s):
    """Half the sum of the squared second differences of a plane, the mixed ones counted twice."""
    mixed = np.diff(np.diff(s, axis=0), axis=1)
    return 0.5 * (np.sum(np.diff(s, 2, axis=0) ** 2) + np.sum(np.diff(s, 2, axis=1) ** 2) + 2 * np.sum(mixed**2))


@pytest.mark.parametrize("shape", [(9, 11), (5, 5), (6, 4), (4, 30), (1, 8), (8, 1), (2, 2), (1, 1), (3, 40)])
def test_the_gradient_of_the_energy(shape):
    rng = np.random.default_rng(0)
    planes, factors = rng.standard_normal((2, *shape)), np.array([1.0, 3.0])
    out = np.full_like(planes, np.nan)
    bend(planes, factors, out)
    for plane, factor, found in zip(planes, factors, out, strict=True):
        direction = rng.standard_normal(shape)
        slope = (energy(plane + direction) - energy(plane - direction)) / 2  # exact, since the energy is quadratic
        assert factor * slope == pytest.approx(np.sum(found * direction), rel=1e-10, abs=1e-10)
        unit = np.zeros(shape)
        unit[0, 0] = 1
        assert found[0, 0] == pytest.approx(factor * (energy(plane + unit) - energy(plane - unit)) / 2, abs=1e-10)


def test_planes_do_not_bend():
    y, x = np.mgrid[:12, :17].astype(np.float32)
    out = np.full((1, 12, 17), np.nan, np.float32)
    bend((2 * y - 3 * x + 1)[None], np.ones(1, np.float32), out)
    np.testing.assert_allclose(out, 0, atol=1e-4)
