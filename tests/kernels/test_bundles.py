"""Tests of codes that are updated together, against updates one by one."""

import dataclasses

import numpy as np
import pytest

from pointillist.kernels.bundles import BUNDLED, bundle_spare, make_bundles
from pointillist.kernels.sweeps import Effort
from pointillist.problem import Geometry, Problem
from pointillist.solvers import strips
from pointillist.solvers.staging import field_of
from pointillist.solvers.sweeping import Ground


@pytest.fixture(autouse=True)
def whole(monkeypatch):
    """Signals in one strip."""
    monkeypatch.setattr(strips, "_LEAST_POSITIONS", 10**9)


def _descended(problem, x, codes, ridge, extra, target, sweeps=2, calls=3):
    """Values after descents with bundles, the residual, and which codes may be bundled."""
    operator = problem.operator
    operator.__dict__["bundles"] = make_bundles(operator.layout, -problem.filters.shape[-1] % 16)
    ground, weights = Ground(problem, 0, field_of(problem.geometry, operator.layout)), problem.weights_of(0)
    stage = ground.stage(codes, problem.geometry.spread(x if weights is None else weights * x))
    working = ground.codes(codes, np.zeros(len(codes), x.dtype))
    for _ in range(calls):
        ground.sweep(stage, working, Effort(target, extra, sweeps), map, ridge)
    return working.values, ground.inside(stage), working.clean


def _alone(problem, x, codes, clean, ridge, sweeps, reference):
    """Values and residual after plain sweeps, code by code, in the order in which bundles of both halves take turns."""
    geometry, spare = problem.geometry, -problem.filters.shape[-1] % 16
    columns = np.ascontiguousarray(reference.matrix(problem.filters, geometry, codes).T)
    weights = np.ones(x.size) if problem.weights is None else problem.weights.ravel()
    bases = field_of(geometry, problem.operator.layout).places(codes).bases
    half = len(codes) // 2
    chains, order = [list(range(half)), list(range(half, len(codes)))], []
    while any(chains):
        chains.reverse()
        chain = chains[0] if chains[0] else chains[1]
        count = 0
        for n in chain[:BUNDLED]:
            if not clean[n] or not 0 <= bases[n] - bases[chain[0]] <= spare:
                break
            count += 1
        order += chain[: max(count, 1)]
        del chain[: max(count, 1)]
    values, residual = np.zeros(len(codes)), x.ravel().copy()
    for n in [n for _ in range(sweeps) for n in order]:
        column = columns[n]
        curvature, penalty = np.sum(weights * column**2), problem.penalty_at(codes[n : n + 1])[0]
        goal = values[n] * curvature + column @ (weights * residual)
        size = goal if problem.nonnegative else abs(goal)
        new = np.sign(goal) * max(size - penalty, 0) / (curvature + ridge) if size > 0 else 0.0
        residual += (values[n] - new) * column
        values[n] = new
    return values, (weights * residual).reshape(x.shape)


def _ordered(rng, problem, count):
    """Some codes in the order of their positions, several at some positions and close together at others."""
    n_positions, n_filters = problem.geometry.n_positions, problem.n_filters
    keys = np.sort(rng.choice(n_positions * n_filters, count, replace=False))
    return keys % n_filters * n_positions + keys // n_filters


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(
    ("signal", "size"), [((18, 40), (4, 20)), ((14, 32), (5, 18)), ((90,), (27,)), ((3, 5, 41), (2, 3, 21))]
)
@pytest.mark.parametrize(("nonnegative", "ridge"), [(False, 0.0), (False, 0.3), (True, 0.0)])
def test_codes_of_a_bundle_move_as_they_would_alone(reference, boundary, signal, size, nonnegative, ridge):
    rng = np.random.default_rng(0)
    problem, x = reference.problem(
        rng, signal, size, n_filters=3, channels=2, boundary=boundary, penalty=0.05, nonnegative=nonnegative
    )
    codes = _ordered(rng, problem, problem.operator.n_codes // 4)
    together, left, clean = _descended(problem, x, codes, ridge, 0, 1e-9)
    alone, expected = _alone(problem, x, codes, clean, ridge, 6, reference)
    assert np.count_nonzero(alone) > len(codes) // 10
    np.testing.assert_allclose(together, alone, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(left, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_only_codes_that_meet_weights_of_one_are_bundled(reference, boundary):
    rng = np.random.default_rng(1)
    problem, x = reference.problem(rng, (20, 60), (4, 20), n_filters=3, boundary=boundary, penalty=0.05)
    weights = np.ones(x.shape)
    weights[:, :10, :30] = rng.uniform(0, 2, (10, 30))
    problem = dataclasses.replace(problem, weights=weights)
    codes = _ordered(rng, problem, 750)
    together, left, clean = _descended(problem, x, codes, 0.0, 0, 1e-9)
    alone, expected = _alone(problem, x, codes, clean, 0.0, 6, reference)
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
    values, left, _ = _descended(problem, x, codes, 0.0, 6, target)
    expected = x - problem.operator.synthesise_exactly(codes, values)
    np.testing.assert_allclose(left, expected, atol=3e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_shifted_filters(dtype):
    rng = np.random.default_rng(3)
    filters = rng.standard_normal((3, 2, 4, 20)).astype(dtype)
    problem = Problem(filters=filters, geometry=Geometry((9, 70), (4, 20), 2, "same"), penalty=np.full((3, 1), 0.01))
    x = rng.standard_normal((2, 9, 70)).astype(dtype)
    _descended(problem, x, _ordered(rng, problem, problem.operator.n_codes // 3), 0.0, 0, 1e-9)
    bundles = problem.operator.bundles
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
