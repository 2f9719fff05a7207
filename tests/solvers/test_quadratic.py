"""The quadratic step's two systems against dense linear algebra."""

import numpy as np
import pytest

from pointillist.solvers.admm import SampledOperator, band_width, cheaper_system, make_system


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


@pytest.mark.parametrize("kind", ["cholesky", "cg"])
def test_single_precision_stays_single(kind, reference):
    shape = {"signal": (7, 8), "size": (3, 4), "boundary": "same"}
    _, matrix, system, rho = system_of(reference, kind, 6, dtype=np.float32, **shape)
    right = np.random.default_rng(7).standard_normal((1, 1, 7, 8)).astype(np.float32)
    solved = system(right, 1)
    assert solved.dtype == np.float32
    expected = np.linalg.solve(matrix @ matrix.T + rho * np.eye(56), right.ravel().astype(np.float64))
    np.testing.assert_allclose(solved.ravel(), expected, atol=2e-4)


def test_band_width_is_the_reach_of_a_filter():
    assert band_width((10,), (4,)) == 3
    assert band_width((10, 12), (3, 4)) == 2 * 12 + 3
    assert band_width((5, 10, 12), (2, 3, 4)) == 120 + 2 * 12 + 3


def test_the_choice_follows_counts_and_memory(reference):
    rng = np.random.default_rng(8)
    plain = SampledOperator(reference.problem(rng, (40,), (3,))[0], None)
    assert cheaper_system(plain, 1000, 1000, 1e9) == "cholesky"
    assert cheaper_system(plain, 1000, 1000, 1.0) == "cg"
    for other in ({"boundary": "circular"}, {"channels": 2}):
        operator = SampledOperator(reference.problem(rng, (40,), (3,), **other)[0], None)
        assert cheaper_system(operator, 1000, 1000, 1e9) == "cg"
