"""Tests of dual points that are projected onto the conditions they violate, against loops over a dense matrix."""

import numpy as np
import pytest

from pointillist.parallel import SharedMap
from pointillist.solvers import sweeping
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.dual import Goal, Worth
from pointillist.solvers.projecting import Projector, expected_gap
from pointillist.solvers.staging import field_of
from pointillist.solvers.sweeping import Ground
from pointillist.validation import BOUNDARIES


def ground_of(problem):
    return Ground(problem, 0, field_of(problem.geometry, problem.operator.layout))


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
    expected, in_turns = seen * x.ravel(), np.stack([codes[20:], codes[:20]], axis=1).ravel()
    for _ in range(3):
        for code in in_turns:
            column = matrix[:, code]
            slope, curvature = column @ expected, seen @ column**2
            size = (slope if nonnegative else abs(slope)) - 0.3
            if size > 0:
                expected = expected - np.sign(slope) * size / curvature * seen * column
    ground = ground_of(problem)
    stage = ground.stage(codes, problem.geometry.spread((seen * x.ravel()).reshape(x.shape)))
    ground.project(stage, ground.codes(codes, np.zeros(len(codes))), 3, map)
    found = ground.inside(stage).ravel()
    assert np.count_nonzero(np.abs(found - seen * x.ravel()) > 0.01) > 10
    np.testing.assert_allclose(seen * found, seen * expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_projected_point_violates_little_and_bounds_the_optimum(reference, boundary, weights, dtype):
    problem, x = reference.problem(
        np.random.default_rng(3), (30, 25), (4, 4), n_filters=5, boundary=boundary, weights=weights, penalty=0.2,
        dtype=dtype,
    )  # fmt: skip
    found, best = near_the_optimum(problem, x, 7)
    worth, objective, point = Worth(problem, 0, x), found.objective[0], found.residuals[0].astype(np.float64)
    before = ratios_of(problem, point)
    goal = Goal(worth, objective, 0.1, 0.0)
    moved = Projector(ground_of(problem), map).project(goal, point, np.flatnonzero(before > 0.8))
    after = np.max(ratios_of(problem, moved.point))
    plain, projected = (worth.gap(objective, *one) for one in ((point, np.max(before)), (moved.point, after)))
    assert np.max(before) > 1.001
    assert after - 1 < 0.1 * (np.max(before) - 1)
    assert projected < 0.5 * plain
    assert objective * (1 - projected) <= best * (1 + 1e-6)


def test_what_a_scan_finds_is_corrected_together_with_the_codes_around(reference):
    problem, x = reference.problem(np.random.default_rng(4), (30, 25), (4, 4), n_filters=5, penalty=0.2)
    found, _ = near_the_optimum(problem, x, 6)
    point, support = found.residuals[0].astype(np.float64), np.sort(found.codes.indices[0])
    table = ratios_of(problem, point).reshape(problem.n_filters, -1)
    goal = Goal(Worth(problem, 0, x), found.objective[0], 0.1, 0.0)
    move = Projector(ground_of(problem), map).correction(goal, support)
    moved = move(point, np.max(table, axis=0), np.argmax(table, axis=0).astype(np.int32))
    assert np.max(ratios_of(problem, moved.point)) - 1 < 0.5 * (np.max(table) - 1)


def test_a_goal_out_of_reach_is_given_up_early(reference, monkeypatch):
    problem, x = reference.problem(np.random.default_rng(5), (30, 25), (4, 4), n_filters=5, penalty=0.2)
    found, _ = near_the_optimum(problem, x, 3)
    point = found.residuals[0].astype(np.float64)
    times, plain = [], Ground.project
    monkeypatch.setattr(Ground, "project", lambda *args: times.append(args[3]) or plain(*args))
    goal = Goal(Worth(problem, 0, x), found.objective[0], 1e-7, 0.0)
    moved = Projector(ground_of(problem), map).project(goal, point, np.flatnonzero(ratios_of(problem, point) > 0.9))
    assert len(times) == 1
    assert goal.gap(*moved) > goal.tol


def test_a_projection_is_the_same_for_any_number_of_threads(reference, monkeypatch):
    monkeypatch.setattr(sweeping, "_WORTH_HELP", 0)
    problem, x = reference.problem(
        np.random.default_rng(6), (120, 130), (5, 5), n_filters=6, penalty=0.3, dtype=np.float32
    )
    found, _ = near_the_optimum(problem, x, 5)
    point = found.residuals[0].astype(np.float64)
    codes = np.flatnonzero(ratios_of(problem, point) > 0.9)
    goal = Goal(Worth(problem, 0, x), found.objective[0], 0.1, 0.0)
    one, other = (Projector(ground_of(problem), mapper).project(goal, point, codes) for mapper in (map, SharedMap(2)))
    assert len(field_of(problem.geometry, problem.operator.layout).plan) >= 8
    np.testing.assert_array_equal(one.point, other.point)
    assert one.violation == other.violation


def test_the_expected_gap_grows_with_the_violations():
    codes = np.arange(10)
    assert expected_gap(np.array([0.2, 1.0]), codes) == 0
    assert expected_gap(np.array([1.1, 1.2, 0.5]), codes) == pytest.approx(4 * 0.3 / 10)
    assert expected_gap(np.array([1.5]), codes[:0]) == pytest.approx(2.0)
