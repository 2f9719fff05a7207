"""Learning on a device: what needs none, and beside the CPU where there is one."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import pointillist as pt
from pointillist.cuda.device import Device
from pointillist.dictionary.statistics import CodedBatch, DeviceStatistics, ToeplitzStatistics
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.estimators import training_step
from pointillist.solvers import on_device as learning
from pointillist.solvers.encoding import encode
from pointillist.solvers.on_device import placed, prefetch
from pointillist.validation import Batch


def _signals(*shape, seed=1):
    noise = np.random.default_rng(seed).standard_normal(shape)
    return (noise + np.roll(noise, 1, -1) + np.roll(noise, 2, -1)).astype(np.float32)


@pytest.fixture
def host_device(monkeypatch):
    """A "device" whose arrays are NumPy's, with room for a thousand bytes of signals."""
    made = SimpleNamespace(
        use=nullcontext,
        mover=nullcontext(),
        upload=lambda arrays, dtype: np.stack(arrays).astype(dtype),
        free_memory=lambda: 4000,
    )
    monkeypatch.setattr(learning, "open_device", lambda name: made)


def test_batches_arrive_in_order_one_ahead(host_device):
    taken = []

    def stream():
        for i in range(4):
            taken.append((i, threading.current_thread().name))
            yield np.full((2, 3, 3), i, np.uint8)

    arrived = []
    for batch in prefetch(stream(), "cuda"):
        arrived.append(int(batch[0, 0, 0]))
        assert batch.dtype == np.float32
        assert len(taken) <= len(arrived) + 1
    assert arrived == [0, 1, 2, 3]
    assert all(name.startswith("pointillist-move") for _, name in taken)


def test_errors_of_a_stream_reach_the_caller(host_device):
    def stream():
        yield np.ones((1, 2, 2))
        raise OSError("the stream broke")

    batches = prefetch(stream(), "cuda")
    next(batches)
    with pytest.raises(OSError, match="the stream broke"):
        next(batches)


def test_learners_batches_keep_their_weights(host_device):
    signals, weights = [np.ones((1, 3, 3))] * 2, [np.zeros((1, 3, 3)), np.ones((1, 3, 3))]
    batch = Batch(signals, weights)
    (arrived,) = prefetch([batch], "cuda")
    np.testing.assert_array_equal(arrived.weights[1], weights[1])


def test_only_what_leaves_room_stays_on_a_device(host_device):
    small, large = Batch([np.ones((1, 3, 3))], None), Batch([np.ones((1, 30, 30))], None)
    assert placed(large, "cuda") is large
    assert placed(small, "cuda") is not small
    assert placed(small, None) is small


def test_statistics_are_stored_and_read_without_a_device():
    sums = ToeplitzStatistics(3, 1, (4, 5))
    sums.pairs[...] = np.random.default_rng(0).standard_normal(sums.pairs.shape)
    sums.total = 7.0
    there = DeviceStatistics(3, 1, (4, 5), "cuda")
    there.load(sums.arrays())
    order = np.array([2, 0, 1])
    there.permute(order)
    sums.permute(order)
    for name, array in sums.arrays().items():
        np.testing.assert_array_equal(there.arrays()[name], array)
    assert there.total == 7.0


@pytest.mark.gpu
def test_a_saved_model_goes_on_with_its_statistics(tmp_path):
    signals, more = _signals(16, 30, 30), _signals(8, 30, 30, seed=2)
    options = {"sampling": 0.5, "batch_size": 8, "random_state": 0, "device": "cuda"}
    model = OnlineCSC(6, 5, 0.8, **options).fit(signals)
    pt.save(model, tmp_path / "model.safetensors", resume=True)
    read = pt.load(tmp_path / "model.safetensors")
    assert read.device == read.state_.statistics.device == "cpu"  # no file chooses a device
    assert read.state_.statistics.total == model.state_.statistics.total
    read.set_params(device="cuda")
    np.testing.assert_allclose(read.partial_fit(more).filters_, model.partial_fit(more).filters_, atol=1e-4)
    moved = pt.load(tmp_path / "model.safetensors").partial_fit(more)
    np.testing.assert_allclose(moved.filters_, model.filters_, atol=1e-2)


@pytest.mark.gpu
def test_codes_and_residuals_of_a_step_stay_on_the_device(monkeypatch):
    signals = _signals(8, 30, 30)
    model = OnlineCSC(6, 5, 0.8, sampling=0.5, batch_size=4, random_state=0, device="cuda")
    model.partial_fit(signals[:4])

    def refuse(self, array):
        raise AssertionError("something goes to the host")

    monkeypatch.setattr(Device, "download", refuse)
    model.partial_fit(signals[4:])
    step = training_step(model)
    assert step.encode(model.state_, step.check(signals[4:])).codes.resident


@pytest.mark.gpu
def test_the_objective_is_the_cpus(monkeypatch):
    signals = _signals(4, 30, 30)
    weights = (np.random.default_rng(0).random(signals.shape) < 0.7).astype(np.float32)
    model = OnlineCSC(6, 5, np.linspace(0.5, 1, 6), batch_size=4, random_state=0, device="cuda")
    step = training_step(model)
    batch = step.check(signals, weights)
    state = step.start(batch, 0)
    state.filters = state.filters * np.float32(1.5)  # feasible or not is no matter here
    result = encode(signals, state.filters[:, 0], np.linspace(0.5, 1, 6), weights=weights)
    coded = CodedBatch(batch.signals, batch.weights, result.codes, result.residuals)
    ours = state.statistics.objectives(coded, state.filters, state.penalty)
    np.testing.assert_allclose(ours, result.objective, rtol=1e-6)


@pytest.mark.gpu
def test_mini_batches_are_taken_from_a_stream():
    signals = _signals(24, 40, 40)
    options = {"sampling": 0.5, "batch_size": 8, "random_state": 0, "device": "cuda"}
    streamed, plain = OnlineCSC(6, 5, 1.0, **options), OnlineCSC(6, 5, 1.0, **options)
    for batch in prefetch(signals[i : i + 8] for i in range(0, 24, 8)):
        streamed.partial_fit(batch)
    for i in range(0, 24, 8):
        plain.partial_fit(signals[i : i + 8])
    np.testing.assert_allclose(streamed.filters_, plain.filters_, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "boundary"), [((50, 50), "same"), ((16, 16, 16), "same"), ((300,), "same"), ((40, 50), "circular")]
)
def test_online_learning_is_as_good_as_on_the_cpu(shape, boundary):
    signals = _signals(24, *shape)
    how = {"sampling": 0.5, "batch_size": 8, "boundary": boundary, "random_state": 0}
    learners = [OnlineCSC(8, 7, 1.0, device=device, **how).fit(signals) for device in ("cpu", "cuda")]
    objectives = [np.sum(encode(signals, one.filters_, 1.0, boundary=boundary).objective) for one in learners]
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-2)


@pytest.mark.gpu
def test_batch_learning_on_a_device():
    signals = [*_signals(4, 40, 40), *_signals(2, 30, 44)]
    model = BatchCSC(6, 5, 1.0, sampling=0.5, max_iter=4, random_state=0, device="cuda").fit(signals)
    objectives = [info["objective"] for info in model.history_]
    assert objectives[-1] < objectives[0]
    assert np.all(np.linalg.norm(model.filters_, axis=(1, 2)) <= 1 + 1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("rank", [1, 2])
def test_filters_of_low_rank_on_a_device(rank):
    """The sums live on the device, and the host sweeps with a copy of them: the filters of the CPU, and as good later."""
    signals = np.random.default_rng(4).standard_normal((8, 6, 300)).astype(np.float32)
    how = {"batch_size": 4, "channels": True, "rank": rank, "learning": 1e-4, "random_state": 0}
    one, other = (OnlineCSC(5, 9, 1.0, device=device, **how).partial_fit(signals[:4]) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(other.filters_, one.filters_, atol=1e-3)
    for model in (one, other):
        model.partial_fit(signals[4:])
        assert np.all(np.linalg.svd(model.filters_.astype(float), compute_uv=False)[:, rank:] < 1e-6)
    objectives = [np.sum(encode(signals, model.filters_, 1.0, channels=True).objective) for model in (one, other)]
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-2)
