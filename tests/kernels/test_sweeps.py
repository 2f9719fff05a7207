"""Tests of descent with extrapolated sweeps, against scikit-learn on the dense matrix."""

import dataclasses

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from pointillist.kernels.sweeps import Effort
from pointillist.solvers.staging import field_of
from pointillist.solvers.sweeping import Ground


def _descend(problem, x, codes, ridge, extra, target, calls):
    """Values of codes, in the order of their positions, and residual (channels, *space) after some descents from zero."""
    ground = Ground(problem, 0, field_of(problem.geometry, problem.operator.layout))
    weights = problem.weights_of(0)
    stage = ground.stage(codes, problem.geometry.spread(x if weights is None else weights * x))
    working = ground.codes(codes, np.zeros(len(codes), x.dtype))
    for _ in range(calls):
        ground.sweep(stage, working, Effort(target, extra, 1), map, ridge)
    return working.values, ground.inside(stage)


def _some_codes(rng, problem, count):
    """Some codes in the order of their positions."""
    keys = np.sort(rng.choice(problem.operator.n_codes, count, replace=False))
    return keys % problem.n_filters * problem.geometry.n_positions + keys // problem.n_filters


@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize(("nonnegative", "ridge"), [(False, 0.0), (True, 0.0), (False, 0.3)])
def test_extrapolated_sweeps_reach_the_optimum_and_keep_the_residual(reference, boundary, weights, nonnegative, ridge):
    rng = np.random.default_rng(4)
    problem, x = reference.problem(
        rng, (9, 8), (4, 3), n_filters=2, boundary=boundary, weights=weights, penalty=0.05, nonnegative=nonnegative
    )
    matrix = reference.matrix(problem.filters, problem.geometry)
    seen = np.ones(x.size) if weights is None else problem.weights.ravel()
    codes = _some_codes(rng, problem, problem.operator.n_codes)
    taller = np.vstack([np.sqrt(seen)[:, None] * matrix, np.sqrt(ridge) * np.eye(len(codes))])
    longer = np.concatenate([np.sqrt(seen) * x.ravel(), np.zeros(len(codes))])
    expected = reference.lasso(taller, longer, 0.05, nonnegative=nonnegative)
    values, _ = _descend(problem, x, codes, ridge, extra=15, target=1e-12, calls=60)
    dense = np.zeros(len(codes))
    dense[codes] = values

    def objective(z):
        fit = 0.5 * seen @ (x.ravel() - matrix @ z) ** 2
        return fit + 0.05 * np.sum(np.abs(z)) + 0.5 * ridge * np.sum(z**2)

    assert objective(dense) == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", ["same", "full", "circular"])
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize(("size", "target"), [((5, 5), 1e-9), ((5, 5), 1e-2), ((7, 19), 1e-9), ((7, 19), 1e-2)])
def test_the_residual_stays_that_of_the_codes(reference, boundary, dtype, weights, size, target):
    rng = np.random.default_rng(5)
    problem, x = reference.problem(
        rng, (30, 28), size, n_filters=4, boundary=boundary, weights=weights, penalty=0.02, dtype=dtype
    )
    codes = _some_codes(rng, problem, 500)
    values, residual = _descend(problem, x, codes, 0.0, extra=12, target=target, calls=4)
    exact = dataclasses.replace(problem, filters=problem.filters.astype(np.float64))
    left = x - exact.operator.synthesise(codes, values.astype(np.float64))
    left = left if weights is None else problem.weights * left
    np.testing.assert_allclose(residual, left, atol=3e-5 if dtype == np.float32 else 1e-12)


def test_extrapolation_saves_sweeps(reference):
    """On codes that overlap much, as many sweeps come far closer to the optimum with it than without."""
    rng = np.random.default_rng(6)
    problem, x = reference.problem(rng, (40, 40), (9, 9), n_filters=3, penalty=0.02)
    smooth = gaussian_filter(problem.filters, (0, 0, 1.5, 1.5))
    smooth /= np.sqrt(np.sum(smooth**2, axis=(1, 2, 3), keepdims=True))
    problem = dataclasses.replace(problem, filters=smooth)
    codes = _some_codes(rng, problem, 900)

    def objective(extra, calls):
        values, _ = _descend(problem, x, codes, 0.0, extra=extra, target=1e-15, calls=calls)
        left = x - problem.operator.synthesise(codes, values)
        return 0.5 * np.sum(left**2) + 0.02 * np.sum(np.abs(values))

    best, plain, extrapolated = objective(20, 300), objective(0, 126), objective(20, 6)
    assert extrapolated - best < 0.3 * (plain - best)
