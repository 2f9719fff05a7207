"""What every solver promises, against dense optima by scikit-learn: add a solver to `COMBINATIONS` to hold it to them."""

import dataclasses

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.problem import Geometry
from pointillist.solvers import CoordinateDescent, FrequencyADMM, SampledADMM
from pointillist.solvers.base import Status
from pointillist.solvers.encoding import make_solver
from pointillist.validation import BOUNDARIES

EXACT = {"max_iter": 20_000, "tol": 1e-6, "rho": 1.0, "check_every": 50}
COMBINATIONS = [
    *((CoordinateDescent(tol=1e-7, max_iter=5000), boundary) for boundary in BOUNDARIES),
    *((SampledADMM(quadratic="cholesky", **EXACT), boundary) for boundary in ("valid", "same", "full")),
    *((SampledADMM(quadratic="cg", **EXACT), boundary) for boundary in BOUNDARIES),
    (FrequencyADMM(**EXACT), "circular"),
]
PROBLEMS = {
    "1-D": ((24,), (5,), {}), "long 1-D": ((30,), (18,), {}), "2-D": ((7, 8), (3, 2), {}),
    "3-D": ((4, 4, 5), (2, 2, 3), {}), "channels, 1-D": ((24,), (5,), {"channels": 2}),
    "channels, 2-D": ((7, 8), (3, 2), {"channels": 2}), "mask": ((7, 8), (3, 2), {"weights": "mask"}),
    "uneven": ((7, 8), (3, 2), {"weights": "uneven"}), "sampled": ((7, 8), (3, 2), {"sample": 0.4}),
}  # fmt: skip
REFUSED = {"channels": "one channel", "weights": "weights", "sample": "sampling"}


def name(value):
    if isinstance(value, str):
        return value
    return "-".join([type(value).__name__, getattr(value, "quadratic", "")]).rstrip("-")


def takes(solver, *, channels=1, weights=None, sample=None):
    """Whether a solver is meant for such problems."""
    if getattr(solver, "quadratic", "") == "cholesky":
        return channels == 1
    return not isinstance(solver, FrequencyADMM) or (weights is None and sample is None)


def check(reference, solver, problem, signals):
    """Every promise of `Result` against the dense optimum of the (sampled) problem."""
    result = solver.solve(solver.prepare(problem), signals)
    geometry = problem.geometry
    matrix = reference.matrix(problem.filters, geometry)
    prices = np.broadcast_to(problem.penalty, (problem.n_filters, geometry.n_positions)).ravel()
    allowed = np.arange(matrix.shape[1]) if problem.sample is None else problem.sample
    assert result.status is Status.CONVERGED
    assert result.codes.shape == (len(signals), problem.n_filters, *geometry.grid)
    for i, signal in enumerate(signals):
        weights = problem.weights_of(i)
        best = reference.lasso(matrix[:, allowed], signal, prices[allowed], weights, problem.nonnegative)
        index, values = result.codes.indices[i], result.codes.values[i]
        assert np.all(np.diff(index) > 0)
        assert np.all(np.isin(index, allowed))
        assert np.all(values != 0)
        assert not problem.nonnegative or np.all(values > 0)
        difference = signal.ravel() - matrix[:, index] @ values
        w = np.ones(signal.size) if weights is None else weights.ravel()
        objective = 0.5 * np.sum(w * difference**2) + np.sum(prices[index] * np.abs(values))
        assert result.objective[i] == pytest.approx(objective, rel=1e-9)
        np.testing.assert_allclose(result.residuals[i].ravel(), w * difference, atol=1e-8)
        excess = objective - best.objective
        assert excess <= result.gap[i] * objective + 1e-10 * objective
        assert excess <= 1e-5 * best.objective
        assert excess >= -1e-9 * best.objective
        assert 0 <= result.gap[i] <= solver.tol
    return result


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_every_kind_of_problem_is_solved_or_refused(solver, boundary, kind, reference):
    (signal, size, more), rng = PROBLEMS[kind], np.random.default_rng(1)
    if "sample" in more:
        n_codes = 3 * Geometry(signal, size, 1, boundary).n_positions
        more = {"sample": np.flatnonzero(rng.random(n_codes) < more["sample"])}
    problem, x = reference.problem(rng, signal, size, boundary=boundary, **more)
    if takes(solver, **more):
        assert check(reference, solver, problem, [x]).codes.nnz > 0
    else:
        with pytest.raises(ValueError, match=REFUSED[next(iter(more))]):
            solver.solve(solver.prepare(problem), [x])


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_each_signal_with_its_own_weights(solver, boundary, reference):
    rng = np.random.default_rng(4)
    problem, x = reference.problem(rng, (24,), (5,), boundary=boundary)
    problem = dataclasses.replace(problem, weights=2 * rng.random((2, 1, 24)))
    if takes(solver, weights=problem.weights):
        check(reference, solver, problem, [x, rng.standard_normal(x.shape)])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_an_empty_sample_leaves_the_whole_signal_in_the_residual(solver, boundary, reference):
    none = np.empty(0, np.int64)
    problem, x = reference.problem(np.random.default_rng(6), (12,), (3,), boundary=boundary, sample=none)
    if takes(solver, sample=none):
        solver = dataclasses.replace(solver, **({"rho": None} if hasattr(solver, "rho") else {}))
        result = solver.solve(solver.prepare(problem), [x])
        assert result.status is Status.CONVERGED
        assert result.codes.nnz == 0
        assert result.objective[0] == pytest.approx(0.5 * np.sum(x**2))
        np.testing.assert_allclose(result.residuals[0], x)


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("penalty", ["filter", "position"])
def test_penalties_of_their_own_and_non_negative_codes(solver, boundary, nonnegative, penalty, reference):
    rng = np.random.default_rng(7)
    grid = Geometry((24,), (5,), 1, boundary).grid
    prices = 0.2 + rng.random((3, *grid) if penalty == "position" else 3)
    problem, x = reference.problem(rng, (24,), (5,), boundary=boundary, penalty=prices, nonnegative=nonnegative)
    check(reference, solver, problem, [x])


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_single_precision_meets_a_modest_tolerance(solver, boundary, reference):
    problem, x = reference.problem(np.random.default_rng(9), (7, 8), (3, 2), boundary=boundary, dtype=np.float32)
    solver = dataclasses.replace(solver, tol=1e-4)
    result = solver.solve(solver.prepare(problem), [x])
    best = reference.lasso(reference.matrix(problem.filters, problem.geometry), x, problem.penalty[0, 0])
    assert result.status is Status.CONVERGED
    assert result.codes.dtype == np.float32
    assert result.residuals[0].dtype == np.float32
    assert result.objective.dtype == np.float64
    assert best.objective * (1 - 1e-9) <= result.objective[0] <= best.objective * (1 + 1e-4)


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_threads_and_company_change_no_bit(solver, boundary, reference):
    rng = np.random.default_rng(10)
    problem, _ = reference.problem(rng, (9, 9), (3, 3), boundary=boundary)
    solver = dataclasses.replace(solver, max_iter=7, tol=0.0)
    signals = list(rng.standard_normal((3, 1, 9, 9)))
    one, two = (solver.solve(solver.prepare(problem), signals, n_jobs=n) for n in (1, 2))
    for a, b in zip(one.codes, two.codes, strict=True):
        np.testing.assert_array_equal(a.indices[0], b.indices[0])
        np.testing.assert_array_equal(a.values[0], b.values[0])
    np.testing.assert_array_equal(one.objective, two.objective)
    np.testing.assert_array_equal(one.gap, two.gap)


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_a_start_does_not_spoil_the_answer(solver, boundary, reference):
    rng = np.random.default_rng(11)
    problem, x = reference.problem(rng, (24,), (5,), boundary=boundary)
    start = SparseCodes.from_dense(rng.standard_normal((1, 3, *problem.geometry.grid)))
    warm = solver.solve(solver.prepare(problem), [x], start=start)
    cold = solver.solve(solver.prepare(problem), [x])
    assert warm.objective[0] == pytest.approx(cold.objective[0], rel=1e-5)


@pytest.mark.parametrize(("solver", "boundary"), COMBINATIONS, ids=name)
def test_stopping_early_is_admitted(solver, boundary, reference):
    problem, x = reference.problem(np.random.default_rng(12), (24,), (5,), boundary=boundary)
    hasty = dataclasses.replace(solver, max_iter=1, tol=1e-9)
    result = hasty.solve(hasty.prepare(problem), [x])
    assert result.status is Status.ITERATION_LIMIT
    assert result.gap[0] > 1e-9
    assert list(result.iterations) == [1]


def test_solvers_by_name_and_by_object():
    assert make_solver("admm", tol=0.5, max_iter=None) == SampledADMM(tol=0.5)
    own = SampledADMM(max_iter=3)
    assert make_solver(own, tol=None) is own
    with pytest.raises(ValueError, match=r"solver=SampledADMM\(tol=0.5\)"):
        make_solver(own, tol=0.5)
    for bad in ("simplex", 3):
        with pytest.raises(ValueError, match="solver must be one of"):
            make_solver(bad)
