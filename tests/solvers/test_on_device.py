"""The solver on a device: what it refuses anywhere, and beside the CPU's where there is a device."""

import numpy as np
import pytest

from pointillist.cuda.engine import SignalGroup
from pointillist.cuda.plan import make_plan
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.problem import Geometry, Problem, broadcast_penalty, certificate
from pointillist.sampling import Sample
from pointillist.solvers import CoordinateDescent, SampledADMM, Status
from pointillist.solvers.encoding import encode, make_solver
from pointillist.solvers.on_device import DeviceDescent
from pointillist.validation import BOUNDARIES


@pytest.fixture
def no_device(monkeypatch):
    def missing(device):
        raise RuntimeError(f'device="{device}" needs CuPy: pip install')

    monkeypatch.setattr("pointillist.solvers.encoding.check_device", missing)
    monkeypatch.setattr("pointillist.solvers.on_device.open_device", missing)


def test_the_cpu_keeps_its_solver():
    solver = CoordinateDescent()
    assert make_solver(solver, "cpu") is solver


def test_only_coordinate_descent_runs_on_a_device():
    with pytest.raises(ValueError, match='solver="cd" only'):
        make_solver(SampledADMM(), "cuda")


def test_a_missing_device_is_an_error_never_the_cpu(no_device):
    signals, filters = np.ones((1, 20, 20)), np.ones((2, 3, 3))
    with pytest.raises(RuntimeError, match="pip install"):
        encode(signals, filters, device="cuda")
    for learner in (BatchCSC, OnlineCSC):
        with pytest.raises(RuntimeError, match="pip install"):
            learner(2, 3, device="cuda:1").fit(np.random.default_rng(0).standard_normal((2, 20, 20)))


def test_unknown_devices_are_refused():
    with pytest.raises(ValueError, match="device must be"):
        encode(np.ones((1, 20, 20)), np.ones((2, 3, 3)), device="tpu")
    with pytest.raises(ValueError, match="device must be"):
        OnlineCSC(2, 3, device="tpu").fit(np.random.default_rng(0).standard_normal((2, 20, 20)))


@pytest.mark.parametrize(
    ("geometry", "match"),
    [
        (Geometry((8, 8, 8, 8), (3, 3, 3, 3), 1, "same"), "up to three dimensions"),
    ],
)
def test_what_a_device_cannot_do_is_refused(geometry, match):
    filters = np.ones((2, 1, *geometry.filter), np.float32)
    problem = Problem(filters=filters, geometry=geometry, penalty=broadcast_penalty(1.0, 2, geometry))
    with pytest.raises(ValueError, match=match):
        DeviceDescent(settings=CoordinateDescent(ridge=1.0)).prepare(problem)


def _bank(count, *size, seed=0):
    filters = np.random.default_rng(seed).standard_normal((count, *size))
    axes = tuple(range(1, filters.ndim))
    return (filters / np.sqrt(np.sum(filters**2, axis=axes, keepdims=True))).astype(np.float32)


def _signals(*shape, seed=1):
    noise = np.random.default_rng(seed).standard_normal(shape)
    return (noise + np.roll(noise, 1, -1) + np.roll(noise, 2, -1)).astype(np.float32)


def _agree(signals, filters, penalty, tol=1e-4, **options):
    ours = encode(signals, filters, penalty, tol=tol, device="cuda", **options)
    theirs = encode(signals, filters, penalty, tol=tol, **options)
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-5)
    assert ours.status is Status.CONVERGED
    assert np.all(ours.gap <= tol)
    return ours


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_objectives_agree_with_the_cpu(boundary, nonnegative, masked):
    signals = _signals(3, 40, 53)
    weights = (np.random.default_rng(2).random(signals.shape) < 0.6).astype(np.float32) if masked else None
    _agree(signals, _bank(16, 7, 7), 0.8, boundary=boundary, nonnegative=nonnegative, weights=weights)


@pytest.mark.gpu
@pytest.mark.parametrize(("count", "size"), [(16, (5, 5)), (30, (21, 21)), (9, (8, 13)), (1000, (11, 11)), (5, (1, 1))])
def test_filters_of_any_size_and_number(count, size):
    _agree(_signals(2, 50, 61), _bank(count, *size), 1.5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((11, 11), {}),
        ((6, 5), {"nonnegative": True, "boundary": "full"}),
        ((1, 1), {}),
        ((21, 21), {"sampling": 0.3, "random_state": 0}),
        ((3, 5, 4), {"sampling": 0.3, "random_state": 0, "nonnegative": True}),
    ],
)
def test_gaps_found_on_tensor_cores_hold(size, options):
    signals, filters = _signals(3, *(53, 60, 40)[: len(size)]), _bank(45, *size)
    ours = encode(signals, filters, 1.0, tol=2e-3, device="cuda", **options)
    exact = signals.astype(np.float64), filters.astype(np.float64)
    optimum = encode(*exact, 1.0, tol=1e-5, **options).objective
    assert ours.status is Status.CONVERGED
    assert np.all(ours.gap <= 2e-3)
    assert np.all(ours.objective * (1 - ours.gap) <= optimum)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("size", "channels", "sampled"),
    [((11, 11), 1, False), ((11, 11), 1, True), ((5, 4), 3, True), ((5, 4, 7), 1, False), ((25,), 2, True)],
)
def test_both_scans_find_the_same(size, channels, sampled):
    geometry = Geometry((70, 33, 40)[: len(size)], size, channels, "same")
    filters, count = _bank(77, channels, *size), 77 * geometry.n_positions
    sample = np.flatnonzero(np.random.default_rng(5).random(count) < 0.2) if sampled else None
    penalty = broadcast_penalty(np.linspace(0.5, 1.0, 77), 77, geometry)
    drawn = None if sample is None else Sample(flat=sample)
    state = DeviceDescent().prepare(Problem(filters=filters, geometry=geometry, penalty=penalty, drawn=drawn))
    with state.device.use():
        batch = SignalGroup(state.engine, list(_signals(3, channels, *geometry.signal)))
        looks = []
        for tensor in (False, True):
            batch.best.fill(np.nan)
            found = batch.look(np.arange(3), tensor)
            looks.append((found.ratio, batch.best.get(), batch.winner.get()))
    slack = state.tensor_rounding * found.box
    for (ratio, best, winner), (other, rough, chosen) in [looks]:
        assert np.all(np.abs(ratio - other) <= slack)
        assert np.all(np.abs(best - rough) <= slack[:, None])
        assert np.mean(winner == chosen) > 0.999


@pytest.mark.gpu
def test_a_large_penalty_leaves_no_codes():
    result = encode(_signals(2, 30, 30), _bank(4, 5, 5), 1e3, device="cuda")
    assert result.codes.nnz == 0
    assert np.all(result.gap == 0)


@pytest.mark.gpu
def test_lines_and_channels():
    _agree(_signals(3, 300), _bank(8, 25), 0.5)
    _agree(_signals(2, 3, 30, 31), _bank(8, 3, 5, 5), 0.5, channels=True)


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_weights_between_zero_and_one(boundary):
    signals = _signals(2, 40, 53)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], signals.shape).astype(np.float32)
    _agree(signals, _bank(16, 7, 7), 0.8, boundary=boundary, weights=weights)


@pytest.mark.gpu
@pytest.mark.parametrize("masked", [False, True])
def test_small_penalties(masked):
    signals = _signals(2, 40, 53)
    weights = (np.random.default_rng(2).random(signals.shape) < 0.6).astype(np.float32) if masked else None
    _agree(signals, _bank(16, 7, 7), 0.02, tol=1e-3, weights=weights)


@pytest.mark.gpu
def test_windows_that_take_nearly_all_shared_memory_that_kernels_get_without_asking():
    plan = make_plan((1, 105, 105), (1, 5, 5), 1, 8)
    assert 48 * 1024 - 500 < plan.tile_bytes <= 48 * 1024
    _agree(_signals(1, 105, 105), _bank(8, 5, 5), 2.0)


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("masked", [False, True])
def test_volumes(boundary, masked):
    signals = _signals(2, 14, 20, 17)
    weights = (np.random.default_rng(2).random(signals.shape) < 0.6).astype(np.float32) if masked else None
    _agree(signals, _bank(10, 5, 4, 3), 0.8, boundary=boundary, weights=weights)


@pytest.mark.gpu
def test_volumes_in_tiles_with_channels_samples_and_penalties_by_position():
    _agree(_signals(1, 40, 44, 48), _bank(6, 7, 7, 7), 1.5)
    _agree(_signals(2, 2, 12, 14, 16), _bank(6, 2, 3, 5, 5), 0.8, channels=True, nonnegative=True)
    _agree(_signals(2, 16, 16, 16), _bank(8, 5, 5, 5), 0.5, sampling=0.2, random_state=3)
    _agree(_signals(1, 12, 12, 12), _bank(4, 3, 3, 3), 0.5 + np.random.default_rng(0).random((4, 12, 12, 12)))
    _agree(_signals(1, 9, 30, 30), _bank(4, 1, 5, 5), 0.8)  # a filter of one layer


@pytest.mark.gpu
def test_penalties_by_filter_and_position():
    signals, filters = _signals(2, 40, 40), _bank(12, 5, 5)
    _agree(signals, filters, np.linspace(0.5, 1.5, 12))
    _agree(signals, filters, 0.5 + np.random.default_rng(0).random((12, 40, 40)))


@pytest.mark.gpu
def test_sampled_codes_stay_in_the_sample():
    ours = _agree(_signals(2, 60, 60), _bank(20, 7, 7), 0.5, sampling=0.1, random_state=3)
    theirs = encode(_signals(2, 60, 60), _bank(20, 7, 7), 0.5, tol=1e-4, sampling=0.1, random_state=3)
    assert len(np.setdiff1d(ours.codes.indices[0], theirs.codes.indices[0])) <= 10


@pytest.mark.gpu
def test_large_signals_are_solved_in_tiles():
    _agree(_signals(1, 300, 420), _bank(16, 11, 11), 1.0)


@pytest.mark.gpu
@pytest.mark.parametrize("nonnegative", [False, True])
def test_circles_of_any_length(nonnegative):
    filters = _bank(6, 7)
    for length in (7, 8, 11, 12, 13, 17, 18, 19, 23, 24, 25, 30, 31, 36, 60):
        _agree(_signals(2, length), filters, 0.4, boundary="circular", nonnegative=nonnegative)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(300, 420), (24, 5000), (3000, 25), (298, 409)])
@pytest.mark.parametrize("masked", [False, True])
def test_large_circles_are_solved_in_tiles(shape, masked):
    signals = _signals(1, *shape)
    weights = (np.random.default_rng(2).random(signals.shape) < 0.6).astype(np.float32) if masked else None
    _agree(signals, _bank(16, 11, 11), 1.0, boundary="circular", weights=weights)


@pytest.mark.gpu
def test_circular_volumes_in_tiles():
    _agree(_signals(1, 40, 44, 48), _bank(6, 7, 7, 7), 1.5, boundary="circular")
    _agree(_signals(1, 9, 60, 70), _bank(6, 2, 9, 9), 1.5, boundary="circular", sampling=0.3, random_state=0)


@pytest.mark.gpu
def test_the_gap_is_what_float64_says():
    signals, filters = _signals(2, 40, 40), _bank(12, 7, 7)
    result = encode(signals, filters, 0.5, tol=9e-4, device="cuda")
    geometry = Geometry((40, 40), (7, 7), 1, "same")
    problem = Problem(filters=filters[:, None], geometry=geometry, penalty=broadcast_penalty(0.5, 12, geometry))
    for i in range(2):
        exact = certificate(problem, i, signals[i][None], result.codes.indices[i], result.codes.values[i])
        assert result.objective[i] == pytest.approx(exact.objective, rel=1e-9)
        assert exact.gap <= result.gap[i] <= exact.gap + 1e-4
        np.testing.assert_allclose(result.residuals[i], exact.residual, atol=1e-6)


@pytest.mark.gpu
def test_a_start_is_kept():
    signals, filters = _signals(2, 40, 40), _bank(12, 7, 7)
    first = encode(signals, filters, 0.5, tol=1e-4, device="cuda")
    again = encode(signals, filters, 0.5, tol=1e-3, device="cuda", start=first.codes)
    assert np.all(again.iterations == 0)
    np.testing.assert_allclose(again.objective, first.objective, rtol=1e-9)


@pytest.mark.gpu
def test_of_a_start_only_what_the_sample_and_the_sign_allow_is_kept():
    signals, filters = _signals(2, 40, 40), _bank(12, 7, 7)
    start = encode(signals, filters, 0.5, device="cuda").codes
    options = {"sampling": 0.3, "random_state": 3, "nonnegative": True, "tol": 1e-4}
    ours = encode(signals, filters, 0.5, device="cuda", start=start, **options)
    theirs = encode(signals, filters, 0.5, **options)
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-5)
    assert min(value.min() for value in ours.codes.values) > 0


@pytest.mark.gpu
def test_a_ridge_is_solved_for_as_on_the_cpu():
    signals, filters, ridge = _signals(2, 40, 40), _bank(12, 7, 7), 0.5
    settings = CoordinateDescent(tol=0.0, max_iter=12, ridge=ridge)
    geometry = Geometry((40, 40), (7, 7), 1, "same")
    problem = Problem(filters=filters[:, None], geometry=geometry, penalty=broadcast_penalty(0.5, 12, geometry))
    ridged = []
    for solver in (DeviceDescent(settings=settings), settings):
        result = solver.solve(solver.prepare(problem), list(signals[:, None]))
        ridged.append(
            [f + 0.5 * ridge * np.sum(z**2) for f, z in zip(result.objective, result.codes.values, strict=True)]
        )
        assert min(np.min(np.abs(z)) for z in result.codes.values) > 0.01  # the smallest are dropped
    np.testing.assert_allclose(*ridged, rtol=5e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", [(60, 50), (150, 70)])
def test_extrapolated_sweeps_reach_the_same_optimum_in_fewer_rounds(monkeypatch, boundary, shape):
    signals, filters = _signals(2, *shape), _bank(20, 9, 9)
    weights = (np.random.default_rng(2).random(signals.shape) < 0.9).astype(np.float32)
    how = {"boundary": boundary, "weights": weights, "tol": 1e-4, "device": "cuda"}
    quick, again = (encode(signals, filters, 0.05, **how) for _ in range(2))
    for first, second in zip(quick.codes.values, again.codes.values, strict=True):
        np.testing.assert_array_equal(first, second)
    descend = SignalGroup.descend
    monkeypatch.setattr(SignalGroup, "descend", lambda self, *how: descend(self, *how, extrapolated=False))
    plain = encode(signals, filters, 0.05, **how)
    assert quick.status is plain.status is Status.CONVERGED
    np.testing.assert_allclose(quick.objective, plain.objective, rtol=1e-4)
    assert quick.iterations.sum() < plain.iterations.sum()


@pytest.mark.gpu
def test_little_memory_splits_the_batch():
    signals, filters = _signals(7, 40, 40), _bank(12, 7, 7)
    settings = CoordinateDescent(tol=1e-4)
    whole = encode(signals, filters, 0.5, solver=DeviceDescent(settings=settings), device="cuda")
    split = encode(signals, filters, 0.5, solver=DeviceDescent(settings=settings, memory=4 << 20), device="cuda")
    np.testing.assert_allclose(whole.objective, split.objective, rtol=1e-12)
    np.testing.assert_array_equal(whole.codes.indices[6], split.codes.indices[6])


@pytest.mark.gpu
def test_stages_are_timed_on_request():
    geometry = Geometry((30, 30), (5, 5), 1, "same")
    problem = Problem(filters=_bank(6, 1, 5, 5), geometry=geometry, penalty=broadcast_penalty(0.5, 6, geometry))
    solver = DeviceDescent()
    state = solver.prepare(problem)
    seconds = {}
    state.engine.seconds = seconds
    solver.solve(state, list(_signals(2, 1, 30, 30)))
    assert {"scan", "sweeps", "residual", "selection", "transfers"} <= set(seconds)
