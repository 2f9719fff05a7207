"""Tests of dual points that are shrunk or moved locally."""

import numpy as np
import pytest

from pointillist.problem import ConvolutionOperator, Geometry, certificate
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.dual import shrunk
from pointillist.solvers.scanning import DescentState

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
def test_no_ratio_rises_by_more_than_its_bound(reference, signal, size, boundary):
    """What decides which positions of a shrunk point are scanned at all."""
    rng = np.random.default_rng(1)
    problem, residual = reference.problem(rng, signal, size, boundary=boundary)
    geometry, state = problem.geometry, DescentState(problem)
    point = shrunk(geometry, residual, rng.uniform(0.5, 1.5, geometry.n_positions))
    before, after = (
        np.abs(problem.exact_operator.correlate(one)).reshape(problem.n_filters, -1) / problem.penalty
        for one in (residual, point)
    )
    rise = state.rises(geometry, geometry.spread(point) - geometry.spread(residual)).ravel()
    assert np.max(after - before) > 0.01
    assert np.all(after - before <= rise)


def test_a_moved_point_has_a_smaller_gap(reference):
    problem, x = reference.problem(np.random.default_rng(3), (60, 60), (5, 5), n_filters=8, penalty=0.1)
    solver = CoordinateDescent(tol=1e-3)
    found = solver.solve(solver.prepare(problem), [x])
    plain = certificate(problem, 0, x, found.codes.indices[0], found.codes.values[0])
    assert found.gap[0] <= 1e-3
    assert found.gap[0] < 0.6 * plain.gap
