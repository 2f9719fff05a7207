"""Tests of the scans: what was drawn together is scanned as the same codes one by one."""

import dataclasses

import numpy as np
import pytest

from pointillist.problem import Geometry
from pointillist.sampling import KINDS, Draws, Sample, draw_sample
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.scanning import DescentState, clean_positions
from pointillist.validation import BOUNDARIES

TOGETHER = [kind for kind in KINDS if kind != "codes"]


def scanned(problem, residual, mapper=map):
    """Largest ratio and winning filter of every position."""
    n_positions = problem.geometry.n_positions
    best, winner = np.full(n_positions, 7, residual.dtype), np.zeros(n_positions, np.int32)
    DescentState(problem).scan(problem.geometry.spread(residual), best, winner, mapper)
    return best, winner


def drawn(reference, kind, seed, *, p=0.3, signal=(21, 40), size=(4, 5), n_filters=11, penalty="number", **more):
    """A problem with a sample, and the same with the flat sample."""
    rng = np.random.default_rng(seed)
    problem, x = reference.problem(rng, signal, size, n_filters=n_filters, **more)
    grid = problem.geometry.grid
    prices = {"number": (n_filters, 1), "position": (n_filters, problem.geometry.n_positions)}[penalty]
    price = 0.2 + rng.random(prices)
    sample = draw_sample(n_filters, grid, Draws(p, kind), seed, 0)
    block = dataclasses.replace(problem, drawn=sample, penalty=price)
    return block, dataclasses.replace(block, drawn=Sample(flat=sample.indices)), x


@pytest.mark.parametrize("kind", TOGETHER)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("penalty", ["number", "position"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_blocks_are_scanned_as_the_codes_in_them(kind, boundary, penalty, nonnegative, reference):
    for dtype, rtol in ((np.float32, 1e-4), (np.float64, 1e-12)):
        more = {"boundary": boundary, "penalty": penalty, "nonnegative": nonnegative, "dtype": dtype}
        block, flat, x = drawn(reference, kind, 1, **more)
        found, winner = scanned(block, x)
        expected, other = scanned(flat, x)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
        np.testing.assert_array_equal(winner[found > 0], other[found > 0])


@pytest.mark.parametrize("kind", TOGETHER)
@pytest.mark.parametrize(
    ("signal", "size"), [((200,), (9,)), ((3, 9, 20), (2, 3, 4)), ((50, 3), (5, 2)), ((130, 140), (3, 3))]
)
def test_every_dimension_is_scanned(kind, signal, size, reference):
    block, flat, x = drawn(reference, kind, 2, signal=signal, size=size, channels=2)
    np.testing.assert_allclose(scanned(block, x)[0], scanned(flat, x)[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(
        scanned(block, x)[0], scanned(block, x, lambda work, items: [work(item) for item in reversed(items)])[0]
    )


@pytest.mark.parametrize("kind", TOGETHER)
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_answers_are_certified_for_the_sampled_problem(kind, weights, nonnegative, reference):
    block, flat, x = drawn(
        reference, kind, 4, signal=(9, 17), size=(3, 3), n_filters=9, weights=weights, nonnegative=nonnegative
    )
    solver = CoordinateDescent(tol=1e-8, max_iter=3000)
    found, other = (solver.solve(solver.prepare(problem), [x]) for problem in (block, flat))
    assert found.status.value == "converged"
    assert np.all(np.isin(found.codes.indices[0], block.sample))
    assert found.objective[0] == pytest.approx(other.objective[0], rel=1e-7)
    matrix = reference.matrix(block.filters, block.geometry)[:, block.sample]
    best = reference.lasso(matrix, x, block.penalty_at(block.sample), weights=block.weights, nonnegative=nonnegative)
    assert found.objective[0] * (1 - found.gap[0]) <= best.objective * (1 + 1e-9)


def test_an_empty_draw_finds_nothing(reference):
    block, _, x = drawn(reference, "bundles", 0, p=1e-9)
    assert len(block.drawn) == 0
    assert not scanned(block, x)[0].any()


@pytest.mark.parametrize("kind", ["bundles", "positions"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_large_shares_are_scanned_by_transforms_where_these_are_worth_it(kind, boundary, reference, monkeypatch):
    block, _, x = drawn(reference, kind, 3, p=0.6, boundary=boundary)
    expected, winner = scanned(block, x)
    assert DescentState(block).transforms is None
    monkeypatch.setattr("pointillist.solvers.scanning.transforms_are_worth", lambda problem: True)
    assert DescentState(block).transforms is not None
    found, other = scanned(block, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(other[found > 0], winner[found > 0])


@pytest.mark.parametrize("penalty", ["number", "position"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_some_positions_are_scanned_as_all_are(penalty, nonnegative, reference):
    problem, _, x = drawn(reference, "codes", 5, penalty=penalty, nonnegative=nonnegative, n_filters=19)
    problem = dataclasses.replace(problem, drawn=None)
    expected, winner = scanned(problem, x)
    for positions in (np.arange(0, len(expected), 7), np.array([0, 1, 2, 500, 839])):
        found, other = np.full_like(expected, -1), np.full_like(winner, -1)
        DescentState(problem).scan_positions(problem.geometry.spread(x), positions, found, other, map)
        np.testing.assert_allclose(found[positions], expected[positions], rtol=1e-12)
        seen = positions[found[positions] > 0]
        np.testing.assert_array_equal(other[seen], winner[seen])
        assert np.all(np.delete(found, positions) == -1)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_rough_bounds_are_the_looser_ones(boundary, reference):
    block, _, x = drawn(reference, "bundles", 6, boundary=boundary)
    state, geometry, residual = DescentState(block), block.geometry, block.geometry.spread(x)
    assert state.rounding(geometry, residual, rough=True) >= state.rounding(geometry, residual)
    (rough,) = state.rises(geometry, residual, rough=True)
    assert rough >= np.max(state.rises(geometry, residual))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_the_gap_of_few_rounds_with_a_ridge_is_a_bound(kind, boundary, reference):
    block, _, x = drawn(reference, kind, 7, signal=(9, 17), size=(3, 3), n_filters=9, boundary=boundary)
    solver = CoordinateDescent(tol=0.0, max_iter=3, max_sweeps=2, extra=0, ridge=0.3)
    found = solver.solve(solver.prepare(block), [x])
    matrix = reference.matrix(block.filters, block.geometry)[:, block.sample]
    best = reference.lasso(matrix, x, block.penalty_at(block.sample))
    assert found.gap[0] > 0
    assert found.objective[0] * (1 - found.gap[0]) <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("signal", "size"), [((30,), (7,)), ((9, 12), (4, 3)), ((5, 6, 7), (2, 3, 4))])
def test_positions_are_clean_without_weights_as_with_ones(boundary, signal, size):
    geometry = Geometry(signal, size, 2, boundary)
    ones = geometry.spread(np.ones((2, *signal), np.float32))
    np.testing.assert_array_equal(clean_positions(geometry, None), clean_positions(geometry, ones))
