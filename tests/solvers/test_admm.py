"""Tests of the paper's ADMM: its settings, its pieces and its iteration written out with dense matrices."""

import dataclasses

import numpy as np
import pytest

from pointillist.solvers.admm import SampledADMM, soft_threshold


def dense_iteration(matrix, x, penalty, rho, alpha, iterations):
    """Eq. 3 of the paper, over-relaxed, with an explicit inverse instead of Woodbury's identity."""
    z, u = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    inverse = np.linalg.inv(matrix.T @ matrix + rho * np.eye(matrix.shape[1]))
    for _ in range(iterations):
        y = inverse @ (matrix.T @ x + rho * (z - u))
        y = alpha * y + (1 - alpha) * z
        z = np.sign(y + u) * np.maximum(np.abs(y + u) - penalty / rho, 0)
        u = u + y - z
    return z


@pytest.mark.parametrize("quadratic", ["cholesky", "cg"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_ten_iterations_are_the_papers(quadratic, weighted, sampled, reference):
    rng = np.random.default_rng(0)
    sample = np.flatnonzero(rng.random(3 * 56) < 0.3) if sampled else None
    problem, x = reference.problem(
        rng, (7, 8), (3, 2), weights="uneven" if weighted else None, sample=sample, penalty=0.2
    )
    solver = SampledADMM(max_iter=10, tol=0.0, quadratic=quadratic)
    state = solver.prepare(problem)
    assert state.rho == pytest.approx(2.0)
    result = solver.solve(state, [x])
    roots = np.ones(x.size) if problem.weights is None else np.sqrt(problem.weights.ravel())
    matrix = roots[:, None] * reference.matrix(problem.filters, problem.geometry)
    allowed = np.arange(matrix.shape[1]) if sample is None else sample
    expected = np.zeros(matrix.shape[1])
    expected[allowed] = dense_iteration(matrix[:, allowed], roots * x.ravel(), 0.2, 2.0, 1.8, 10)
    np.testing.assert_allclose(result.codes.to_dense().ravel(), expected, atol=1e-9)
    assert list(result.iterations) == [10]


def test_signals_of_a_batch_do_not_disturb_each_other(reference):
    rng = np.random.default_rng(1)
    problem, _ = reference.problem(rng, (9, 9), (3, 3))
    signals = list(rng.standard_normal((4, 1, 9, 9)))
    solver = SampledADMM(max_iter=10, tol=0.0)
    together = solver.solve(solver.prepare(problem), signals)
    small = dataclasses.replace(solver, memory=1.0, quadratic="cholesky")
    one_at_a_time = small.solve(small.prepare(problem), signals)
    np.testing.assert_allclose(together.codes.to_dense(), one_at_a_time.codes.to_dense(), atol=1e-9)
    np.testing.assert_allclose(together.objective, one_at_a_time.objective, rtol=1e-12)


def test_tolerance_stops_the_iteration(reference):
    problem, x = reference.problem(np.random.default_rng(2), (20,), (4,))
    loose, tight = (SampledADMM(tol=tol, rho=1.0, max_iter=5000) for tol in (1e-1, 1e-5))
    first, second = (solver.solve(solver.prepare(problem), [x]) for solver in (loose, tight))
    assert first.iterations[0] < second.iterations[0] < 5000
    assert first.gap[0] <= 1e-1
    assert second.gap[0] <= 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_soft_threshold(dtype):
    x = np.array([-3, -1, -0.5, 0, 0.5, 1, 3], dtype)
    shrunk = soft_threshold(x, np.asarray(1.0, dtype))
    np.testing.assert_array_equal(shrunk, [-2, 0, 0, 0, 0, 0, 2])
    assert shrunk.dtype == dtype
    np.testing.assert_array_equal(
        soft_threshold(x, np.asarray(0.5, dtype), nonnegative=True), [0, 0, 0, 0, 0, 0.5, 2.5]
    )


@pytest.mark.parametrize(
    "setting",
    [
        {"max_iter": 0},
        {"tol": float("nan")},
        {"relaxation": 0},
        {"relaxation": 2.0},
        {"rho": 0.0},
        {"rho": -1.0},
        {"quadratic": "qr"},
        {"check_every": 0},
    ],
)
def test_settings_are_checked(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        SampledADMM(**setting)


@pytest.mark.parametrize(("boundary", "channels"), [("circular", 1), ("same", 2)])
def test_a_factor_without_a_band_is_refused(boundary, channels, reference):
    problem, x = reference.problem(np.random.default_rng(3), (12,), (3,), boundary=boundary, channels=channels)
    solver = SampledADMM(quadratic="cholesky")
    with pytest.raises(ValueError, match='quadratic="cholesky" needs one channel'):
        solver.solve(solver.prepare(problem), [x])
