"""Tests of descent on the inner products of codes: the same answers as by the residual, chosen by counts."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.problem import Geometry
from pointillist.solvers import products


def problem(seed, channels=2, taps=20, samples=200, n_filters=3):
    rng = np.random.default_rng(seed)
    filters = rng.standard_normal((n_filters, channels, taps))
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    return rng.standard_normal((2, channels, samples)), filters


def test_the_table_holds_all_inner_products():
    _, filters = problem(0, taps=6)
    table = products.overlap_table(filters)
    for k, m, shift in [(0, 0, 0), (0, 1, 3), (2, 1, -5), (1, 1, 5)]:
        moved = np.zeros((2, 6 + abs(shift)))
        still = np.zeros_like(moved)
        still[:, max(-shift, 0) : max(-shift, 0) + 6] = filters[k]
        moved[:, max(shift, 0) : max(shift, 0) + 6] = filters[m]
        assert table[k, m, shift + 5] == pytest.approx(np.sum(still * moved), abs=1e-14)


def test_neighbours_overlap():
    positions = np.array([0, 0, 4, 5, 9, 30])
    first, last = products.neighbours(positions, 5)
    for i, place in enumerate(positions):
        near = np.flatnonzero(np.abs(positions - place) < 5)
        assert (first[i], last[i]) == (near[0], near[-1] + 1)


@pytest.mark.parametrize("boundary", ["same", "valid", "full"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_same_answers_as_by_the_residual(monkeypatch, boundary, weighted, nonnegative):
    signals, filters = problem(1)
    rng = np.random.default_rng(2)
    weights = np.where(rng.random(signals.shape) < 0.1, 0, rng.uniform(0.5, 2, signals.shape)) if weighted else None
    options = {"channels": True, "boundary": boundary, "nonnegative": nonnegative, "weights": weights, "tol": 1e-10}
    used = []
    descend = products.descend
    monkeypatch.setattr(products, "descend", lambda *args, **more: used.append(1) or descend(*args, **more))
    here = pt.encode(signals, filters, 0.7, **options)
    assert used
    monkeypatch.setattr(products, "are_worth", lambda *args: False)
    there = pt.encode(signals, filters, 0.7, **options)
    assert here.objective == pytest.approx(there.objective, rel=2e-10)
    np.testing.assert_allclose(here.codes.to_dense(), there.codes.to_dense(), atol=1e-5)
    assert np.all(here.gap <= 1e-10)


def test_with_a_ridge_too(monkeypatch):
    signals, filters = problem(3)
    solver = pt.solvers.CoordinateDescent(ridge=0.5, max_iter=4, max_sweeps=30, extra=0, tol=0.0)
    with pytest.warns(match="stopped"):
        here = pt.encode(signals, filters, 0.7, channels=True, solver=solver)
    monkeypatch.setattr(products, "are_worth", lambda *args: False)
    with pytest.warns(match="stopped"):
        there = pt.encode(signals, filters, 0.7, channels=True, solver=solver)
    np.testing.assert_allclose(here.codes.to_dense(), there.codes.to_dense(), atol=1e-3)


def test_counts_decide():
    line = Geometry((1000,), (50,), 1, "same")
    assert products.are_worth(line, 10, np.arange(0, 1000, 5))
    assert not products.are_worth(line, 10, np.repeat(np.arange(1000), 2))
    assert not products.are_worth(line, 10**4, np.arange(0, 1000, 5))
    assert not products.are_worth(line, 10, np.empty(0, int))
    assert not products.are_worth(Geometry((1000,), (50,), 1, "circular"), 10, np.arange(0, 1000, 5))
    assert not products.are_worth(Geometry((30, 30), (5, 5), 1, "same"), 10, np.arange(0, 900, 50))
    assert products.product_bytes(line, 200, 4) == 4 * 25 * 200
    assert products.product_bytes(Geometry((30, 30), (5, 5), 1, "same"), 200, 4) == 0
