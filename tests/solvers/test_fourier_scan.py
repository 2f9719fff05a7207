"""Tests of scans by transforms, against scans by sums."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pointillist.problem import Geometry
from pointillist.sampling import Sample
from pointillist.solvers import CoordinateDescent, fourier_scan, scanning
from pointillist.solvers.scanning import DescentState

SHAPES = [((50,), (9,)), ((96,), (7,)), ((17, 14), (5, 4)), ((12, 15), (5, 11)), ((7, 8, 6), (3, 2, 4))]


def _scanned(state, residual, mapper=map):
    best = np.full(state.problem.geometry.n_positions, 7.0, residual.dtype)
    winner = np.zeros(len(best), np.int32)
    state.scan(residual, best, winner, mapper)
    return best, winner


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size"), SHAPES)
@pytest.mark.parametrize("kind", ["plain", "nonnegative", "local", "sample"])
@pytest.mark.parametrize("room", [1, 2**27])
def test_both_scans_find_the_same(reference, monkeypatch, boundary, signal, size, kind, room):
    rng = np.random.default_rng(0)
    problem, x = reference.problem(
        rng, signal, size, n_filters=11, channels=2, boundary=boundary, nonnegative=kind == "nonnegative"
    )
    if kind == "local":
        problem = dataclasses.replace(problem, penalty=rng.uniform(0.1, 1, (11, problem.geometry.n_positions)))
    if kind == "sample":
        problem = dataclasses.replace(
            problem, drawn=Sample(flat=np.flatnonzero(rng.random(11 * problem.geometry.n_positions) < 0.6))
        )
    residual = problem.geometry.spread(x)
    monkeypatch.setattr(scanning, "is_worth_transforms", lambda problem: False)
    expected = _scanned(DescentState(problem), residual)
    monkeypatch.setattr(scanning, "is_worth_transforms", lambda problem: True)
    monkeypatch.setattr(
        fourier_scan, "TUNING", dataclasses.replace(fourier_scan.TUNING, spectra_bytes=room)
    )  # for several blocks, or one
    found = _scanned(DescentState(problem), residual)
    with ThreadPoolExecutor(2) as pool:
        shared = _scanned(DescentState(problem), residual, pool.map)
    np.testing.assert_array_equal(shared, found)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("room", [1, 2**27])
def test_a_scan_rounds_as_little_as_it_says(reference, monkeypatch, boundary, room):
    problem, x = reference.problem(
        np.random.default_rng(2), (40, 30), (15, 11), n_filters=20, boundary=boundary, dtype=np.float32, penalty=0.2
    )
    monkeypatch.setattr(scanning, "is_worth_transforms", lambda problem: True)
    monkeypatch.setattr(fourier_scan, "TUNING", dataclasses.replace(fourier_scan.TUNING, spectra_bytes=room))
    state, residual = DescentState(problem), problem.geometry.spread(x)
    found, _ = _scanned(state, residual)
    exact = np.max(np.abs(problem.exact_operator.correlate(x)) / 0.2, axis=0).ravel()
    off, bound = np.max(np.abs(found - exact)), state.rounding(problem.geometry, residual)
    assert 0 < off < bound < 1e-4 * np.max(exact)


@pytest.mark.parametrize("boundary", ["same", "circular"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers_by_transforms_are_certified(reference, monkeypatch, boundary, dtype):
    monkeypatch.setattr(scanning, "is_worth_transforms", lambda problem: True)
    problem, x = reference.problem(
        np.random.default_rng(1), (12, 11), (5, 4), boundary=boundary, dtype=dtype, weights="uneven", penalty=0.2
    )
    matrix = reference.matrix(problem.filters, problem.geometry)
    expected = reference.lasso(matrix, x, 0.2, problem.weights)
    solver = CoordinateDescent(tol=1e-4 if dtype == np.float32 else 1e-9, max_iter=1000)
    result = solver.solve(solver.prepare(problem), [x])
    assert result.gap[0] <= solver.tol
    assert result.objective[0] * (1 - result.gap[0]) <= expected.objective * (1 + 1e-12)
    assert result.objective[0] >= expected.objective * (1 - 1e-9)


def test_spectra_of_large_signals_are_bounded():
    for n_filters in (10, 100, 1000):
        geometry = Geometry((4000, 4000), (71, 71), 1, "same")
        samples = np.prod(fourier_scan.shape_of_blocks(geometry, n_filters))
        assert samples >= (2 * 71) ** 2
        assert 8 * n_filters * samples < 3e8


def test_a_grid_of_few_positions_takes_one_code_at_a_time(reference, monkeypatch):
    problem, x = reference.problem(np.random.default_rng(3), (2, 2), (2, 2), n_filters=3, penalty=0.01)
    monkeypatch.setattr(scanning, "is_worth_transforms", lambda problem: True)
    solver = CoordinateDescent(tol=1e-6, max_iter=500)
    assert solver.solve(solver.prepare(problem), [x]).gap[0] <= 1e-6
