"""Tests of the paper's ADMM: its settings, its iteration with dense matrices, its quadratic step against linear algebra."""

import dataclasses

import numpy as np
import pytest

from pointillist.solvers.admm import FrequencyADMM, SampledADMM, SampledOperator, make_system


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
    result = solver.solve(solver.prepare(problem), [x])
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


def test_a_quadratic_step_must_be_known():
    with pytest.raises(ValueError, match="quadratic"):
        SampledADMM(quadratic="qr")


@pytest.mark.parametrize(("size", "signal"), [((4,), (11,)), ((3, 2), (6, 7)), ((2, 3, 2), (4, 5, 6))])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_step_of_frequencies_is_the_regularised_inverse(size, signal, channels, reference):
    rng = np.random.default_rng(0)
    problem, _ = reference.problem(rng, signal, size, channels=channels, boundary="circular")
    _, step = FrequencyADMM(rho=0.7).prepare(problem)
    matrix = reference.matrix(problem.filters, problem.geometry)
    right = rng.standard_normal((2, matrix.shape[1]))
    expected = np.linalg.solve(matrix.T @ matrix + 0.7 * np.eye(matrix.shape[1]), right.T).T
    np.testing.assert_allclose(step(right), expected, atol=1e-10)


@pytest.mark.parametrize(("boundary", "channels"), [("circular", 1), ("same", 2)])
def test_a_factor_without_a_band_is_refused(boundary, channels, reference):
    problem, x = reference.problem(np.random.default_rng(3), (12,), (3,), boundary=boundary, channels=channels)
    solver = SampledADMM(quadratic="cholesky")
    with pytest.raises(ValueError, match='quadratic="cholesky" needs one channel'):
        solver.solve(solver.prepare(problem), [x])


def system_of(reference, kind, seed, *, dtype=np.float64, weighted=False, sampled=False, rho=0.8, **shape):
    rng = np.random.default_rng(seed)
    probe, _ = reference.problem(np.random.default_rng(seed), shape["signal"], shape["size"], **_rest(shape))
    n_codes = 3 * probe.geometry.n_positions
    sample = np.flatnonzero(rng.random(n_codes) < 0.4) if sampled else None
    problem, _ = reference.problem(
        rng, shape["signal"], shape["size"], sample=sample, dtype=dtype,
        weights="mask" if weighted else None, **_rest(shape),
    )  # fmt: skip
    roots = None if problem.weights is None else np.sqrt(problem.weights)
    operator = SampledOperator(problem, roots)
    matrix = reference.matrix(problem.filters, problem.geometry)
    matrix = matrix if sample is None else matrix[:, sample]
    if roots is not None:
        matrix = roots.ravel()[:, None] * matrix
    return operator, matrix, make_system(kind, operator, rho), rho


def _rest(shape):
    return {k: v for k, v in shape.items() if k not in ("signal", "size")}


SHAPES = [
    {"signal": (25,), "size": (18,), "boundary": "same"},
    {"signal": (7, 8), "size": (3, 4), "boundary": "valid"},
    {"signal": (7, 8), "size": (3, 4), "boundary": "full"},
    {"signal": (4, 5, 6), "size": (2, 3, 2), "boundary": "same"},
]


@pytest.mark.parametrize("kind", ["cholesky", "cg"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{len(s['size'])}-D-{s['boundary']}")
def test_systems_invert_the_small_matrix(kind, weighted, sampled, shape, reference):
    operator, matrix, system, rho = system_of(reference, kind, 1, weighted=weighted, sampled=sampled, **shape)
    right = np.random.default_rng(2).standard_normal((2, 1, *shape["signal"]))
    small = matrix @ matrix.T + rho * np.eye(matrix.shape[0])
    expected = np.linalg.solve(small, right.reshape(2, -1).T).T
    np.testing.assert_allclose(system(right, 1).reshape(2, -1), expected, atol=1e-9)
    codes = np.random.default_rng(3).standard_normal(operator.n_codes)
    np.testing.assert_allclose(operator.forward(codes).ravel(), matrix @ codes, atol=1e-12)
    np.testing.assert_allclose(operator.adjoint(right[0]), matrix.T @ right[0].ravel(), atol=1e-12)


@pytest.mark.parametrize(("boundary", "channels"), [("circular", 1), ("same", 3)])
def test_conjugate_gradients_need_no_band(boundary, channels, reference):
    shape = {"signal": (6, 7), "size": (3, 2), "boundary": boundary, "channels": channels}
    _, matrix, system, rho = system_of(reference, "cg", 4, **shape)
    right = np.random.default_rng(5).standard_normal((1, channels, 6, 7))
    expected = np.linalg.solve(matrix @ matrix.T + rho * np.eye(right.size), right.ravel())
    np.testing.assert_allclose(system(right, 1).ravel(), expected, atol=1e-9)
