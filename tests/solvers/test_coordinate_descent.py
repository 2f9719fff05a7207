"""The rounds of coordinate descent over working sets that follow a script, and its answers against oracles."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from pointillist.problem import Certificate, Geometry, Problem, broadcast_penalty, certificate
from pointillist.solvers import CoordinateDescent, Status, coordinate_descent
from pointillist.solvers import on_device as on_devices
from pointillist.solvers.coordinate_descent import RoundReport, solve_by_rounds
from pointillist.solvers.encoding import encode, max_penalty
from pointillist.solvers.on_device import DeviceDescent, DeviceWorkingSets

GEOMETRY = Geometry((5,), (1,), 1, "same")
PROBLEM = Problem(filters=np.ones((2, 1, 1)), geometry=GEOMETRY, penalty=broadcast_penalty([2.0, 3.0], 2, GEOMETRY))


class Scripted:
    """Working sets whose looks find what the script says: (objective, gap, ratio) for each signal and round."""

    problem, epsilon = PROBLEM, 1e-3

    def __init__(self, *scripts, exact=None, raises=False):
        self.scripts, self.n_signals, self.exact, self.raises = scripts, len(scripts), exact, raises
        self.calls, self.rounds = [], 0

    def look(self, active, *, last):
        self.calls.append(("look", active.tolist(), last))
        return RoundReport(*np.array([self.scripts[i][min(self.rounds, len(self.scripts[i]) - 1)] for i in active]).T)

    def descend(self, active, cell, targets, raised, smallest):
        self.calls.append(("descend", active.tolist(), cell, targets.tolist(), raised.tolist(), smallest))
        self.rounds += 1

    def collect(self):
        self.calls.append(("collect",))
        return [np.array([i]) for i in range(self.n_signals)], [np.ones(1)] * self.n_signals

    def recheck(self, i, indices, values):
        self.calls.append(("recheck", i, indices.tolist()))
        return self.exact

    def residuals(self):
        self.calls.append(("residuals",))
        return [np.zeros((1, 5))] * self.n_signals

    def named(self, verb):
        return [call[1:] for call in self.calls if call[0] == verb]


def test_signals_end_one_by_one_and_the_others_go_on():
    sets = Scripted([(9, 0.5, 3), (8, 0.001, 1)], [(7, 0.01, 1)], [(9, 0.5, 2), (8, 0.5, 2), (7, 0.0, 1)])
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01))
    assert [active for active, _ in sets.named("look")] == [[0, 1, 2], [0, 2], [2]]
    assert result.iterations.tolist() == [1, 0, 2]
    assert result.objective.tolist() == [8, 7, 7]
    assert result.gap.tolist() == [0.001, 0.01, 0.0]
    assert result.status is Status.CONVERGED
    assert [index.tolist() for index in result.codes.indices] == [[0], [1], [2]]
    assert not sets.named("recheck")
    assert all(call[-1] is None for call in sets.named("descend"))


def test_no_signal_is_done_after_a_round_for_raised_penalties():
    sets = Scripted([(9, 0.5, 100.0), (8, 0.001, 50.0), (7, 0.001, 1.5)], [(9, 0.001, 100.0)], raises=True)
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01))
    assert sets.named("descend")[0][-2] == [40.0]
    assert sets.named("descend")[1][-2] == [1.0]  # the certificate is good already, so the penalty itself is next
    assert result.iterations.tolist() == [2, 0]  # without codes there is nothing that penalties could have shrunk


def test_signals_that_stall_are_given_up_and_evaluated_exactly():
    sets = Scripted([(5.0, 0.5, 2)], exact=Certificate(4.5, 1e-3, np.zeros((1, 5))))
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01))
    assert result.iterations.tolist() == [6]
    assert (result.objective[0], result.gap[0], result.status) == (4.5, 1e-3, Status.CONVERGED)
    assert [call[0] for call in sets.calls[-3:]] == ["collect", "recheck", "residuals"]


@pytest.mark.parametrize(("exact", "gap"), [(4.0, 1 - 2.5 / 4.0), (6.0, 1 - 2.5 / 6.0), (2.5, 0.0), (np.nan, 0.9)])
def test_what_bounds_the_optimum_is_told_beside_the_exact_objective(exact, gap):
    """A look may round the objective; half of five is what the optimum is at least all the same."""
    sets = Scripted([(5.0, 0.5, 2)], exact=Certificate(exact, 0.9, np.zeros((1, 5))))
    assert solve_by_rounds(sets, CoordinateDescent(tol=1e-9)).gap[0] == pytest.approx(gap, abs=1e-15)


@pytest.mark.parametrize("rule", [None, lambda found: found.ratio > 1])
def test_all_rounds_are_the_limit(rule):
    sets = Scripted([(9 - i, 0.5, 2) for i in range(9)], [(1, 0.5, 1), (1, 0.0, 1)])
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01, max_iter=3), rule)
    assert result.statuses[0] is Status.ITERATION_LIMIT
    assert result.iterations.tolist() == [3, 1 if rule is None else 0]
    assert sets.named("recheck") == ([(0, [0])] if rule is None else [])  # which has nothing to say here
    assert result.gap[0] == 0.5


def test_a_ridge_has_all_its_rounds_then_drops_the_smallest_codes():
    sets = Scripted([(5.0, 0.5, 2)])
    solve_by_rounds(sets, CoordinateDescent(tol=0.0, ridge=1.0, max_iter=8))
    assert [last for _, last in sets.named("look")] == [False] * 8 + [True]
    assert [call[-1] for call in sets.named("descend")] == [None] * 7 + [coordinate_descent.TUNING.negligible]
    assert not sets.named("recheck")


@pytest.mark.parametrize("objective", [np.nan, np.inf])
def test_what_is_not_finite_ends_at_once(objective):
    sets = Scripted([(objective, np.nan, 2)])
    result = solve_by_rounds(sets, CoordinateDescent())
    assert result.status is Status.DIVERGED
    assert result.iterations.tolist() == [0]
    assert not sets.named("recheck")


class ScriptedBatch:
    """A device's batch of three signals: scans on tensor cores are rough, and the second is not far from the optimum."""

    def __init__(self, engine, signals, weights):
        self.looks, self.descents, self.enlarged = [], [], []

    def look(self, active, tensor=False):
        self.looks.append((active.tolist(), tensor))
        ratio = np.array([2.0, 1.0, 1.0])
        ones = np.ones(3)
        return SimpleNamespace(loss=ones, energy=2 * ones, price=0 * ones, ratio=ratio, box=np.array([1.0, 1.0, 0.0]))

    def enlarge(self, active, cell, floors):
        self.enlarged.append((active.tolist(), cell, floors.tolist()))

    def descend(self, active, targets, raised, max_sweeps, extra, ridge):
        self.descents.append((active.tolist(), targets.tolist(), raised.tolist(), max_sweeps, extra, ridge))


@pytest.fixture
def device_sets(monkeypatch):
    monkeypatch.setattr(on_devices, "SignalGroup", ScriptedBatch)
    engine = SimpleNamespace(has_tensor_scan=True)
    state = SimpleNamespace(problem=PROBLEM, engine=engine, rounding=lambda tensor: 1e-1 if tensor else 1e-6)
    return DeviceWorkingSets(DeviceDescent(), state, [np.ones((1, 5))] * 3, slice(0, 3), None)


def test_only_doubtful_signals_are_scanned_again_in_float32(device_sets):
    found = device_sets.look(np.arange(3), last=False)
    assert device_sets.group.looks == [([0, 1, 2], True), ([1], False)]
    assert found.gap[0] > 0.1
    assert found.gap[1] < 1e-5
    assert found.gap[2] == 0.0
    assert found.ratio.tolist() == [2.0, 1.0, 1.0]


def test_far_answers_of_a_device_are_not_evaluated_again(device_sets):
    device_sets.look(np.arange(3), last=False)
    assert device_sets.recheck(0, np.array([0]), np.ones(1)) is None
    assert device_sets.recheck(1, np.array([0]), np.ones(1)).residual.ravel().tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_codes_that_hang_together_are_descended_on_further():
    """With the same share in all rounds this takes more than two hundred."""
    rng = np.random.default_rng(3)
    signals, filters = rng.standard_normal((2, 9, 10)), rng.standard_normal((4, 3, 3))
    found = encode(signals, filters, 1e-3 * np.max(max_penalty(signals, filters)))
    assert found.status is Status.CONVERGED
    assert found.iterations.max() < 60


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


@pytest.mark.parametrize(
    "setting",
    [
        {"max_iter": 0}, {"min_iter": -1}, {"tol": -1.0}, {"max_sweeps": 0}, {"cells": ()}, {"cells": (0,)}, {"inner": 1.0},
        {"ridge": -1.0},
    ],
)  # fmt: skip
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


def test_a_ridge_solves_the_elastic_net_and_its_gap_still_bounds(monkeypatch, reference):
    monkeypatch.setattr(coordinate_descent, "TUNING", dataclasses.replace(coordinate_descent.TUNING, negligible=0.0))
    problem, x = reference.problem(np.random.default_rng(4), (12, 9), (3, 3), dtype=np.float64, n_filters=4)
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


def _large_filters(reference, boundary, side=70):
    """A problem of filters as smooth as large ones are, and a signal made of them."""
    rng = np.random.default_rng(8)
    problem, _ = reference.problem(rng, (side, side), (21, 21), n_filters=20, boundary=boundary, dtype=np.float32)
    smooth = gaussian_filter(problem.filters, (0, 0, 2, 2))
    smooth /= np.sqrt(np.sum(smooth**2, axis=(1, 2, 3), keepdims=True))
    problem = dataclasses.replace(problem, filters=smooth, penalty=np.full((20, 1), 0.3, np.float32))
    codes = rng.choice(problem.operator.n_codes, 400, replace=False)
    x = problem.operator.synthesise(codes, rng.standard_normal(400).astype(np.float32))
    x += 0.2 * rng.standard_normal(x.shape).astype(np.float32)
    return problem, x


@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("tol", [0.2, 1e-3, 1e-6])
def test_answers_with_large_filters_are_as_exact_as_others(reference, boundary, tol):
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


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_a_signal_of_zeros_has_no_codes(reference, ridge):
    problem, x = reference.problem(np.random.default_rng(0), (20, 40), (3, 3), n_filters=3)
    solver = CoordinateDescent(ridge=ridge, tol=0.0, max_iter=3)
    result = solver.solve(solver.prepare(problem), [0 * x])
    assert result.codes.nnz == 0
    assert (result.objective[0], result.gap[0], result.status) == (0.0, 0.0, Status.CONVERGED)
