"""Tests of dual points that are shrunk locally."""

import numpy as np
import pytest

from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.dual import shrunk, touched

SHAPES = [((15,), (4,)), ((9, 8), (3, 2)), ((5, 4, 6), (2, 3, 3))]


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size"), SHAPES)
def test_each_sample_is_divided_by_the_largest_ratio_around_it(signal, size, boundary):
    rng = np.random.default_rng(0)
    geometry = Geometry(signal, size, 2, boundary)
    ratios = rng.uniform(0.5, 1.5, geometry.n_positions)
    residual = rng.standard_normal((2, *signal))
    operator = ConvolutionOperator(np.ones((1, 2, *size)), geometry)
    divisor = np.ones((2, *signal))
    for position, ratio in enumerate(ratios):
        reached = operator.synthesise(np.array([position]), np.ones(1)) > 0
        divisor[reached] = np.maximum(divisor[reached], ratio)
    np.testing.assert_allclose(shrunk(geometry, residual, ratios), residual / divisor)


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size"), SHAPES)
def test_positions_that_are_not_touched_keep_their_correlations(signal, size, boundary):
    rng = np.random.default_rng(1)
    geometry = Geometry(signal, size, 1, boundary)
    ratios = np.full(geometry.n_positions, 0.9)
    ratios[rng.integers(geometry.n_positions)] = 1.4
    residual = rng.standard_normal((1, *signal))
    operator = ConvolutionOperator(rng.standard_normal((1, 1, *size)), geometry)
    change = operator.correlate(residual - shrunk(geometry, residual, ratios)).ravel()
    assert set(np.flatnonzero(np.abs(change) > 1e-12)) <= set(touched(geometry, ratios))


def test_a_local_point_has_a_smaller_gap(reference):
    problem, x = reference.problem(np.random.default_rng(3), (60, 60), (5, 5), n_filters=8, penalty=0.1)
    rounds = CoordinateDescent(tol=1e-3).solve(CoordinateDescent().prepare(problem), [x]).iterations[0]
    solver = CoordinateDescent(tol=1e-9, max_iter=int(rounds))
    plain = solver.solve(solver.prepare(problem), [x])
    solver = CoordinateDescent(tol=0.3 * plain.gap[0], max_iter=int(rounds))
    local = solver.solve(solver.prepare(problem), [x])
    np.testing.assert_array_equal(local.codes.values[0], plain.codes.values[0])
    assert local.gap[0] < 0.6 * plain.gap[0]
