"""Coding on a device: its checks anywhere, with NumPy in CuPy's place; beside the CPU's where there is one."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from pointillist import validation
from pointillist.arrays import to_host
from pointillist.cuda.engine import SignalGroup
from pointillist.cuda.plan import make_plan
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.problem import Geometry, Problem, broadcast_penalty, certificate
from pointillist.sampling import Sample
from pointillist.solvers import CoordinateDescent, SampledADMM, Status
from pointillist.solvers.encoding import decode, encode, make_solver
from pointillist.solvers.on_device import DeviceDescent, upload
from pointillist.validation import BOUNDARIES, HOST, DevicePlace, bounds, check_varied, place_of, trusted


@pytest.fixture
def no_device(monkeypatch):
    def missing(device):
        raise RuntimeError(f'device="{device}" needs CuPy: pip install')

    monkeypatch.setattr("pointillist.solvers.encoding.check_device", missing)
    monkeypatch.setattr("pointillist.solvers.on_device.open_device", missing)


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


AGREEING = [
    *(((3, 40, 53), (16, 7, 7), 0.8, {"boundary": boundary, "nonnegative": nonnegative, "weights": weights})
      for boundary in BOUNDARIES for nonnegative in (False, True) for weights in (None, "mask")),
    *(((2, 40, 53), (16, 7, 7), 0.8, {"boundary": boundary, "weights": "levels"}) for boundary in BOUNDARIES),
    *(((2, 14, 20, 17), (10, 5, 4, 3), 0.8, {"boundary": boundary, "weights": weights})
      for boundary in BOUNDARIES for weights in (None, "mask")),
    *(((2, 40, 53), (16, 7, 7), 0.02, {"tol": 1e-3, "weights": weights}) for weights in (None, "mask")),
    *(((1, *shape), (16, 11, 11), 1.0, {"boundary": "circular", "weights": weights})
      for shape in ((300, 420), (24, 5000), (3000, 25), (298, 409)) for weights in (None, "mask")),
    *(((2, length), (6, 7), 0.4, {"boundary": "circular", "nonnegative": nonnegative})
      for length in (7, 8, 11, 12, 13, 17, 18, 19, 23, 24, 25, 30, 31, 36, 60) for nonnegative in (False, True)),
    *(((2, 50, 61), bank, 1.5, {}) for bank in ((16, 5, 5), (30, 21, 21), (9, 8, 13), (1000, 11, 11), (5, 1, 1))),
    ((3, 300), (8, 25), 0.5, {}),
    ((2, 3, 30, 31), (8, 3, 5, 5), 0.5, {"channels": True}),
    ((2, 40, 40), (12, 5, 5), "filter", {}),
    ((2, 30, 30), (4, 5, 5), 1e3, {}),  # which leaves no codes
    ((2, 40, 40), (12, 5, 5), "position", {}),
    ((1, 300, 420), (16, 11, 11), 1.0, {}),  # in tiles
    ((1, 40, 44, 48), (6, 7, 7, 7), 1.5, {}),
    ((2, 2, 12, 14, 16), (6, 2, 3, 5, 5), 0.8, {"channels": True, "nonnegative": True}),
    ((2, 16, 16, 16), (8, 5, 5, 5), 0.5, {"sampling": 0.2, "random_state": 3}),
    ((1, 12, 12, 12), (4, 3, 3, 3), "position", {}),
    ((1, 9, 30, 30), (4, 1, 5, 5), 0.8, {}),  # a filter of one layer
    ((1, 40, 44, 48), (6, 7, 7, 7), 1.5, {"boundary": "circular"}),
    ((1, 9, 60, 70), (6, 2, 9, 9), 1.5, {"boundary": "circular", "sampling": 0.3, "random_state": 0}),
]  # fmt: skip
"""Shapes of signals and filters, penalties and options."""


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "bank", "penalty", "options"), AGREEING)
def test_objectives_agree_with_the_cpu(shape, bank, penalty, options):
    rng = np.random.default_rng(2)
    weights = {
        None: None,
        "mask": (rng.random(shape) < 0.6).astype(np.float32),
        "levels": rng.choice([0.0, 0.5, 1.0, 2.0], shape).astype(np.float32),
    }[options.get("weights")]
    if penalty == "filter":
        penalty = np.linspace(0.5, 1.5, bank[0])
    elif penalty == "position":
        penalty = 0.5 + rng.random((bank[0], *shape[1:]))
    _agree(_signals(*shape), _bank(*bank), penalty, **{**options, "weights": weights})


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
    slack = state.rounding(True) * found.box
    for (ratio, best, winner), (other, rough, chosen) in [looks]:
        assert np.all(np.abs(ratio - other) <= slack)
        assert np.all(np.abs(best - rough) <= slack[:, None])
        assert np.mean(winner == chosen) > 0.999


@pytest.mark.gpu
def test_windows_that_take_nearly_all_shared_memory_that_kernels_get_without_asking():
    plan = make_plan((1, 105, 105), (1, 5, 5), 1, 8)
    assert 48 * 1024 - 500 < plan.tile_bytes <= 48 * 1024
    _agree(_signals(1, 105, 105), _bank(8, 5, 5), 2.0)


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


@pytest.fixture
def host_device(monkeypatch):
    """A "device" whose arrays are NumPy's."""
    made = SimpleNamespace(
        cupy=np,
        take=lambda array, name="": np.asarray(array),
        use=nullcontext,
        wait=lambda: None,
        settle=lambda: None,
        upload=lambda arrays, dtype: np.stack(arrays).astype(dtype),
        free_memory=lambda: 10_000,
    )
    monkeypatch.setattr(validation, "open_device", lambda name: made)
    monkeypatch.setattr(validation, "stay_resident", lambda signals, device: True)
    return made


def _checked(signals, weights=None):
    return trusted(signals, np.ones((1, 1, 1)), weights, channels=False, device="cuda")[::2]


def test_signals_get_a_channel_and_a_precision(host_device):
    arrays, seen = _checked(np.arange(24).reshape(2, 3, 4))
    assert seen is None
    assert [array.shape for array in arrays] == [(1, 3, 4)] * 2
    assert arrays[0].dtype == np.float32
    assert _checked([np.ones((3, 4)), np.ones((5, 4), np.float32)])[0][0].dtype == np.float64


@pytest.mark.parametrize(
    ("signals", "weights", "match"),
    [
        (np.ones((3, 4)), None, "3 axes"),
        (np.full((2, 3, 4), np.nan), None, r"signals\[0\] is NaN everywhere"),
        (np.ones((2, 3, 4)), -np.ones((2, 3, 4)), r"weights\[0\] must be finite and not negative"),
        (np.ones((2, 3, 4)), np.arange(2.0)[:, None, None] * np.ones((2, 3, 4)), r"weights\[0\] is zero everywhere"),
    ],
)
def test_bad_signals_are_refused(host_device, signals, weights, match):
    with pytest.raises(ValueError, match=match):
        _checked(signals, weights)


def test_samples_of_weight_zero_may_be_anything(host_device):
    signals = np.ones((2, 3, 4), np.float32)
    signals[1, 0, 0] = np.nan
    weights = np.ones((3, 4))
    weights[0, 0] = 0
    arrays, seen = _checked(signals, weights)
    assert arrays[1][0, 0, 0] == 0
    assert seen[0] is seen[1]
    signals[0, 1, 1] = 2
    signals[1, 1, 1] = 3
    arrays, seen = _checked(signals)
    assert seen[1][0, 0, 0] == 0
    assert seen[0].all()
    assert np.isfinite(arrays[1]).all()
    assert _checked(signals[:1])[1] is None


def test_constant_signals_are_refused_where_they_were_seen(host_device):
    place = DevicePlace(host_device)
    varied, flat = np.arange(12.0).reshape(1, 3, 4), np.ones((1, 3, 4))
    check_varied([varied], None, "X", place)
    with pytest.raises(ValueError, match=r"X\[1\] is constant"):
        check_varied([varied, flat], None, "X", place)
    with pytest.raises(ValueError, match=r"X\[0\] is constant"):
        check_varied([varied], [(varied > 10).astype(float)], "X", place)


@pytest.mark.parametrize("where", ["host", "device"])
def test_both_places_give_the_same_answers(where, host_device):
    place = HOST if where == "host" else DevicePlace(host_device)
    rng = np.random.default_rng(0)
    signals = [rng.standard_normal(shape) for shape in ((1, 3, 4), (1, 5, 4), (1, 3, 4))]
    weights = [(rng.random(one.shape) < 0.5).astype(float) for one in signals]
    pairs = list(zip(signals, weights, strict=True))
    for one, (x, w) in zip(place.seen_only(signals, weights), pairs, strict=True):
        np.testing.assert_array_equal(one, x * w)
    np.testing.assert_array_equal(bounds(signals), [[x.min() for x in signals], [x.max() for x in signals]])
    assert place.full(np.ones((3, 4), np.uint8), (2, 3, 4), np.float32).shape == (2, 3, 4)
    split = place.split(np.arange(6).reshape(2, 1, 3), np.float32)
    assert [one.dtype for one in split] == [np.float32] * 2
    np.testing.assert_array_equal(bounds(split), [[0, 3], [2, 5]])


def test_only_plain_arrays_of_several_signals_move_whole(host_device, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(validation, "open_device", lambda name: host_device)

    def moves(signals):
        with place_of(signals, None, "cuda", move=True) as (_, _, place):
            return isinstance(place, DevicePlace)

    host_device.upload = lambda array, dtype: array.astype(dtype)
    several = np.zeros((9, 3, 4), np.uint8)  # 432 bytes in float32
    assert moves(several)
    mapped = np.memmap(tmp_path / "signals", np.float32, "w+", shape=several.shape)
    large = np.zeros((9, 100, 100))  # more than a tenth of the memory
    for other in (several[:3], list(several), np.ma.masked_array(several), several.astype(complex), large, mapped):
        assert not moves(other)


def test_uploads_keep_order_shape_and_sharing(host_device):
    arrays = [np.full((2, 3), 1.0), np.full((4,), 2, np.uint8), np.full((2, 3), 3.0, np.float32)]
    moved = upload(arrays, host_device)
    for before, after in zip(arrays, moved, strict=True):
        np.testing.assert_array_equal(after, before)
    assert moved[1].dtype == np.float32
    shared = upload([arrays[0]] * 3, host_device)
    assert shared[0] is shared[2]
    assert upload(np.ones((5, 2, 2)), host_device).shape == (5, 2, 2)


def _noise_and_filters(*shape):
    noise = np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32)
    return noise, _bank(6, *[5] * len(shape))


def _tensors(kind, array):
    module = pytest.importorskip(kind)
    return module.as_tensor(array, device="cuda") if kind == "torch" else module.asarray(array)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["cupy", "torch"])
@pytest.mark.parametrize("shape", [(80,), (30, 33), (10, 11, 12)])
def test_tensors_stay_on_the_device(kind, shape, monkeypatch):
    signals, filters = _noise_and_filters(*shape)
    weights = (np.random.default_rng(1).random(signals.shape) < 0.7).astype(np.float32)
    given, mask, bank = (_tensors(kind, array) for array in (signals, weights, filters))
    theirs = encode(signals, filters, 0.5, weights=weights, device="cuda")
    monkeypatch.setattr("pointillist.cuda.device.Device.download", None)  # nothing may go to the host
    ours = encode(given, bank, 0.5, weights=mask, device="cuda")
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9)
    assert {type(one) for one in (*ours.codes.indices, *ours.codes.values, *ours.residuals)} == {type(given)}
    host = ours.codes.on_host()
    np.testing.assert_array_equal(host.indices[2], theirs.codes.indices[2])
    np.testing.assert_allclose(ours.codes.usage(), theirs.codes.usage(), rtol=1e-6)
    np.testing.assert_allclose(ours.codes.to_dense(), theirs.codes.to_dense(), atol=1e-6)
    built = decode(ours.codes, filters)
    assert type(built) is type(given)
    np.testing.assert_allclose(to_host(built), decode(theirs.codes, filters), atol=1e-5)
    again = encode(given, bank, 0.5, weights=mask, device="cuda", start=ours.codes)
    assert np.all(again.iterations == 0)


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
def test_many_channels_in_the_span_of_their_filters(weighted):
    rng = np.random.default_rng(2)
    filters = np.einsum("kp,kt->kpt", rng.standard_normal((4, 40)), rng.standard_normal((4, 16))).astype(np.float32)
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    signals = rng.standard_normal((3, 40, 300)).astype(np.float32)
    signals[:, :, 50:66] += 5 * filters[0]
    weights = None
    if weighted:
        weights = np.broadcast_to((rng.random((3, 1, 300)) < 0.8), signals.shape).astype(np.float32)
    theirs = encode(signals, filters, 1.0, weights=weights, channels=True, tol=1e-5)
    there = encode(signals, filters, 1.0, weights=weights, channels=True, tol=1e-4, device="cuda")
    mask = None if weights is None else _tensors("cupy", weights)
    ours = encode(_tensors("cupy", signals), filters, 1.0, weights=mask, channels=True, tol=1e-4, device="cuda")
    for found in (there, ours):
        assert np.all(found.gap <= 1e-4)
        np.testing.assert_allclose(found.objective, theirs.objective, rtol=1.1e-4)
        left = np.stack([to_host(one) for one in found.residuals])
        np.testing.assert_allclose(left, np.stack(theirs.residuals), atol=0.05)


@pytest.mark.gpu
def test_circular_tensors_stay_on_the_device():
    signals, filters = _noise_and_filters(30, 33)
    given = _tensors("cupy", signals)
    ours = encode(given, filters, 0.5, boundary="circular", device="cuda")
    theirs = encode(signals, filters, 0.5, boundary="circular", tol=1e-4)
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-3)
    built = decode(ours.codes, filters, boundary="circular")
    np.testing.assert_allclose(to_host(built), decode(ours.codes.on_host(), filters, boundary="circular"), atol=1e-5)
    left = np.stack([to_host(one) for one in ours.residuals])
    np.testing.assert_allclose(left.reshape(signals.shape), signals - to_host(built), atol=1e-5)


@pytest.mark.gpu
def test_lists_of_tensors_of_several_shapes():
    signals, filters = _noise_and_filters(30, 33)
    torch = pytest.importorskip("torch")
    several = [signals[0], signals[1, :20], signals[2]]
    ours = encode([torch.as_tensor(one, device="cuda") for one in several], filters, 0.5, device="cuda")
    theirs = encode(several, filters, 0.5, device="cuda")
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9)
    assert [tuple(one.shape[1:]) for one in ours.residuals] == [(30, 33), (20, 33), (30, 33)]


@pytest.mark.gpu
@pytest.mark.parametrize("learner", [BatchCSC, OnlineCSC])
def test_learners_take_tensors(learner):
    torch = pytest.importorskip("torch")
    signals = np.repeat(_noise_and_filters(30, 33)[0], 3, axis=0)
    signals[1, 4, 5] = np.nan
    given = torch.as_tensor(signals, device="cuda")
    options = {"sampling": 0.5, "random_state": 0, "device": "cuda"}
    ours, theirs = (learner(4, 5, 0.5, **options).fit(X) for X in (given, signals))
    np.testing.assert_allclose(ours.filters_, theirs.filters_, atol=1e-3)
    codes = ours.transform(given)
    assert isinstance(codes.values[0], torch.Tensor)
    assert isinstance(ours.inverse_transform(codes), torch.Tensor)
    with pytest.raises(ValueError, match=r"X\[1\] is constant"):
        learner(4, 5, 0.5, **options).fit(torch.stack([given[0], torch.ones_like(given[0])]))
