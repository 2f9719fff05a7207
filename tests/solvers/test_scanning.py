"""Tests of the scans: what was drawn together is scanned as the same codes one by one."""

import dataclasses

import numpy as np
import pytest

from pointillist.model.boundaries import BOUNDARIES
from pointillist.model.sampling import KINDS, Draws, Sample, draw_sample
from pointillist.solvers import CoordinateDescent
from pointillist.solvers.scanning import DescentState

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
