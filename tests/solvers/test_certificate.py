"""Certificates against dense matrices and exact answers: dual points shrunk or projected, and hard problems.

The hard problems are those of `attack.twists`; `tests/attack` shows that a wrong certificate would be found.
"""

import numpy as np
import pytest
from attack.certificates import attempt

from pointillist.parallel import SharedMap
from pointillist.problem import certificate
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.coordinate_descent import DualBound
from pointillist.solvers.scanning import DescentState
from pointillist.solvers.sweeping import SweepContext
from pointillist.validation import BOUNDARIES

SHAPES = [((15,), (4,)), ((9, 8), (3, 2)), ((5, 4, 6), (2, 3, 3))]


def bound_of(problem, x, objective, tol, mapper=map):
    bound = DualBound(DescentState(problem), 0, x, tol, SweepContext(problem, 0, mapper))
    bound.objective = objective
    return bound


def ratios_of(problem, point):
    """D_jᵀθ / λ_j of all codes, flat; without a sign where codes may have either."""
    found = problem.exact_operator.correlate(point).reshape(problem.n_filters, -1) / problem.penalty
    return (found if problem.nonnegative else np.abs(found)).ravel()


def near_the_optimum(problem, x, rounds):
    """Objective and residual after a few rounds, and the objective of the optimum."""
    few, all_ = (CoordinateDescent(tol=1e-10, max_iter=n) for n in (rounds, 500))
    found, best = (solver.solve(solver.prepare(problem), [x]) for solver in (few, all_))
    return found, best.objective[0]


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("signal", "size"), SHAPES)
def test_no_ratio_rises_by_more_than_its_bound(reference, signal, size, boundary):
    rng = np.random.default_rng(1)
    problem, residual = reference.problem(rng, signal, size, boundary=boundary)
    geometry, state = problem.geometry, DescentState(problem)
    point = residual * rng.uniform(0.7, 1.2, residual.shape)
    before, after = (ratios_of(problem, one).reshape(problem.n_filters, -1) for one in (residual, point))
    rise = state.rises(geometry, geometry.spread(point) - geometry.spread(residual)).ravel()
    assert np.max(after - before) > 0.01
    assert np.all(after - before <= rise)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_sweeps_project_onto_one_condition_after_the_other(reference, boundary, weights, nonnegative):
    problem, x = reference.problem(
        np.random.default_rng(1), (9, 8), (4, 3), n_filters=3, boundary=boundary, weights=weights, penalty=0.3,
        nonnegative=nonnegative,
    )  # fmt: skip
    seen = np.ones(x.size) if weights is None else problem.weights.ravel()
    matrix = reference.matrix(problem.filters, problem.geometry)
    codes = np.random.default_rng(2).permutation(matrix.shape[1])[:40]
    codes = codes[np.argsort(codes % problem.geometry.n_positions, kind="stable")]
    expected, in_turns = seen * x.ravel(), np.stack([codes[:20], codes[20:]], axis=1).ravel()
    for _ in range(3):
        for code in in_turns:
            column = matrix[:, code]
            slope, curvature = column @ expected, seen @ column**2
            size = (slope if nonnegative else abs(slope)) - 0.3
            if size > 0:
                expected = expected - np.sign(slope) * size / curvature * seen * column
    found, _ = SweepContext(problem, 0, map).project(codes, (seen * x.ravel()).reshape(x.shape), 3)
    assert np.count_nonzero(np.abs(found.ravel() - seen * x.ravel()) > 0.01) > 10
    np.testing.assert_allclose(seen * found.ravel(), seen * expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_projected_point_violates_little_and_bounds_the_optimum(reference, boundary, weights, dtype):
    problem, x = reference.problem(
        np.random.default_rng(3), (30, 25), (4, 4), n_filters=5, boundary=boundary, weights=weights, penalty=0.2,
        dtype=dtype,
    )  # fmt: skip
    found, best = near_the_optimum(problem, x, 9)
    objective, point = found.objective[0], found.residuals[0].astype(np.float64)
    bound, before = bound_of(problem, x, objective, 0.1), ratios_of(problem, point)
    moved, _ = bound.project(point, np.flatnonzero(before > 0.8))
    after = np.max(ratios_of(problem, moved))
    plain, projected = bound.gap(point, np.max(before)), bound.gap(moved, after)
    assert np.max(before) > 1.0001
    assert after - 1 < 0.1 * (np.max(before) - 1)
    assert projected < 0.5 * plain
    assert objective * (1 - projected) <= best * (1 + 1e-6)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_tightened_gap_is_smaller_and_true(reference, boundary):
    """The codes that a scan finds are corrected together with those around."""
    problem, x = reference.problem(
        np.random.default_rng(4), (30, 25), (4, 4), n_filters=5, penalty=0.2, boundary=boundary
    )
    found, best = near_the_optimum(problem, x, 9)
    point, objective = found.residuals[0].astype(np.float64), found.objective[0]
    table = ratios_of(problem, point).reshape(problem.n_filters, -1)
    ratios = np.max(table, axis=0)
    plain = bound_of(problem, x, objective, 1.0).gap(point, np.max(table))
    bound = bound_of(problem, x, objective, 0.4 * plain)
    winner = np.argmax(table, axis=0).astype(np.int32)
    gap = bound.tightened(point, ratios, winner, 1e-12, np.sort(found.codes.indices[0]), map)
    assert gap < 0.6 * plain
    assert objective * (1 - gap) <= best * (1 + 1e-9)


def test_solves_end_with_tightened_gaps(reference):
    problem, x = reference.problem(np.random.default_rng(3), (60, 60), (5, 5), n_filters=8, penalty=0.1)
    solver = CoordinateDescent(tol=1e-3)
    found = solver.solve(solver.prepare(problem), [x])
    plain = certificate(problem, 0, x, found.codes.indices[0], found.codes.values[0])
    assert found.gap[0] <= 1e-3
    assert found.gap[0] < 0.8 * plain.gap


def test_a_projection_is_the_same_for_any_number_of_threads(reference):
    problem, x = reference.problem(
        np.random.default_rng(6), (160, 170), (5, 5), n_filters=6, penalty=0.3, dtype=np.float32
    )
    found, _ = near_the_optimum(problem, x, 5)
    point = found.residuals[0].astype(np.float64)
    codes = np.flatnonzero(ratios_of(problem, point) > 0.9)
    assert len(codes) * 25 > 2**17
    one, other = (
        bound_of(problem, x, found.objective[0], 0.1, mapper).project(point, codes) for mapper in (map, SharedMap(2))
    )
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]


def _found(seeds):
    return [f"{one.seed} {one.kind}: {one.title}" for seed in seeds for one in attempt(seed)]


def test_no_bound_is_violated():
    assert not _found(range(30))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 250))
def test_no_bound_of_many_is_violated(first):
    assert not _found(range(first, first + 250))
