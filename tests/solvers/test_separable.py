"""Tests of filters of rank one over channels: how they are told, and their scans against plain ones."""

import dataclasses

import numpy as np
import pytest

import pointillist as pt
from pointillist.sampling import Sample
from pointillist.solvers import separable
from pointillist.solvers.scanning import DescentState
from pointillist.solvers.separable import SeparableScan, as_products

SHAPES = [((250,), (9,)), ((40,), (30,)), ((17, 14), (5, 4)), ((7, 8, 6), (3, 2, 4))]


def rank_one(rng, n_filters, channels, size, dtype=np.float64):
    patterns, shapes = rng.standard_normal((n_filters, channels)), rng.standard_normal((n_filters, *size))
    return np.einsum("kp,k...->kp...", patterns, shapes).astype(dtype)


def scanned(state, residual):
    best = np.full(state.problem.geometry.n_positions, 7.0, residual.dtype)
    winner = np.zeros(len(best), np.int32)
    state.scan(residual, best, winner, map)
    return best, winner


def without(monkeypatch):
    """A context in which no problem is scanned by mixed channels."""
    patch = monkeypatch.context()
    return patch, lambda context: context.setattr(SeparableScan, "of", classmethod(lambda cls, problem: None))


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
@pytest.mark.parametrize(("signal", "size"), SHAPES)
@pytest.mark.parametrize("kind", ["plain", "nonnegative", "local", "sample"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_scans_find_the_same(reference, monkeypatch, boundary, signal, size, kind, dtype):
    rng = np.random.default_rng(0)
    problem, x = reference.problem(
        rng, signal, size, n_filters=11, channels=3, boundary=boundary, nonnegative=kind == "nonnegative", dtype=dtype
    )
    problem = dataclasses.replace(problem, filters=rank_one(rng, 11, 3, size, dtype))
    if kind == "local":
        problem = dataclasses.replace(problem, penalty=rng.uniform(0.1, 1, (11, problem.geometry.n_positions)))
    if kind == "sample":
        chosen = np.flatnonzero(rng.random(11 * problem.geometry.n_positions) < 0.6)
        problem = dataclasses.replace(problem, drawn=Sample(flat=chosen))
    residual = problem.geometry.spread(x)
    monkeypatch.setattr(separable, "_WORTH", np.inf)
    state = DescentState(problem)
    assert state.separable is not None
    found, rounding = scanned(state, residual), state.rounding(problem.geometry, residual)
    patch, switch_off = without(monkeypatch)
    with patch as context:
        switch_off(context)
        plain = DescentState(problem)
        assert plain.separable is None
        expected, bound = scanned(plain, residual), plain.rounding(problem.geometry, residual)
    # Both are within their bounds of what the correlations are.
    np.testing.assert_allclose(found[0], expected[0], atol=rounding + bound)
    if dtype == np.float64:
        np.testing.assert_array_equal(found[1], expected[1])
    exact = np.abs(problem.exact_operator.correlate_padded(residual.astype(np.float64)))
    if kind == "plain":
        ratios = np.max(exact.reshape(11, -1) / problem.penalty, axis=0)
        assert np.max(np.abs(found[0] - ratios)) <= rounding


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filters_of_rank_one_are_told(dtype):
    rng = np.random.default_rng(1)
    filters = rank_one(rng, 6, 8, (5, 4), dtype)
    found = as_products(filters)
    products = np.einsum("kp,k...->kp...", found.patterns, found.shapes)
    np.testing.assert_allclose(products, filters, atol=8 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.linalg.norm(found.patterns, axis=1), 1, rtol=1e-14)
    lost = np.linalg.norm((filters - products).reshape(6, -1), axis=1)
    np.testing.assert_allclose(found.lost, lost, atol=1e-14)
    filters[5, 2] *= 1 + 1000 * np.finfo(dtype).eps  # the same shape: still of rank one
    assert as_products(filters) is not None
    filters[5, 2, 1] *= 1 + 1000 * np.finfo(dtype).eps
    assert as_products(filters) is None
    filters[5] = 0
    assert as_products(filters) is None
    assert as_products(rng.standard_normal((3, 1, 9))) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
def test_the_same_codes_as_by_plain_scans(monkeypatch, boundary, nonnegative, weighted):
    rng = np.random.default_rng(2)
    filters = rank_one(rng, 4, 4, (16,))
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    signals = rng.standard_normal((2, 4, 200))
    weights = rng.uniform(0.5, 2, signals.shape) if weighted else None
    options = {"channels": True, "boundary": boundary, "nonnegative": nonnegative, "weights": weights, "tol": 1e-11}
    assert SeparableScan.of(_problem_of(monkeypatch, signals, filters, options)) is not None
    here = pt.encode(signals, filters, 0.5, **options)
    patch, switch_off = without(monkeypatch)
    with patch as context:
        switch_off(context)
        there = pt.encode(signals, filters, 0.5, **options)
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    np.testing.assert_allclose(here.codes.to_dense(), there.codes.to_dense(), atol=1e-5)


def _problem_of(monkeypatch, signals, filters, options):
    seen = []
    with monkeypatch.context() as context:
        prepare = pt.solvers.CoordinateDescent.prepare
        context.setattr(pt.solvers.CoordinateDescent, "prepare", lambda self, p: seen.append(p) or prepare(self, p))
        pt.encode(signals, filters, 5.0, **options)
    return seen[0]
