"""Tests of descent on correlations that are followed, against certificates in float64 and conditions of optimality."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.kernels import correlation
from pointillist.problem import Geometry, Problem, broadcast_penalty, certificate
from pointillist.sampling import Sample
from pointillist.solvers import CoordinateDescent, one_dimensional
from pointillist.solvers.one_dimensional import (
    Tuning,
    as_products,
    can_follow,
    inner_products,
    make_bank,
    solve_following,
)

BOUNDARIES = ["valid", "same", "full"]


def recording(seed, channels=1, taps=16, samples=300, dtype=np.float64, n_filters=4, count=2):
    """Filters of unit norm, and signals with many events, so that codes overlap."""
    rng = np.random.default_rng(seed)
    filters = rng.standard_normal((n_filters, channels, taps))
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    signals = 0.1 * rng.standard_normal((count, channels, samples))
    for signal in signals:
        for _ in range(samples // 6):
            at = rng.integers(samples - taps + 1)
            signal[:, at : at + taps] += rng.normal(0, 3) * filters[rng.integers(n_filters)]
    return signals.astype(dtype), filters.astype(dtype)


def problem_of(signals, filters, boundary="same", penalty=0.5, **others):
    geometry = Geometry(signals.shape[2:], filters.shape[2:], filters.shape[1], boundary)
    return Problem(
        filters=filters, geometry=geometry, penalty=broadcast_penalty(penalty, len(filters), geometry), **others
    )


def followed(problem, signals, *, start=None, n_jobs=1, **settings):
    return solve_following(problem, CoordinateDescent(**settings), list(signals), start, n_jobs)


def exact(problem, signals, result):
    pairs = zip(signals, result.codes.indices, result.codes.values, strict=True)
    return [certificate(problem, i, *one) for i, one in enumerate(pairs)]


def some_weights(kind, shape):
    rng = np.random.default_rng(9)
    weights = np.ones(shape)
    weights[..., 60:63] = 0 if kind == "mask" else rng.uniform(0.5, 2, (*shape[:-1], 3))
    weights[:, : shape[1] // 2, 100:104] = 0.3
    return weights


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("weights", [None, "mask", "uneven"])
@pytest.mark.parametrize("channels", [1, 3])
def test_answers_are_optimal(boundary, nonnegative, weights, channels):
    signals, filters = recording(0, channels)
    own = None if weights is None else some_weights(weights, signals.shape)
    penalty = 0.4 if nonnegative else np.array([0.2, 0.5, 0.4, 1.0])
    problem = problem_of(signals, filters, boundary, penalty, weights=own, nonnegative=nonnegative)
    assert can_follow(problem)
    result, is_crowded = followed(problem, signals, tol=1e-10)
    assert not is_crowded
    assert np.all(result.gap <= 1e-10)
    truth = exact(problem, signals, result)
    assert result.objective == pytest.approx([one.objective for one in truth], rel=1e-12)
    assert max(one.gap for one in truth) <= 1e-8
    for left, one in zip(result.residuals, truth, strict=True):
        np.testing.assert_allclose(left, one.residual, atol=1e-10)
    assert result.codes.nnz > 20
    assert not nonnegative or min(float(values.min()) for values in result.codes.values) > 0


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_bounds_hold_in_single_precision(boundary, tol):
    for seed in range(4):
        signals, filters = recording(seed, dtype=np.float32)
        best, _ = followed(
            problem_of(signals.astype(float), filters.astype(float), boundary), signals.astype(float), tol=1e-11
        )
        problem = problem_of(signals, filters, boundary)
        result, _ = followed(problem, signals, tol=tol)
        assert np.all(result.gap <= tol)
        assert np.all(result.objective * (1 - result.gap) <= best.objective * (1 + 1e-9))
        assert np.all(result.objective >= best.objective * (1 - 1e-9))
        assert result.codes.dtype == np.float32
        assert result.objective == pytest.approx([one.objective for one in exact(problem, signals, result)], rel=1e-9)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_long_filters_are_transformed_first(monkeypatch, boundary):
    signals, filters = recording(1, 2, taps=260, samples=900, n_filters=3)
    problem = problem_of(signals, filters, boundary, 1.0)
    result, _ = followed(problem, signals, tol=1e-9)
    monkeypatch.setattr(one_dimensional, "TUNING", Tuning(transformed=10**6))
    directly, _ = followed(problem, signals, tol=1e-9)
    assert np.all(result.gap <= 1e-9)
    assert result.objective == pytest.approx(directly.objective, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("taps", [1, 16, 70])
def test_products_of_patterns_and_shapes_are_correlated_as_any_filters(monkeypatch, dtype, taps):
    signals, filters = recording(5, 3, taps, dtype=dtype)
    rng = np.random.default_rng(1)
    filters = (rng.standard_normal((4, 3, 1)) * filters[:, :1]).astype(dtype)
    problem, tol = problem_of(signals, filters, "full", 0.7), 1e-4 if dtype == np.float32 else 1e-10
    assert as_products(filters, float(np.finfo(dtype).eps)) is not None
    result, _ = followed(problem, signals, tol=tol)
    assert np.all(result.gap <= tol)
    assert result.objective == pytest.approx([one.objective for one in exact(problem, signals, result)], rel=1e-7)
    monkeypatch.setattr(one_dimensional, "TUNING", Tuning(rounded=0))
    others, _ = followed(problem, signals, tol=tol)
    assert result.objective == pytest.approx(others.objective, rel=tol)


def test_filters_of_rank_two_are_no_products():
    filters = np.random.default_rng(0).standard_normal((3, 4, 9))
    assert as_products(filters, 1e-16) is None
    assert as_products(filters[:, :1], 1e-16) is None


@pytest.mark.parametrize("hopeful", [0.0, 1e9])
def test_parts_and_projections_lead_to_one_optimum(monkeypatch, hopeful):
    signals, filters = recording(2, 2)
    problem = problem_of(signals, filters, weights=some_weights("uneven", signals.shape))
    monkeypatch.setattr(one_dimensional, "TUNING", Tuning(hopeful=hopeful, part=50))
    result, _ = followed(problem, signals, tol=1e-11)
    assert np.all(result.gap <= 1e-11)
    assert max(one.gap for one in exact(problem, signals, result)) <= 1e-9


def test_threads_and_batches_change_no_bit(monkeypatch):
    signals, filters = recording(3, count=9)
    problem = problem_of(signals, filters)
    one, _ = followed(problem, signals)
    monkeypatch.setattr(one_dimensional, "TUNING", Tuning(batch=1200))
    many, _ = followed(problem, signals, n_jobs=3)
    for i in range(9):
        np.testing.assert_array_equal(one.codes.indices[i], many.codes.indices[i])
        np.testing.assert_array_equal(one.codes.values[i], many.codes.values[i])
        np.testing.assert_array_equal(one.residuals[i], many.residuals[i])
        assert np.all(np.diff(one.codes.indices[i]) > 0)
    assert one.gap.tolist() == many.gap.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_to_start_from_are_used(dtype):
    """Those that are too large violate nothing, and shrink all the same."""
    signals, filters = recording(4, 2, dtype=dtype)
    problem = problem_of(signals, filters)
    first, _ = followed(problem, signals, tol=1e-5)
    again, _ = followed(problem, signals, tol=1e-4, start=first.codes)
    assert again.iterations.tolist() == [0, 0]
    codes = first.codes
    larger = pt.SparseCodes(codes.indices, [dtype(1.2) * one for one in codes.values], codes.grids, codes.n_filters)
    again, _ = followed(problem, signals, tol=1e-5, start=larger)
    assert np.all(again.gap <= 1e-5)


def test_codes_that_crowd_are_solved_for_by_the_residual():
    rng = np.random.default_rng(5)
    filters = rng.standard_normal((6, 12)) / 4
    signals = np.stack([rng.standard_normal(3000), np.zeros(3000)])  # noise takes codes everywhere
    problem = problem_of(signals[:, None], filters[:, None], penalty=0.02)
    unfinished, is_crowded = followed(problem, signals[:, None], tol=1e-6)
    assert is_crowded
    result = pt.encode(signals, filters, 0.02, tol=1e-6)
    assert np.all(result.gap <= 1e-6)
    assert result.objective[0] < unfinished.objective[0]
    assert result.codes.indices[1].size == 0


def test_a_ridge_is_added_for_a_number_of_rounds():
    signals, filters = recording(6)
    problem = problem_of(signals, filters)
    result, _ = followed(problem, signals, ridge=0.5, max_iter=60, tol=0.0, cells=(1,), inner=1e-4)
    assert result.iterations.tolist() == [60, 60]
    for i, residual in enumerate(result.residuals):
        indices, values = result.codes.indices[i], result.codes.values[i]
        slopes = problem.operator.correlate(residual).ravel()
        np.testing.assert_allclose(
            slopes[indices] - 0.5 * values, 0.5 * np.sign(values), atol=0.04
        )  # small ones were dropped
        assert np.min(np.abs(values)) >= 0.07 * 0.5
    few, _ = followed(problem, signals, ridge=0.5, max_iter=2, max_sweeps=3, extra=0, tol=0.0)
    assert few.iterations.tolist() == [2, 2]


@pytest.mark.parametrize("nothing", ["signal", "filter"])
def test_what_is_zero_takes_no_codes(nothing):
    signals, filters = recording(7)
    (signals if nothing == "signal" else filters)[0] = 0
    result, _ = followed(problem_of(signals, filters), signals)
    assert np.all(result.gap <= 1e-3)
    if nothing == "signal":
        assert (result.objective[0], result.gap[0], result.codes.indices[0].size) == (0, 0, 0)
    else:
        assert not any(np.any(indices < 300) for indices in result.codes.indices)


def test_only_what_is_worth_following_is():
    signals, filters = recording(8)
    assert can_follow(problem_of(signals, filters))
    assert not can_follow(problem_of(signals, filters, "circular"))
    assert not can_follow(problem_of(signals, filters, penalty=np.full((4, 300), 0.5)))
    assert not can_follow(problem_of(signals, filters, drawn=Sample(flat=np.arange(9))))
    assert not can_follow(problem_of(signals, filters, weights=np.where(np.arange(300) % 9, 1.0, 0.0)[None]))
    assert not can_follow(problem_of(np.zeros((1, 1, 2000)), np.tile(filters, (6, 1, 1))))
    assert can_follow(problem_of(np.zeros((1, 1, 100)), np.tile(filters, (6, 1, 1))))
    assert not can_follow(problem_of(np.zeros((1, 1, 30, 30)), np.ones((1, 1, 3, 3))))


def test_the_table_holds_all_inner_products():
    _, filters = recording(9, 2, taps=6)
    table = inner_products(filters)
    assert table.shape == (4, 11, 4)
    for k, m, shift in [(0, 0, 0), (0, 1, 3), (2, 1, -5), (1, 1, 5)]:
        moved, still = np.zeros((2, 2, 6 + abs(shift)))
        still[:, max(-shift, 0) : max(-shift, 0) + 6] = filters[k]
        moved[:, max(shift, 0) : max(shift, 0) + 6] = filters[m]
        assert table[k, shift + 5, m] == pytest.approx(np.sum(still * moved), abs=1e-14)


@pytest.mark.parametrize("samples", [20, 21, 22, 23])
def test_correlations_of_padded_signals(samples):
    signals, filters = recording(10, 3, taps=5, samples=samples)
    problem = problem_of(signals, filters, "valid", np.array([0.5, 1.0, 2.0, 0.1]))
    found = np.empty((2, samples + 4, 4))
    correlation.correlate(make_bank(problem), signals, found)
    for one, signal in zip(found, signals, strict=True):
        expected = problem.operator.correlate(signal) / problem.penalty
        np.testing.assert_allclose(one[4:-4].T, expected, atol=1e-12)
