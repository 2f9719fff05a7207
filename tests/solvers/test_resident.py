"""Signals that stay on a device: their checks with NumPy in CuPy's place, everything else where there is a device."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from pointillist import validation
from pointillist.arrays import to_host
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.solvers.encoding import decode, encode
from pointillist.solvers.on_device import upload
from pointillist.validation import HOST, DevicePlace, bounds, check_varied, place_of, trusted


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
        ([np.ones(4)], None, r"signals\[0\] must have 2 axes"),
        (np.ones((2, 3, 4)) * 1j, None, "signals must hold real numbers"),
        (np.ones((0, 3, 4)), None, "is empty"),
        (np.full((2, 3, 4), np.nan), None, r"signals\[0\] is NaN everywhere"),
        (np.ones((2, 3, 4)), -np.ones((2, 3, 4)), r"weights\[0\] must be finite and not negative"),
        (np.ones((2, 3, 4)), np.arange(2.0)[:, None, None] * np.ones((2, 3, 4)), r"weights\[0\] is zero everywhere"),
        (np.ones((2, 3, 4)), np.ones((2, 3, 5)), "must agree"),
        (np.ones((2, 3, 4)), np.ones((3, 3, 4)), "one array for each of the 2 signals"),
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


def _problem(*shape):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((6, *[5] * len(shape))).astype(np.float32)
    filters /= np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    return rng.standard_normal((3, *shape)).astype(np.float32), filters


def _tensors(kind, array):
    module = pytest.importorskip(kind)
    return module.as_tensor(array, device="cuda") if kind == "torch" else module.asarray(array)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["cupy", "torch"])
@pytest.mark.parametrize("shape", [(80,), (30, 33), (10, 11, 12)])
def test_tensors_stay_on_the_device(kind, shape, monkeypatch):
    signals, filters = _problem(*shape)
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
    np.testing.assert_allclose(_host(built), decode(theirs.codes, filters), atol=1e-5)
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
    signals, filters = _problem(30, 33)
    given = _tensors("cupy", signals)
    ours = encode(given, filters, 0.5, boundary="circular", device="cuda")
    theirs = encode(signals, filters, 0.5, boundary="circular", tol=1e-4)
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-3)
    built = decode(ours.codes, filters, boundary="circular")
    np.testing.assert_allclose(_host(built), decode(ours.codes.on_host(), filters, boundary="circular"), atol=1e-5)
    left = np.stack([_host(one) for one in ours.residuals])
    np.testing.assert_allclose(left.reshape(signals.shape), signals - _host(built), atol=1e-5)


def _host(array):
    return array.cpu().numpy() if hasattr(array, "cpu") else array.get()


@pytest.mark.gpu
def test_lists_of_tensors_of_several_shapes():
    signals, filters = _problem(30, 33)
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
    signals = np.repeat(_problem(30, 33)[0], 3, axis=0)
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
