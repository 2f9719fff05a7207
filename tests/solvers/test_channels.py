"""Tests of coding in the span of the filters' channel patterns: the same answers, to rounding, for less work."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.problem import Geometry, Problem, broadcast_penalty, certificate
from pointillist.solvers import encoding
from pointillist.solvers.base import Status
from pointillist.solvers.channels import Projection, filter_span


def low_rank(rng, n_filters, rank, channels, size, dtype=np.float64):
    """Random filters of a rank over channels, of unit norm."""
    filters = np.einsum(
        "krp,kr...->kp...",
        rng.standard_normal((n_filters, rank, channels)),
        rng.standard_normal((n_filters, rank, *size)),
    )
    norms = np.linalg.norm(filters.reshape(n_filters, -1), axis=1)
    return (filters / norms.reshape(-1, *[1] * (filters.ndim - 1))).astype(dtype)


def sparse_signals(rng, filters, count, space, noise=0.1, dtype=np.float64):
    """A few spikes of the filters, and noise in all channels."""
    channels, size = filters.shape[1], filters.shape[2:]
    signals = noise * rng.standard_normal((count, channels, *space))
    for signal in signals:
        for _ in range(6):
            corner = [rng.integers(n - s + 1) for n, s in zip(space, size, strict=True)]
            window = tuple(slice(c, c + s) for c, s in zip(corner, size, strict=True))
            signal[(slice(None), *window)] += 3 * rng.standard_normal() * filters[rng.integers(len(filters))]
    return signals.astype(dtype)


def plain(monkeypatch, *args, **options):
    """Code without the projection."""
    with monkeypatch.context() as patch:
        patch.setattr("pointillist.solvers.encoding.in_span", lambda *problem: None)
        return pt.encode(*args, **options)


CASES = [
    pytest.param((5, 1, 40), (300,), (12,), {}, id="rank one in time"),
    pytest.param((3, 2, 12), (24, 30), (4, 5), {}, id="rank two in the plane"),
    pytest.param((2, 1, 6), (9, 10, 11), (3, 3, 3), {}, id="volumes"),
    pytest.param((4, 1, 20), (200,), (9,), {"boundary": "full", "nonnegative": True}, id="full, non-negative"),
    pytest.param((4, 1, 20), (200,), (9,), {"boundary": "circular"}, id="circular"),
    pytest.param((4, 1, 20), (200,), (9,), {"boundary": "valid", "sampling": 0.5, "random_state": 3}, id="sampled"),
    pytest.param((4, 1, 20), (200,), (9,), {"solver": pt.solvers.SampledADMM(max_iter=40, tol=1e-9)}, id="admm"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("bank", "space", "size", "options"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_answers_as_in_all_channels(monkeypatch, bank, space, size, options, weighted):
    rng = np.random.default_rng(7)
    filters = low_rank(rng, *bank, size)
    signals = sparse_signals(rng, filters, 2, space)
    weights = np.broadcast_to(rng.random((2, 1, *space)) > 0.2, signals.shape).astype(float) if weighted else None
    if "solver" not in options:
        options = {**options, "tol": 1e-12}
    options = {**options, "channels": True, "weights": weights}
    span = filter_span(filters)
    assert span is not None
    assert span.basis.shape == (bank[2], min(bank[0] * bank[1], bank[2]))
    here, there = pt.encode(signals, filters, 0.5, **options), plain(monkeypatch, signals, filters, 0.5, **options)
    assert here.objective == pytest.approx(there.objective, rel=1e-11)
    np.testing.assert_allclose(here.codes.to_dense(), there.codes.to_dense(), atol=2e-6)
    for mine, others in zip(here.residuals, there.residuals, strict=True):
        np.testing.assert_allclose(mine, others, atol=2e-6)
    # What no filter reaches is left whole in the dual point, so that the bound is at least as tight.
    assert np.all(here.gap <= there.gap + 1e-10)
    exact = _certificates(signals, filters, 0.5, here, options)
    assert here.objective == pytest.approx([one.objective for one in exact], rel=1e-12)


def _certificates(signals, filters, penalty, result, options):
    boundary = options.get("boundary", "same")
    geometry = Geometry(signals.shape[2:], filters.shape[2:], filters.shape[1], boundary)
    weights = options["weights"]
    problem = Problem(
        filters=filters, geometry=geometry, penalty=broadcast_penalty(penalty, len(filters), geometry), weights=weights
    )
    codes = result.codes
    return [certificate(problem, i, x, codes.indices[i], codes.values[i]) for i, x in enumerate(signals)]


def test_single_precision_bounds_hold(monkeypatch):
    rng = np.random.default_rng(1)
    for _ in range(10):
        filters = low_rank(rng, 4, 1, 60, (16,), np.float32)
        signals = sparse_signals(rng, filters, 1, (500,), dtype=np.float32)
        found = pt.encode(signals, filters, 0.4, channels=True, tol=1e-4)
        best = plain(monkeypatch, signals.astype(float), filters.astype(float), 0.4, channels=True, tol=1e-11)
        assert found.status is Status.CONVERGED
        assert found.gap[0] <= 1e-4
        exact = _certificates(signals, filters, 0.4, found, {"weights": None})[0].objective
        assert found.objective[0] == pytest.approx(exact, rel=3e-7)
        assert found.objective[0] * (1 - found.gap[0]) <= best.objective[0] * (1 + 1e-11)


def test_a_gap_that_rounding_hides_is_closed_in_all_channels(monkeypatch):
    rng = np.random.default_rng(2)
    filters = low_rank(rng, 3, 1, 50, (16,), np.float32)
    signals = sparse_signals(rng, filters, 2, (300,), dtype=np.float32)
    solved, by_tiles = [], encoding.by_tiles

    def watched(solver, problem, progress):
        solved.append(problem.geometry.channels)
        return by_tiles(solver, problem, progress)

    monkeypatch.setattr(encoding, "by_tiles", watched)
    assert np.all(pt.encode(signals, filters, 0.4, channels=True, tol=1e-3).gap <= 1e-3)
    assert solved == [3]
    # Rounding that is said to be as large as the tolerance must never be called converged by the span alone.
    monkeypatch.setattr(Projection, "rounding", lambda *args: 1e-3)
    result = pt.encode(signals, filters, 0.4, channels=True, tol=1e-3)
    assert solved == [3, 3, 50]
    assert np.all(result.gap <= 1e-3)
    assert result.status is Status.CONVERGED


def test_weights_that_differ_between_channels_are_obeyed(monkeypatch):
    rng = np.random.default_rng(3)
    filters = low_rank(rng, 3, 1, 10, (8,))
    signals = sparse_signals(rng, filters, 1, (100,))
    weights = (rng.random(signals.shape) > 0.3).astype(float)
    here = pt.encode(signals, filters, 0.5, channels=True, weights=weights)
    there = plain(monkeypatch, signals, filters, 0.5, channels=True, weights=weights)
    assert here.objective == there.objective
    np.testing.assert_array_equal(here.codes.to_dense(), there.codes.to_dense())


def test_large_signals_in_files_are_coded_by_tiles(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    monkeypatch.setattr("pointillist.solvers.large_signals.LARGE", 1000)
    filters = low_rank(rng, 3, 1, 24, (16,), np.float32)
    signals = sparse_signals(rng, filters, 1, (3000,), dtype=np.float32)
    np.save(tmp_path / "recording.npy", signals)
    mapped = np.load(tmp_path / "recording.npy", mmap_mode="r")
    result = pt.encode(mapped, filters, 0.4, channels=True)
    assert isinstance(result.residuals[0], np.memmap)
    assert np.all(result.gap <= 1e-3)
    fit = pt.decode(result.codes, filters, channels=True)
    np.testing.assert_allclose(result.residuals[0], (signals - fit)[0], atol=1e-5)


def test_the_largest_penalty_is_the_same(monkeypatch):
    rng = np.random.default_rng(11)
    filters = low_rank(rng, 3, 1, 24, (16,))
    signals = sparse_signals(rng, filters, 2, (300,))
    found = pt.max_penalty(signals, filters, channels=True)
    monkeypatch.setattr("pointillist.solvers.encoding.in_span", lambda *problem: None)
    assert found == pytest.approx(pt.max_penalty(signals, filters, channels=True), rel=1e-12)


def test_full_filters_are_left_alone():
    rng = np.random.default_rng(6)
    assert filter_span(rng.standard_normal((8, 3, 5, 5))) is None
    assert filter_span(rng.standard_normal((4, 1, 9))) is None
    nearly = low_rank(rng, 4, 1, 10, (8,)) + 1e-9 * rng.standard_normal((4, 10, 8))
    assert filter_span(nearly) is None


def test_many_patterns_are_found_by_more_mixtures():
    rng = np.random.default_rng(8)
    filters = low_rank(rng, 30, 1, 60, (7,))
    span = filter_span(filters)
    assert span.basis.shape == (60, 30)
    np.testing.assert_allclose(span.basis.T @ span.basis, np.eye(30), atol=1e-12)
    whole = np.einsum("pr,krt->kpt", span.basis, span.filters)
    np.testing.assert_allclose(whole, filters, atol=1e-13)
    assert span.lost < 1e-13


def test_codes_that_cancel_are_valued_in_all_channels():
    """Their terms are a thousand times what they leave: in the span, rounding took digits of the objective."""
    rng = np.random.default_rng(0)
    pattern, shape = rng.standard_normal(6), rng.standard_normal(9)
    shapes = np.stack([shape, shape + 1e-3 * rng.standard_normal(9)])
    filters = (pattern[:, None] * shapes[:, None, :]).astype(np.float32)
    signals = rng.standard_normal((1, 6, 60)).astype(np.float32)
    dense = np.zeros((1, 2, 52), np.float32)
    dense[0, 0, ::5], dense[0, 1, ::5] = 300, -300
    start = pt.SparseCodes.from_dense(dense)
    found = pt.encode(signals, filters, 1e-4, channels=True, boundary="valid", start=start, tol=1.0)
    assert found.codes.nnz == start.nnz
    exact = signals.astype(float) - pt.decode(found.codes, filters.astype(float), channels=True, boundary="valid")
    price = 1e-4 * sum(float(np.abs(values).sum()) for values in found.codes.values)
    assert found.objective[0] == pytest.approx(0.5 * np.sum(exact**2) + price, rel=1e-9)
