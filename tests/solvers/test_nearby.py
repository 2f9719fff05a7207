"""Tests of the codes that nearly violate, among which violators are looked for between two scans."""

from dataclasses import replace

import numpy as np
import pytest

from pointillist.problem import certificate
from pointillist.solvers import descent, nearby, workingset
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.scanning import DescentState
from pointillist.validation import BOUNDARIES

SHAPES = [((90,), (7,)), ((21, 37), (4, 5)), ((70, 80), (3, 3)), ((5, 9, 20), (2, 3, 4))]


@pytest.fixture
def noting(monkeypatch):
    """Small problems note codes too; tells how often near codes were looked at."""
    looks = []
    look = nearby.NearCodes.look
    monkeypatch.setattr(nearby, "_WORTH_NOTING", 0)
    monkeypatch.setattr(nearby.NearCodes, "look", lambda self, *args: looks.append(1) or look(self, *args))
    return looks


def noted(problem, x, violation, mapper=map):
    """What a scan notes of a signal, with the ratios and winners of all positions."""
    n_positions = problem.geometry.n_positions
    best, winner = np.full(n_positions, 7, x.dtype), np.zeros(n_positions, np.int32)
    state = DescentState(problem)
    found = nearby.scan_noting(state, problem.geometry.spread(x), violation, best, winner, mapper)
    return found, best, winner


def codes_of(near):
    n_positions = near.state.problem.geometry.n_positions
    return np.sort(np.concatenate([n.filters * np.int64(n_positions) + n.positions for n in near.pieces]))


def problem_with_ratios_near_one(reference, signal, size, **more):
    problem, x = reference.problem(
        np.random.default_rng(4), signal, size, n_filters=11, channels=2, penalty=1.0, **more
    )
    correlations = problem.exact_operator.correlate(x).reshape(problem.n_filters, -1)
    sizes = correlations if problem.nonnegative else np.abs(correlations)
    x = (x / np.max(sizes) * 1.15).astype(x.dtype)
    return problem, x, sizes / np.max(sizes) * 1.15


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("signal", "size"), SHAPES)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_scan_notes_all_codes_above_its_floor(reference, signal, size, boundary, nonnegative):
    problem, x, ratios = problem_with_ratios_near_one(
        reference, signal, size, boundary=boundary, nonnegative=nonnegative
    )
    near, best, winner = noted(problem, x, 0.3)
    assert near.floor == pytest.approx(0.79)
    np.testing.assert_array_equal(codes_of(near), np.flatnonzero(ratios > near.floor))
    np.testing.assert_allclose(best, np.maximum(np.max(ratios, axis=0), 0), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(winner[best > 0], np.argmax(ratios, axis=0)[best > 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_violators_are_found_among_the_noted_codes(reference, dtype):
    problem, x, ratios = problem_with_ratios_near_one(reference, (70, 80), (3, 3), dtype=dtype)
    near, _, _ = noted(problem, x, 0.3)
    largest = near.look(problem.geometry.spread(x))
    worst = np.max(ratios, axis=0)
    assert largest == pytest.approx(1.15, rel=1e-5)
    np.testing.assert_allclose(near.best, np.where(worst > 1, worst, 0), rtol=1e-5)
    np.testing.assert_array_equal(near.winner[worst > 1], np.argmax(ratios, axis=0)[worst > 1])


def test_codes_far_below_one_are_forgotten(reference):
    problem, x, ratios = problem_with_ratios_near_one(reference, (70, 80), (3, 3))
    near, _, _ = noted(problem, x, 0.3)
    share = (1.01 / 1.15) * x
    near.look(problem.geometry.spread(share))
    assert near.floor == pytest.approx(0.95)
    np.testing.assert_array_equal(codes_of(near), np.flatnonzero(ratios * (1.01 / 1.15) > 0.95))
    assert near.look(problem.geometry.spread(x)) == pytest.approx(1.15)


def test_too_many_codes_are_not_noted(reference, monkeypatch):
    problem, x, _ = problem_with_ratios_near_one(reference, (70, 80), (3, 3))
    monkeypatch.setattr(nearby, "NOTES_A_POSITION", 0)
    assert noted(problem, x, 0.3)[0] is None


def scanned_exactly(problem, x, mapper=map):
    """The bound of an exact scan of a point in float64, that of a usual scan, and the best ratio of each position."""
    state, geometry, dtype = DescentState(problem), problem.geometry, problem.filters.dtype
    best, winner = np.full(geometry.n_positions, 7, dtype), np.zeros(geometry.n_positions, np.int32)
    flat = geometry.spread(x.astype(dtype))
    rounding = state.rounding(geometry, flat)
    largest = nearby.scan_exactly(state, x, flat, rounding, best, winner, mapper)
    return largest, float(np.max(best)) + rounding, best


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("signal", "size"), SHAPES)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("largest", [0.99, 1 - 1e-7, 1 + 1e-7, 1.02])
def test_an_exact_scan_rounds_as_float64_does(reference, signal, size, boundary, nonnegative, largest):
    problem, x, ratios = problem_with_ratios_near_one(
        reference, signal, size, boundary=boundary, nonnegative=nonnegative, dtype=np.float32
    )
    x = x.astype(np.float64)
    ratios = problem.exact_operator.correlate(x).reshape(problem.n_filters, -1)
    x *= largest / np.max(ratios if nonnegative else np.abs(ratios))
    exact, rounded, best = scanned_exactly(problem, x)
    assert max(1, largest) <= exact <= max(1, largest) * (1 + 1e-10)
    assert abs(largest - 1) > 1e-6 or rounded > exact  # what a usual scan has to count in
    assert np.max(best) == pytest.approx(largest, rel=1e-5)
    assert scanned_exactly(problem, x, _backwards)[0] == exact


def test_an_exact_scan_of_doubles_counts_their_rounding(reference):
    problem, x, ratios = problem_with_ratios_near_one(reference, (70, 80), (3, 3))
    exact, rounded, _ = scanned_exactly(problem, x)
    assert np.max(ratios) <= exact == pytest.approx(rounded, rel=1e-12)


def test_an_exact_scan_counts_rounding_where_too_many_codes_are_close(reference, monkeypatch):
    problem, x, _ = problem_with_ratios_near_one(reference, (70, 80), (3, 3), dtype=np.float32)
    monkeypatch.setattr(nearby, "NOTES_A_POSITION", 0)
    exact, rounded, _ = scanned_exactly(problem, x.astype(np.float64))
    assert exact == rounded


def test_the_notes_do_not_depend_on_the_order_of_the_work(reference):
    problem, x, _ = problem_with_ratios_near_one(reference, (70, 80), (3, 3))
    one, other = (noted(problem, x, 0.3, mapper)[0] for mapper in (map, _backwards))
    for some, others in zip(one.pieces, other.pieces, strict=True):
        for a, b in zip(some, others, strict=True):
            np.testing.assert_array_equal(a, b)


def _backwards(work, items):
    return [work(item) for item in list(items)[::-1]][::-1]


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_certified_with_near_codes_is_true(reference, noting, boundary, weighted, dtype):
    rng = np.random.default_rng(5)
    problem, x = reference.problem(rng, (50, 60), (5, 5), n_filters=10, penalty=0.3, boundary=boundary, dtype=dtype)
    if weighted:
        weights = rng.uniform(0, 1, (1, 50, 60)) * (rng.random((1, 50, 60)) < 0.8)
        problem = replace(problem, weights=weights.astype(dtype))
    tight = CoordinateDescent(tol=1e-6 if dtype == np.float64 else 1e-5)
    optimum = tight.solve(tight.prepare(problem), [x])
    noting.clear()
    solver = CoordinateDescent(tol=1e-4)
    found = solver.solve(solver.prepare(problem), [x])
    assert noting
    assert found.gap[0] <= 1e-4
    bound = found.objective[0] * (1 - found.gap[0])
    assert bound <= optimum.objective[0]
    assert found.objective[0] <= optimum.objective[0] * (1 + 1e-4)


def test_a_solve_is_certified_by_an_exact_scan(reference, noting, monkeypatch):
    """The last scan of all counts hardly any of the rounding that a usual one would."""
    scans, scan = [], workingset.scan_exactly

    def recorded(state, point, flat, rounding, best, *rest):
        largest = scan(state, point, flat, rounding, best, *rest)
        scans.append((largest, float(np.max(best)) + rounding, rounding))
        return largest

    monkeypatch.setattr(workingset, "scan_exactly", recorded)
    problem, x = reference.problem(
        np.random.default_rng(5), (50, 60), (5, 5), n_filters=10, penalty=0.3, dtype=np.float32
    )
    solver = CoordinateDescent(tol=1e-4)
    found = solver.solve(solver.prepare(problem), [x])
    assert found.gap[0] <= 1e-4
    exact, usual, rounding = scans[-1]
    assert usual - exact > 0.8 * rounding
    monkeypatch.setattr(workingset, "scan_exactly", lambda *args: scan(*args) + 1e-3)
    looser = solver.solve(solver.prepare(problem), [x])
    assert looser.gap[0] != found.gap[0], "the gap is the one that the scan tells"


def test_a_solve_that_ends_early_has_the_gap_of_all_codes(reference, noting):
    problem, x = reference.problem(np.random.default_rng(6), (50, 60), (5, 5), n_filters=10, penalty=0.3)
    for rounds in range(4, 16):
        solver = CoordinateDescent(tol=1e-13, max_iter=rounds)
        found = solver.solve(solver.prepare(problem), [x])
        assert found.gap[0] == pytest.approx(_exact_gap(problem, x, found), rel=1e-6)
    assert noting


def _exact_gap(problem, x, found):
    return certificate(problem, 0, x, found.codes.indices[0], found.codes.values[0]).gap


def test_near_codes_serve_any_number_of_threads(reference, noting, monkeypatch):
    monkeypatch.setattr(descent, "_WORTH_THREADS", 0)
    problem, x = reference.problem(
        np.random.default_rng(7), (90, 100), (5, 5), n_filters=10, penalty=0.3, dtype=np.float32
    )
    solver = CoordinateDescent(tol=1e-3)
    one, other = (solver.solve(solver.prepare(problem), [x], n_jobs=n) for n in (1, 2))
    assert noting
    np.testing.assert_array_equal(one.codes.indices[0], other.codes.indices[0])
    np.testing.assert_array_equal(one.codes.values[0], other.codes.values[0])
    assert one.gap[0] == other.gap[0]
