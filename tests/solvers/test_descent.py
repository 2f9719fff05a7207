"""Tests of coordinate descent's pieces: starts and its bound on rounding. Its optima are in test_solvers.py."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from pointillist.problem import ConvolutionOperator, Geometry, certificate
from pointillist.solvers import descent, rounds, strips, sweeping
from pointillist.solvers.base import Status
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.encoding import encode
from pointillist.solvers.scanning import box_sums
from pointillist.solvers.workingset import HostWorkingSet


def test_box_sums(reference):
    geometry = Geometry((6, 7), (3, 2), 2, "same")
    flat = geometry.spread(np.random.default_rng(0).random((2, 6, 7)))
    ones = np.ones((1, 2, 3, 2))
    expected = ConvolutionOperator(ones, geometry).correlate_padded(flat)[0]
    np.testing.assert_allclose(box_sums(geometry, flat), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
def test_the_reported_gap_bounds_the_excess(dtype, boundary, reference):
    for seed in range(5):
        problem, x = reference.problem(
            np.random.default_rng(seed), (20, 21), (4, 5), boundary=boundary, dtype=dtype, n_filters=5
        )
        best = CoordinateDescent(tol=1e-11, max_iter=5000)
        whole = dataclasses.replace(problem, filters=problem.filters.astype(np.float64))
        optimum = best.solve(best.prepare(whole), [x.astype(np.float64)]).objective[0]
        for max_iter in (1, 3, 50):
            solver = CoordinateDescent(tol=1e-3, max_iter=max_iter)
            result = solver.solve(solver.prepare(problem), [x])
            exact = certificate(problem, 0, x, result.codes.indices[0], result.codes.values[0])
            assert result.objective[0] == pytest.approx(exact.objective, rel=1e-9)
            assert result.objective[0] * (1 - result.gap[0]) <= optimum * (1 + 1e-10)


def test_a_good_start_saves_rounds(reference):
    problem, x = reference.problem(np.random.default_rng(1), (30, 30), (4, 4), n_filters=6)
    solver = CoordinateDescent(tol=1e-6, max_iter=2000)
    cold = solver.solve(solver.prepare(problem), [x])
    warm = solver.solve(solver.prepare(problem), [x], start=cold.codes)
    assert warm.status is Status.CONVERGED
    assert warm.iterations[0] < cold.iterations[0]


def test_penalties_raised_in_first_rounds_lead_to_the_same_optimum(monkeypatch):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((12, 7, 7))
    filters /= np.sqrt(np.sum(filters**2, axis=(1, 2), keepdims=True))
    signals = rng.standard_normal((1, 40, 40))
    targets = []
    real = HostWorkingSet.descend

    def descend(sets, active, aimed, raised):
        targets.append(raised[0])
        real(sets, active, aimed, raised)

    monkeypatch.setattr(HostWorkingSet, "descend", descend)
    eased = encode(signals, filters, 0.02, tol=1e-8)
    assert targets[0] > 10
    assert targets[-1] == 1
    assert all(after <= before for before, after in pairwise(targets))
    targets.clear()
    again = encode(signals, filters, 0.02, tol=1e-8, start=eased.codes)
    assert not targets or set(targets) == {1.0}  # what a start knows is not forgotten
    monkeypatch.setattr(rounds, "_EASED", np.inf)
    plain = encode(signals, filters, 0.02, tol=1e-8)
    np.testing.assert_allclose(eased.objective, plain.objective, rtol=2e-8)
    np.testing.assert_allclose(again.objective, plain.objective, rtol=2e-8)


def test_a_start_outside_the_sample_or_of_the_wrong_sign_is_dropped(reference):
    rng = np.random.default_rng(2)
    problem, x = reference.problem(rng, (30,), (4,), nonnegative=True, sample=np.arange(0, 90, 3))
    whole = dataclasses.replace(problem, drawn=None, nonnegative=False)
    solver = CoordinateDescent(tol=1e-7, max_iter=2000)
    start = solver.solve(solver.prepare(whole), [x]).codes
    warm = solver.solve(solver.prepare(problem), [x], start=start)
    cold = solver.solve(solver.prepare(problem), [x])
    assert np.all(np.isin(warm.codes.indices[0], problem.sample))
    assert np.all(warm.codes.values[0] > 0)
    assert warm.objective[0] == pytest.approx(cold.objective[0], rel=1e-6)


def test_several_strips_reach_the_objective_of_one(reference, monkeypatch):
    problem, x = reference.problem(np.random.default_rng(3), (150, 20), (3, 3), n_filters=3)
    solver, results = CoordinateDescent(tol=1e-6, max_iter=2000), []
    monkeypatch.setattr(sweeping, "_WORTH_HELP", 0)
    monkeypatch.setattr(descent, "_WORTH_THREADS", 0)
    for least, jobs in ((1, 1), (1, 2), (10**9, 1)):
        monkeypatch.setattr(strips, "_LEAST_POSITIONS", least)
        results.append(solver.solve(solver.prepare(problem), [x], n_jobs=jobs))
    np.testing.assert_array_equal(results[0].codes.to_dense(), results[1].codes.to_dense())
    np.testing.assert_allclose([r.objective[0] for r in results], results[2].objective[0], rtol=1e-6)


@pytest.mark.parametrize(
    "setting",
    [
        {"max_iter": 0},
        {"min_iter": -1},
        {"tol": -1.0},
        {"max_sweeps": 0},
        {"cells": ()},
        {"cells": (0,)},
        {"inner": 1.0},
    ],
)
def test_settings_are_checked(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        CoordinateDescent(**setting)


@pytest.mark.parametrize("min_iter", [0, 1, 3])
def test_there_are_rounds_even_if_no_codes_at_all_are_within_the_tolerance(reference, min_iter):
    problem, x = reference.problem(np.random.default_rng(3), (20, 40), (3, 3), n_filters=3)
    solver = CoordinateDescent(tol=0.999, min_iter=min_iter)
    result = solver.solve(solver.prepare(problem), [x])
    assert result.iterations[0] == min_iter
    assert (result.codes.nnz > 0) == (min_iter > 0)


@pytest.mark.parametrize("max_iter", [1, 2000])
def test_kept_starts_are_part_of_what_is_certified(max_iter, reference):
    """With keep_start the problem is over the sample and the start together; so has to be the gap."""
    rng = np.random.default_rng(5)
    problem, x = reference.problem(rng, (30,), (4,), sample=np.arange(0, 90, 7))
    whole = dataclasses.replace(problem, drawn=None)
    plain = CoordinateDescent(tol=1e-7, max_iter=2000)
    start = plain.solve(plain.prepare(whole), [x]).codes
    solver = CoordinateDescent(tol=1e-12, max_iter=max_iter, keep_start=True)
    result = solver.solve(solver.prepare(problem), [x], start=start)
    allowed = np.union1d(problem.sample, start.indices[0])
    assert np.all(np.isin(result.codes.indices[0], allowed))
    matrix = reference.matrix(problem.filters, problem.geometry)[:, allowed]
    best = reference.lasso(matrix, x, problem.penalty[0, 0])
    assert result.objective[0] * (1 - result.gap[0]) <= best.objective * (1 + 1e-9)
    assert result.objective[0] >= best.objective * (1 - 1e-9)


def test_a_ridge_solves_the_elastic_net_and_its_gap_still_bounds(monkeypatch, reference):
    monkeypatch.setattr("pointillist.solvers.rounds._NEGLIGIBLE", 0.0)
    problem, x = reference.problem(np.random.default_rng(4), (60,), (5,), dtype=np.float64, n_filters=4)
    ridge = 0.7
    solver = CoordinateDescent(ridge=ridge, max_iter=60, max_sweeps=500, inner=1e-6, tol=0)
    result = solver.solve(solver.prepare(problem), [x])
    codes, values = result.codes.indices[0], result.codes.values[0]
    slopes = problem.operator.correlate(result.residuals[0]).ravel()
    penalties = np.broadcast_to(problem.penalty, (problem.n_filters, problem.geometry.n_positions)).ravel()
    assert len(codes) > 0
    np.testing.assert_allclose(slopes[codes] - ridge * values, penalties[codes] * np.sign(values), atol=1e-6)
    exact = CoordinateDescent(tol=1e-9)
    best = exact.solve(exact.prepare(problem), [x]).objective[0]
    assert best <= result.objective[0]
    assert result.objective[0] * (1 - result.gap[0]) <= best * (1 + 1e-9)


def test_a_negative_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge"):
        CoordinateDescent(ridge=-1.0)


def _large_filters(reference, boundary, side=70):
    """A problem whose codes are bundled, of filters as smooth as large ones are, and a signal made of them."""
    rng = np.random.default_rng(8)
    problem, _ = reference.problem(rng, (side, side), (21, 21), n_filters=20, boundary=boundary, dtype=np.float32)
    smooth = gaussian_filter(problem.filters, (0, 0, 2, 2))
    smooth /= np.sqrt(np.sum(smooth**2, axis=(1, 2, 3), keepdims=True))
    problem = dataclasses.replace(problem, filters=smooth, penalty=np.full((20, 1), 0.3, np.float32))
    codes = rng.choice(problem.operator.n_codes, 400, replace=False)
    x = problem.operator.synthesise(codes, rng.standard_normal(400).astype(np.float32))
    x += 0.2 * rng.standard_normal(x.shape).astype(np.float32)
    assert problem.operator.bundles is not None
    return problem, x


@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("tol", [0.2, 1e-3, 1e-6])
def test_answers_with_large_filters_are_as_exact_as_others(reference, boundary, tol):
    """Looks that take the residual as descent left it must not show in what is told in the end."""
    problem, x = _large_filters(reference, boundary)
    solver = CoordinateDescent(tol=tol)
    result = solver.solve(solver.prepare(problem), [x])
    codes, values = result.codes.indices[0], result.codes.values[0]
    exact = certificate(problem, 0, x, codes, values)
    assert result.objective[0] == pytest.approx(exact.objective, rel=1e-12)
    np.testing.assert_allclose(result.residuals[0], exact.residual, rtol=1e-6, atol=1e-6)
    precise = dataclasses.replace(problem, filters=problem.filters.astype(float), penalty=problem.penalty.astype(float))
    tight = CoordinateDescent(tol=1e-9, max_iter=2000)
    best = tight.solve(tight.prepare(precise), [x.astype(float)]).objective[0]
    assert result.gap[0] <= tol
    assert result.objective[0] * (1 - result.gap[0]) <= best * (1 + 1e-7) <= result.objective[0] * (1 + 2e-7)


def test_large_filters_give_the_same_bits_with_any_number_of_threads(reference):
    problem, x = _large_filters(reference, "same", side=180)
    solver = CoordinateDescent(tol=1e-2)
    one, two = (solver.solve(solver.prepare(dataclasses.replace(problem)), [x], n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.codes.indices[0], two.codes.indices[0])
    np.testing.assert_array_equal(one.codes.values[0], two.codes.values[0])
    assert one.objective[0] == two.objective[0]
    assert one.gap[0] == two.gap[0]


@pytest.mark.parametrize("boundary", ["valid", "same"])
def test_pictures_whose_sides_no_number_of_strips_divides_are_solved_by_any_number_of_threads(boundary):
    """Filters of one row, and a height of which equal strips, rounded up, would leave none for the last."""
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((3, 2, 1, 4)).astype(np.float32)
    filters /= np.sqrt(np.sum(filters**2, axis=(1, 2, 3), keepdims=True))
    signals = rng.standard_normal((1, 2, 441, 90)).astype(np.float32)
    one, two = (encode(signals, filters, 0.3, channels=True, boundary=boundary, n_jobs=n) for n in (1, 2))
    assert one.status == Status.CONVERGED
    np.testing.assert_array_equal(one.codes.indices[0], two.codes.indices[0])
    np.testing.assert_array_equal(one.codes.values[0], two.codes.values[0])
