"""Tests of the scans: what was drawn together is scanned as the same codes one by one."""

import dataclasses

import numpy as np
import pytest

from pointillist.problem import ConvolutionOperator, Geometry, certificate
from pointillist.sampling import KINDS, Draws, Sample, draw_sample
from pointillist.solvers import CoordinateDescent, scanning
from pointillist.solvers.scanning import DescentState, box_sums
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
    monkeypatch.setattr(scanning, "is_worth_transforms", lambda problem: True)
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
        scanned_alone = DescentState(problem).scan(problem.geometry.spread(x), found, other, map, positions)
        assert scanned_alone is positions
        np.testing.assert_allclose(found[positions], expected[positions], rtol=1e-12)
        seen = positions[found[positions] > 0]
        np.testing.assert_array_equal(other[seen], winner[seen])
        assert np.all(np.delete(found, positions) == -1)


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
@pytest.mark.parametrize("size", [(3, 2), (4, 5), (1, 7)])
def test_box_sums_are_correlations_with_ones(boundary, size):
    geometry = Geometry((6, 9), size, 2, boundary)
    signal = np.random.default_rng(0).random((2, 6, 9))
    expected = ConvolutionOperator(np.ones((1, 2, *size)), geometry).correlate(signal)[0]
    np.testing.assert_allclose(box_sums(geometry, geometry.spread(signal)), expected, atol=1e-12)


NEAR_SHAPES = [((90,), (7,)), ((21, 37), (4, 5)), ((70, 80), (3, 3)), ((5, 9, 20), (2, 3, 4))]


def near_one(reference, signal, size, **more):
    """A problem and a signal whose largest ratio is 1.15, with all its ratios."""
    problem, x = reference.problem(
        np.random.default_rng(4), signal, size, n_filters=11, channels=2, penalty=1.0, **more
    )
    correlations = problem.exact_operator.correlate(x).reshape(problem.n_filters, -1)
    sizes = correlations if problem.nonnegative else np.abs(correlations)
    x = (x / np.max(sizes) * 1.15).astype(x.dtype)
    return problem, x, sizes / np.max(sizes) * 1.15


def listed(problem, x, violation, mapper=map):
    """Near violators of a signal, with the ratios and winners of all positions."""
    n_positions = problem.geometry.n_positions
    best, winner = np.full(n_positions, 7, x.dtype), np.zeros(n_positions, np.int32)
    state = DescentState(problem)
    return state.scan_for_near(problem.geometry.spread(x), violation, best, winner, mapper), best, winner


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("signal", "size"), NEAR_SHAPES)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_scan_lists_all_codes_above_its_floor(reference, signal, size, boundary, nonnegative):
    problem, x, ratios = near_one(reference, signal, size, boundary=boundary, nonnegative=nonnegative)
    near, best, winner = listed(problem, x, 0.3)
    again, *_ = listed(problem, x, 0.3, lambda work, items: [work(item) for item in list(items)[::-1]][::-1])
    np.testing.assert_array_equal(np.sort(np.concatenate(near.pieces)), np.flatnonzero(ratios > 0.79))
    np.testing.assert_array_equal(np.concatenate(near.pieces), np.concatenate(again.pieces))
    np.testing.assert_allclose(best, np.maximum(np.max(ratios, axis=0), 0), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(winner[best > 0], np.argmax(ratios, axis=0)[best > 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_violators_are_found_among_the_listed_codes(reference, dtype):
    problem, x, ratios = near_one(reference, (70, 80), (3, 3), dtype=dtype)
    near, _, _ = listed(problem, x, 0.3)
    largest, worst = near.look(problem.geometry.spread(x)), np.max(ratios, axis=0)
    assert largest == pytest.approx(1.15, rel=1e-5)
    np.testing.assert_allclose(near.best[worst > 1], worst[worst > 1], rtol=1e-5)
    np.testing.assert_array_equal(near.winner[worst > 1], np.argmax(ratios, axis=0)[worst > 1])
    np.testing.assert_array_equal(np.sort(near.above(1.0)), np.flatnonzero(ratios > 1))


def test_too_many_codes_are_not_listed(reference, monkeypatch):
    problem, x, _ = near_one(reference, (70, 80), (3, 3))
    monkeypatch.setattr(scanning, "TUNING", dataclasses.replace(scanning.TUNING, near_a_position=0))
    assert listed(problem, x, 0.3)[0] is None


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", ["number", "position"])
def test_what_is_certified_with_near_violators_is_true(reference, monkeypatch, boundary, weights, dtype, penalty):
    monkeypatch.setattr(scanning, "TUNING", dataclasses.replace(scanning.TUNING, near_products=0))
    rng = np.random.default_rng(5)
    problem, x = reference.problem(
        rng, (50, 60), (5, 5), n_filters=10, penalty=0.3, boundary=boundary, weights=weights, dtype=dtype
    )
    if penalty == "position":
        problem = dataclasses.replace(problem, penalty=0.2 + 0.2 * rng.random((10, problem.geometry.n_positions)))
    tight, solver = CoordinateDescent(tol=1e-6 if dtype == np.float64 else 1e-5), CoordinateDescent(tol=1e-4)
    optimum = tight.solve(tight.prepare(problem), [x])
    found = solver.solve(solver.prepare(problem), [x])
    assert found.gap[0] <= 1e-4
    assert found.objective[0] * (1 - found.gap[0]) <= optimum.objective[0]
    assert found.objective[0] <= optimum.objective[0] * (1 + 1e-4)


def test_a_solve_that_ends_early_has_the_gap_of_all_codes(reference, monkeypatch):
    monkeypatch.setattr(scanning, "TUNING", dataclasses.replace(scanning.TUNING, near_products=0))
    problem, x = reference.problem(np.random.default_rng(6), (50, 60), (5, 5), n_filters=10, penalty=0.3)
    for rounds in range(4, 16):
        solver = CoordinateDescent(tol=1e-13, max_iter=rounds)
        found = solver.solve(solver.prepare(problem), [x])
        exact = certificate(problem, 0, x, found.codes.indices[0], found.codes.values[0])
        assert found.gap[0] == pytest.approx(exact.gap, rel=1e-6)
