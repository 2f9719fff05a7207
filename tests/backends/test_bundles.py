"""Tests of codes that are updated together, against updates one by one."""

import dataclasses

import numpy as np
import pytest

from pointillist.backends import convolution, sweeps
from pointillist.backends.bundles import bundle_spare, make_bundles
from pointillist.model.geometry import Geometry
from pointillist.model.operators import ConvolutionOperator
from pointillist.solvers.cutting import Cutter
from pointillist.solvers.scanning import clean_positions
from pointillist.solvers.staging import Ring, residual_of, stage_of


def _descended(problem, x, codes, bundled, ridge, extra, target):
    """Values, and the residual as a signal, after a few descents on codes in the order of their positions."""
    geometry, dtype, layout = problem.geometry, x.dtype, problem.operator.layout
    weights = problem.weights_of(0)
    seen = geometry.spread(np.ones(x.shape, dtype) if weights is None else weights)
    residual = geometry.spread(x if weights is None else weights * x)
    if geometry.boundary == "circular":
        stage = Ring(geometry, layout, seen).stage(codes, residual)
    else:
        stage = stage_of(geometry, layout, codes, residual, seen, Cutter.into_tiles(geometry, 1000))
    curvatures, values = np.empty(len(codes), dtype), np.zeros(len(codes), dtype)
    convolution.curvatures(layout, codes, seen, curvatures)
    clean = clean_positions(geometry, None if weights is None else seen)[codes % geometry.n_positions]
    bundles = make_bundles(layout, -problem.filters.shape[-1] % 16) if bundled else None
    ((_, region),) = stage.cuts[0].tiles
    for _ in range(3):
        sweeps.descend(
            stage.layout, stage.places, curvatures, problem.penalty_at(codes).astype(dtype), dtype.type(ridge), clean,
            stage.weights, problem.nonnegative, values, stage.residual, target, extra, 2, region,
            weights is None, bundles,
        )  # fmt: skip
    return values, residual_of(geometry, stage), clean


def _ordered(rng, problem, count):
    """Some codes in the order of their positions, several at some positions and close together at others."""
    n_positions, n_filters = problem.geometry.n_positions, problem.n_filters
    keys = np.sort(rng.choice(n_positions * n_filters, count, replace=False))
    return keys % n_filters * n_positions + keys // n_filters


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(
    ("signal", "size"), [((30, 40), (6, 20)), ((14, 32), (5, 18)), ((90,), (27,)), ((6, 9, 41), (2, 3, 21))]
)
@pytest.mark.parametrize(("nonnegative", "ridge", "extra"), [(False, 0.0, 0), (False, 0.3, 4), (True, 0.0, 4)])
def test_codes_of_a_bundle_move_as_they_would_alone(reference, boundary, signal, size, nonnegative, ridge, extra):
    rng = np.random.default_rng(0)
    problem, x = reference.problem(
        rng, signal, size, n_filters=3, channels=2, boundary=boundary, penalty=0.05, nonnegative=nonnegative
    )
    codes = _ordered(rng, problem, problem.operator.n_codes // 4)
    (together, left, _), (alone, expected, _) = (
        _descended(problem, x, codes, bundled, ridge, extra, 1e-9) for bundled in (True, False)
    )
    assert np.count_nonzero(alone) > len(codes) // 10
    np.testing.assert_allclose(together, alone, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(left, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_only_codes_that_meet_weights_of_one_are_bundled(reference, boundary):
    rng = np.random.default_rng(1)
    problem, x = reference.problem(rng, (40, 60), (6, 20), n_filters=3, boundary=boundary, penalty=0.05)
    weights = np.ones(x.shape)
    weights[:, :20, :30] = rng.uniform(0, 2, (20, 30))
    problem = dataclasses.replace(problem, weights=weights)
    codes = _ordered(rng, problem, 1500)
    (together, left, clean), (alone, expected, _) = (
        _descended(problem, x, codes, bundled, 0.0, 3, 1e-9) for bundled in (True, False)
    )
    assert 0.2 < np.mean(clean) < 0.9
    np.testing.assert_allclose(together, alone, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(left, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("target", [1e-2, 1e-9])  # steps are compared, and recorded
def test_the_residual_stays_that_of_the_codes(reference, boundary, dtype, target):
    rng = np.random.default_rng(2)
    problem, x = reference.problem(rng, (40, 60), (6, 20), n_filters=3, boundary=boundary, penalty=0.05, dtype=dtype)
    codes = _ordered(rng, problem, 1500)
    values, left, _ = _descended(problem, x, codes, True, 0.0, 6, target)
    expected = x - problem.operator.synthesise_exactly(codes, values)
    np.testing.assert_allclose(left, expected, atol=3e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_shifted_filters(dtype):
    rng = np.random.default_rng(3)
    filters = rng.standard_normal((3, 2, 4, 20)).astype(dtype)
    geometry = Geometry((9, 70), (4, 20), 2, "same")
    operator = ConvolutionOperator(filters, geometry)
    bundles = make_bundles(operator.layout, 12)
    positions = np.arange(0, geometry.n_positions, 3)
    codes = rng.integers(0, 3, len(positions)) * geometry.n_positions + positions
    flat = geometry.spread(rng.standard_normal((2, 9, 70)).astype(dtype))
    ones = geometry.spread(np.ones((2, 9, 70), dtype))
    stage = stage_of(geometry, operator.layout, codes, flat, ones, Cutter.into_tiles(geometry, 100))
    ((_, region),) = stage.cuts[0].tiles
    many = np.ones(len(codes), dtype)
    sweeps.descend(
        stage.layout, stage.places, 200 * many, 0.01 * many, dtype(0), many > 0, ones, False, 0 * many, flat, 1e-9,
        0, 1, region, True, bundles,
    )  # fmt: skip
    known = np.argwhere(~np.isnan(bundles.products))
    assert len(known) > 20
    for k, m, shift in known:
        expected = np.sum(filters[k, ..., shift:] * filters[m, ..., : 20 - shift])
        np.testing.assert_allclose(bundles.products[k, m, shift], expected, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    ("shape", "around", "spare"),
    [
        ((100, 1, 71, 71), 200, 9),
        ((100, 1, 71, 71), 75, 0),  # a bundle would meet itself
        ((100, 1, 71, 71), None, 9),
        ((100, 1, 11, 11), None, 0),  # too small
        ((100, 1, 31, 31), None, 0),  # hardly any two codes begin close enough
        ((3000, 1, 21, 21), None, 0),  # too many products
    ],
)
def test_bundles_are_for_large_filters(shape, around, spare):
    assert bundle_spare(shape, around) == spare
