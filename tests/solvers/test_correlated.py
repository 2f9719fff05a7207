"""Tests of descent on correlations that are kept up to date, against descent on the residual."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.codes import SparseCodes
from pointillist.kernels import correlated as kernels
from pointillist.problem import Geometry, Problem, broadcast_penalty
from pointillist.sampling import Sample
from pointillist.solvers import correlated
from pointillist.solvers.correlated import Aim, can_follow, follow, remainder
from pointillist.solvers.separable import SeparableScan


def recording(seed, channels=4, taps=16, samples=300, dtype=np.float64, n_filters=4):
    """Rank-one filters of unit norm and two signals with many events, so that codes overlap."""
    rng = np.random.default_rng(seed)
    filters = np.einsum(
        "kp,kt->kpt", rng.standard_normal((n_filters, channels)), rng.standard_normal((n_filters, taps))
    )
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    signals = 0.1 * rng.standard_normal((2, channels, samples))
    for signal in signals:
        for _ in range(samples // 6):
            at = rng.integers(samples - taps + 1)
            signal[:, at : at + taps] += rng.normal(0, 3) * filters[rng.integers(n_filters)]
    return signals.astype(dtype), filters.astype(dtype)


def problem_of(signals, filters, boundary="same", **others):
    geometry = Geometry(signals.shape[2:], filters.shape[2:], filters.shape[1], boundary)
    return Problem(filters=filters, geometry=geometry, penalty=broadcast_penalty(0.5, len(filters), geometry), **others)


def by_the_residual(monkeypatch, *args, **options):
    with monkeypatch.context() as patch:
        patch.setattr(correlated, "can_follow", lambda problem: False)
        return pt.encode(*args, **options)


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("penalty", [0.3, np.array([0.2, 0.5, 0.4, 1.0])])
def test_the_same_answers_as_by_the_residual(monkeypatch, boundary, nonnegative, penalty):
    signals, filters = recording(0)
    options = {"channels": True, "boundary": boundary, "nonnegative": nonnegative, "tol": 1e-11}
    used, follow = [], correlated.follow
    monkeypatch.setattr(correlated, "follow", lambda *args: used.append(1) or follow(*args))
    monkeypatch.setattr(correlated, "_MOST_PRODUCTS", 400)
    here = pt.encode(signals, filters, penalty, **options)
    assert used
    used.clear()
    there = by_the_residual(monkeypatch, signals, filters, penalty, **options)
    assert not used
    assert np.all(here.gap <= 1e-11)
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    np.testing.assert_allclose(here.codes.to_dense(), there.codes.to_dense(), atol=1e-5)
    for mine, others in zip(here.residuals, there.residuals, strict=True):
        np.testing.assert_allclose(mine, others, atol=1e-5)


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_channel_is_followed_too(monkeypatch, boundary, dtype):
    signals, filters = recording(10, channels=1, dtype=dtype)
    monkeypatch.setattr(correlated, "_CROWDED", 3.0)
    used, follow = [], correlated.follow
    monkeypatch.setattr(correlated, "follow", lambda *args: used.append(follow(*args)) or used[-1])
    tol = 1e-4 if dtype == np.float32 else 1e-10
    here = pt.encode(signals[:, 0], filters[:, 0], 0.4, boundary=boundary, tol=tol)
    assert used
    assert not any(found.crowded for found in used)
    used.clear()
    there = by_the_residual(monkeypatch, signals[:, 0], filters[:, 0], 0.4, boundary=boundary, tol=tol)
    assert not used
    assert np.all(here.gap <= tol)
    assert here.objective == pytest.approx(there.objective, rel=tol)
    if dtype == np.float64:
        np.testing.assert_allclose(here.codes.to_dense(), there.codes.to_dense(), atol=1e-4)


@pytest.mark.parametrize("channels", [1, 4])
def test_too_many_codes_are_given_up_to_the_residual(monkeypatch, channels):
    rng = np.random.default_rng(11)
    _, filters = recording(11, channels=channels, taps=24)
    signals = rng.standard_normal((1, channels, 400))  # noise, which takes codes everywhere
    monkeypatch.setattr(correlated, "_MOST_NEIGHBOURS", 8)
    used, follow = [], correlated.follow
    monkeypatch.setattr(correlated, "follow", lambda *args: used.append(follow(*args)) or used[-1])
    here = pt.encode(signals, filters, 0.02, channels=True, tol=1e-9)
    assert [found.crowded for found in used] == [True]
    assert np.all(used[0].values != 0)
    there = by_the_residual(monkeypatch, signals, filters, 0.02, channels=True, tol=1e-9)
    assert np.all(here.gap <= 1e-9)
    assert here.objective == pytest.approx(there.objective, rel=1e-8)


def test_single_precision_bounds_hold(monkeypatch):
    for seed in range(6):
        signals, filters = recording(seed, dtype=np.float32)
        best = by_the_residual(monkeypatch, signals.astype(float), filters.astype(float), 0.4, channels=True, tol=1e-11)
        for tol in (1e-2, 1e-4):
            found = pt.encode(signals, filters, 0.4, channels=True, tol=tol)
            assert np.all(found.gap <= tol)
            assert np.all(found.objective * (1 - found.gap) <= best.objective * (1 + 1e-9))
            assert np.all(found.objective >= best.objective * (1 - 1e-6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_that_are_too_large_shrink(dtype):
    """They violate nothing, so nobody looked at them, and the gap stayed."""
    for seed in range(10):
        signals, filters = recording(seed, channels=6, taps=24, samples=90, dtype=dtype, n_filters=2)
        penalty = 0.3 * pt.max_penalty(signals, filters, channels=True)
        best = pt.encode(signals, filters, penalty, channels=True, tol=1e-5)
        values = [dtype(1.2) * one for one in best.codes.values]
        larger = SparseCodes(best.codes.indices, values, best.codes.grids, best.codes.n_filters)
        again = pt.encode(signals, filters, penalty, channels=True, tol=1e-5, start=larger)
        assert np.all(best.gap <= 1e-5)
        assert np.all(again.gap <= 1e-5)


def test_codes_to_start_from_are_used():
    signals, filters = recording(3)
    first = pt.encode(signals, filters, 0.3, channels=True, tol=1e-10)
    again = pt.encode(signals, filters, 0.3, channels=True, tol=1e-6, start=first.codes)
    assert np.all(again.iterations == 0)
    near = pt.encode(signals, filters, 0.29, channels=True, tol=1e-10, start=first.codes)
    fresh = pt.encode(signals, filters, 0.29, channels=True, tol=1e-10)
    assert near.objective == pytest.approx(fresh.objective, rel=1e-9)


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
def test_what_is_left_is_the_signal_less_the_fit(boundary):
    signals, filters = recording(4, dtype=np.float32)
    problem = problem_of(signals, filters, boundary)
    codes, values = np.array([3, 400, 700]), np.array([1.5, -0.5, 2.0], np.float32)
    left = remainder(problem, signals[0], codes, values)
    exact = signals[0] - problem.exact_operator.synthesise(codes, values.astype(float))
    np.testing.assert_allclose(left.exact, exact, atol=1e-12)
    np.testing.assert_array_equal(left.rounded, left.exact.astype(np.float32))
    assert left.loss == pytest.approx(0.5 * np.sum(exact**2), rel=1e-12)
    assert left.energy == pytest.approx(np.sum(exact * signals[0]), rel=1e-12)
    around = np.pad(np.sum(exact**2, axis=0), 20)
    windows = np.lib.stride_tricks.sliding_window_view(around, 16)
    assert left.largest == pytest.approx(np.sqrt(np.max(windows.sum(axis=1))), rel=1e-9)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("cell", [1, 3, 100])
def test_violators_are_the_best_of_their_cells(nonnegative, cell):
    rng = np.random.default_rng(5)
    correlations, penalties = rng.standard_normal((3, 230)), np.array([0.5, 1.0, 2.0])
    correlations[:, 64:128] *= 0.1
    chosen, largest = kernels.violators(correlations, penalties, nonnegative, cell, 1.4)
    ratios = (correlations if nonnegative else np.abs(correlations)) / penalties[:, None]
    expected = []
    for first in range(0, 230, cell):
        here = ratios[:, first : first + cell]
        k, t = np.unravel_index(np.argmax(here), here.shape)
        if here[k, t] > 1.4:
            expected.append(k * 230 + first + t)
    assert chosen.tolist() == expected
    assert largest == np.max(ratios)
    assert kernels.violators(correlations, penalties, nonnegative, cell, 100.0)[1] == 100.0


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
def test_correlations_are_brought_up_to_date(boundary):
    signals, filters = recording(6, samples=60)
    problem = problem_of(signals, filters, boundary)
    length = problem.geometry.n_positions
    correlations = problem.operator.correlate(signals[0]).reshape(4, -1)
    positions = np.array([0, 2, 3, 20, 21, 25, length - 6, length - 2, length - 1])
    owners = np.arange(len(positions)) % 4
    codes = owners * length + positions
    values, penalties = np.zeros(len(codes)), np.full(4, 1e-3)
    overlaps = SeparableScan.of(problem).overlaps
    kernels.descend_chunks(correlations, overlaps, owners, positions, values, penalties, False, 1e-9, 6, 50, 9)
    assert np.count_nonzero(values) > 6
    left = signals[0] - problem.operator.synthesise(codes, values)
    np.testing.assert_allclose(correlations, problem.operator.correlate(left).reshape(4, -1), atol=1e-12)


@pytest.mark.parametrize("boundary", ["valid", "same", "full"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_followed_is_off_by_no_more_than_is_said(boundary, dtype):
    """Far more than one descent is made, so that what rounding does to the correlations adds up."""
    signals, filters = recording(8, dtype=dtype)
    problem = problem_of(signals, filters, boundary, nonnegative=boundary == "same")
    separable, exact = SeparableScan.of(problem), problem.exact_operator
    correlations = exact.correlate(signals[0].astype(float)).reshape(4, -1)
    aim = Aim(violation=1e-9, smallest=4 * np.finfo(dtype).eps, cells=(3, 2, 1), extra=6, max_sweeps=20)
    codes, values = np.empty(0, np.int64), np.empty(0, dtype)
    for _ in range(3):
        found = follow(separable, correlations, codes, values, 0.5 * np.sum(signals[0].astype(float) ** 2), aim)
        codes, values = found.codes, found.values
        left = signals[0] - exact.synthesise(codes, values.astype(float))
        size = exact.correlate(left)
        ratio = np.max(size if problem.nonnegative else np.abs(size)) / 0.5
        assert abs(found.ratio - ratio) <= found.rounding
        assert found.rounding <= 1e3 * np.finfo(dtype).eps + 1e-6
        values = (dtype(0.7) * values).astype(dtype)
        correlations = exact.correlate(signals[0] - exact.synthesise(codes, values.astype(float))).reshape(4, -1)
    positions = codes % problem.geometry.n_positions
    assert len(codes) > 20
    assert np.all(np.diff(positions * 4 + codes // problem.geometry.n_positions) > 0)


def test_a_loose_tolerance_takes_one_scan_and_a_tight_one_more(monkeypatch):
    signals, filters = recording(9, dtype=np.float32)
    scans, correlations = [], SeparableScan.correlations
    monkeypatch.setattr(SeparableScan, "correlations", lambda *args: scans.append(1) or correlations(*args))
    loose = pt.encode(signals[:1], filters, 0.4, channels=True, tol=1e-2)
    assert (len(scans), loose.iterations.tolist(), loose.status) == (1, [1], pt.Status.CONVERGED)
    scans.clear()
    tight = pt.encode(signals[:1], filters, 0.4, channels=True, tol=1e-5)
    assert len(scans) > 1
    assert loose.objective[0] * (1 - loose.gap[0]) <= tight.objective[0] <= loose.objective[0]


def test_only_what_can_be_followed_is():
    signals, filters = recording(7)
    assert can_follow(problem_of(signals, filters))
    assert not can_follow(problem_of(signals, filters, "circular"))
    assert not can_follow(problem_of(signals, filters, weights=np.ones(signals.shape[1:])))
    assert not can_follow(problem_of(signals, filters, drawn=Sample(flat=np.arange(9))))
    assert not can_follow(problem_of(signals, np.tile(filters, (3, 1, 1))))
    alone, few = signals[:, :1], np.tile(filters[:, :1], (2, 1, 1))
    assert can_follow(problem_of(alone, few[:6]))
    assert not can_follow(problem_of(alone, few[:7]))
