"""Tests of descent with extrapolated sweeps, against scikit-learn on the dense matrix."""

import dataclasses

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from pointillist.backends import convolution, sweeps
from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.solvers.cutting import Cutter
from pointillist.solvers.staging import Ring, stage_of


def _descend(problem, x, codes, ridge, extra, target, calls):
    """Values and residual after some descents on a working set, from zero."""
    geometry, dtype = problem.geometry, x.dtype
    weights = problem.weights_of(0)
    seen = geometry.spread(np.ones(x.shape, dtype) if weights is None else weights)
    residual = geometry.spread(x if weights is None else weights * x)
    layout = problem.operator.layout
    if geometry.boundary == "circular":
        stage = Ring(geometry, layout, seen).stage(codes, residual)
    else:
        stage = stage_of(geometry, layout, codes, residual, seen, Cutter.into_tiles(geometry, 1000))
    curvatures = np.empty(len(codes), dtype)
    convolution.curvatures(layout, codes, seen, curvatures)
    values, clean = np.zeros(len(codes), dtype), np.zeros(len(codes), bool)
    penalties = problem.penalty_at(codes).astype(dtype)
    ((_, region),) = stage.cuts[0].tiles
    for _ in range(calls):
        sweeps.descend(
            stage.layout, stage.places, curvatures, penalties, dtype.type(ridge), clean, stage.weights,
            problem.nonnegative, values, stage.residual, target, extra, 1, region, weights is None,
        )  # fmt: skip
    inside = (region.counted[:, None] + np.arange(region.counted_length)).ravel()
    return values, stage.residual[inside]


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
    codes = np.arange(matrix.shape[1])
    taller = np.vstack([np.sqrt(seen)[:, None] * matrix, np.sqrt(ridge) * np.eye(len(codes))])
    longer = np.concatenate([np.sqrt(seen) * x.ravel(), np.zeros(len(codes))])
    expected = reference.lasso(taller, longer, 0.05, nonnegative=nonnegative)
    values, _ = _descend(problem, x, codes, ridge, extra=15, target=1e-12, calls=60)

    def objective(z):
        fit = 0.5 * seen @ (x.ravel() - matrix @ z) ** 2
        return fit + 0.05 * np.sum(np.abs(z)) + 0.5 * ridge * np.sum(z**2)

    assert objective(values) == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", ["same", "full", "circular"])
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize(("size", "target"), [((5, 5), 1e-9), ((5, 5), 1e-2), ((7, 19), 1e-9), ((7, 19), 1e-2)])
def test_the_residual_stays_that_of_the_codes(reference, boundary, dtype, weights, size, target):
    rng = np.random.default_rng(5)
    problem, x = reference.problem(
        rng, (30, 28), size, n_filters=4, boundary=boundary, weights=weights, penalty=0.02, dtype=dtype
    )
    codes = np.sort(rng.choice(problem.operator.n_codes, 500, replace=False))
    values, residual = _descend(problem, x, codes, 0.0, extra=12, target=target, calls=4)
    exact = dataclasses.replace(problem, filters=problem.filters.astype(np.float64))
    fit = exact.operator.synthesise(codes, values.astype(np.float64))
    left = problem.geometry.spread(x - fit if weights is None else problem.weights * (x - fit)).astype(np.float64)
    if boundary == "circular":
        shape = problem.geometry.padded
        left = left[: np.prod(shape)].reshape(shape)[tuple(slice(n) for n in problem.geometry.signal)].ravel()
    else:
        left = left[: len(residual)]
    np.testing.assert_allclose(residual, left, atol=3e-5 if dtype == np.float32 else 1e-12)


def test_extrapolation_saves_sweeps(reference):
    """On codes that overlap much, as many sweeps come far closer to the optimum with it than without."""
    rng = np.random.default_rng(6)
    problem, x = reference.problem(rng, (40, 40), (9, 9), n_filters=3, penalty=0.02)
    smooth = gaussian_filter(problem.filters, (0, 0, 1.5, 1.5))
    smooth /= np.sqrt(np.sum(smooth**2, axis=(1, 2, 3), keepdims=True))
    problem = dataclasses.replace(problem, filters=smooth)
    codes = np.sort(rng.choice(problem.operator.n_codes, 900, replace=False))

    def objective(extra, calls):
        values, _ = _descend(problem, x, codes, 0.0, extra=extra, target=1e-15, calls=calls)
        left = x - problem.operator.synthesise(codes, values)
        return 0.5 * np.sum(left**2) + 0.02 * np.sum(np.abs(values))

    best, plain, extrapolated = objective(20, 300), objective(0, 126), objective(20, 6)
    assert extrapolated - best < 0.3 * (plain - best)


def test_a_region_holds_all_that_its_codes_reach():
    geometry = Geometry((12, 10), (3, 3), 2, "same")
    flat, codes = np.zeros(geometry.padded_length), np.array([5, 37])
    operator = ConvolutionOperator(np.ones((1, 2, 3, 3)), geometry)
    stage = stage_of(geometry, operator.layout, codes, flat, flat, Cutter.into_tiles(geometry, 100))
    ((_, region),) = stage.cuts[0].tiles
    reached = (region.rows[:, None] + np.arange(region.length)).ravel()
    touched = np.flatnonzero(operator.synthesise_padded(codes, np.ones(2)))
    assert set(touched) <= set(reached)
