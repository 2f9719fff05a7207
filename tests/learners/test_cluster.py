"""Tests of learning on a Dask cluster: the bits of one process, whatever happens to the workers."""

import os
import signal
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import pointillist as pt
from pointillist.cli.app import run
from pointillist.data.sources import ArraySource, NpySource, UnreadBatch
from pointillist.errors import UnreadableFileError
from pointillist.learners import cluster as clusters
from pointillist.learners.cluster import connect, join, local_cluster, split
from pointillist.validation import Batch

distributed = pytest.importorskip("distributed")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import test modules

SMALL = {"n_filters": 4, "filter_size": 5, "penalty": 0.3, "random_state": 0, "n_jobs": 1, "batch_size": 3}


def fit(given, cluster=None, n_epochs=2, **settings):
    """Learn from what is given; `fit_with` holds more arguments of `fit`."""
    with_ = settings.pop("fit_with", {})
    return pt.OnlineCSC(**{**SMALL, **settings}, n_epochs=n_epochs).fit(given, cluster=cluster, **with_)


@pytest.fixture(scope="module", autouse=True)
def importable():
    """Workers must find this module: its sources travel by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])
        yield


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def signals():
    return np.cumsum(np.random.default_rng(0).standard_normal((7, 80)), axis=1) / 3


@pytest.fixture
def file(signals, tmp_path):
    np.save(tmp_path / "signals.npy", signals)
    return NpySource(tmp_path / "signals.npy", ndim=1)


def assert_same(model, other):
    np.testing.assert_array_equal(model.filters_, other.filters_)
    np.testing.assert_array_equal(model.usage_, other.usage_)
    strip = [[{**info, "seconds": 0} for info in one.history_] for one in (model, other)]
    assert strip[0] == strip[1]


@pytest.mark.parametrize("batch_size", [1, 3, 7])
def test_two_workers_are_one_process_to_the_bit(client, signals, file, batch_size):
    alone = fit(signals, batch_size=batch_size)
    assert_same(fit(signals, client, batch_size=batch_size), alone)
    assert_same(fit(file, client, batch_size=batch_size), alone)


@pytest.mark.parametrize(
    "settings",
    [
        {"sampling": 0.4}, {"sampling": pt.Draws(0.4, "cells")}, {"update": pt.FilterUpdate(statistics="dense")},
        {"update": pt.FilterUpdate(init="patches")}, {"robust": pt.Robust(fraction=0.2)}, {"learning": 0.1},
    ],
)  # fmt: skip
def test_settings_reach_the_workers(client, file, settings):
    assert_same(fit(file, client, **settings), fit(file, **settings))


def test_filters_of_low_rank_are_those_of_one_process(client):
    signals = np.random.default_rng(2).standard_normal((7, 6, 60))
    settings = {"channels": True, "rank": 2, "update": pt.FilterUpdate(init="patches")}
    there = fit(signals, client, **settings)
    assert_same(there, fit(signals, **settings))
    assert np.all(np.linalg.svd(there.filters_, compute_uv=False)[:, 2:] < 1e-12)


def test_an_iterator_is_read_by_the_client(client, signals):
    alone = fit(iter(signals), n_epochs=1)
    assert_same(fit(iter(signals), client, n_epochs=1), alone)


def test_weights_gaps_and_mixed_sizes(client, signals):
    rng = np.random.default_rng(1)
    holes = [np.where(rng.random(signal.shape) < 0.1 * (i % 2), np.nan, signal)[i:] for i, signal in enumerate(signals)]
    weights = rng.random(signals.shape)
    for given, more in ((holes, {}), (ArraySource(holes), {}), (signals, {"weights": weights})):
        assert_same(fit(given, client, fit_with=more), fit(given, fit_with=more))


class Damaged(ArraySource):
    """Signals of which some cannot be read."""

    def read(self, index, epoch=0):
        if index in (0, 4, 5):
            raise UnreadableFileError(f"cannot read {self.name(index)}: it is damaged")
        return super().read(index, epoch)


def test_unreadable_signals(client, signals):
    settings = {"batch_size": 2, "fit_with": {"on_error": "skip"}}
    alone, there = fit(Damaged(signals), **settings), fit(Damaged(signals), client, **settings)
    assert_same(there, alone)
    assert there.skipped_ == alone.skipped_
    assert len(there.skipped_) == 3
    with pytest.raises(UnreadableFileError, match="it is damaged"):
        fit(Damaged(signals), client, batch_size=2)


class Deadly(ArraySource):
    """Signals of which one kills whoever reads it, as often as there are files in a folder."""

    def __init__(self, signals, folder, deadly):
        super().__init__(signals)
        self.folder, self.deadly, self.home = folder, deadly, os.getpid()

    def read(self, index, epoch=0):
        if index in self.deadly and os.getpid() != self.home:
            for lives in sorted(self.folder.iterdir()):
                lives.unlink(missing_ok=True)
                os.kill(os.getpid(), signal.SIGKILL)
        return super().read(index, epoch)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize(
    ("deadly", "deaths"),
    [
        pytest.param((3,), 1, id="one worker"),
        pytest.param(tuple(range(7)), 2, id="all workers", marks=pytest.mark.slow),
    ],
)
def test_workers_killed_in_the_middle(client, signals, tmp_path, deadly, deaths):
    """The part of a lost worker is done again; where all were lost, so is the step."""
    client.wait_for_workers(2, timeout=60)
    folder = tmp_path / "lives"
    folder.mkdir()
    for i in range(deaths):
        (folder / str(i)).touch()
    assert_same(fit(Deadly(signals, folder, deadly), client), fit(signals))
    assert list(folder.iterdir()) == []


def test_a_run_begun_on_a_cluster_is_resumed_without(client, file, tmp_path):
    checkpoint = pt.Checkpoints(tmp_path / "out.safetensors", every=1)
    stopping = {"callbacks": [lambda info: info["iteration"] == 3], "checkpoint": checkpoint}
    assert fit(file, client, fit_with=stopping).n_iter_ == 3
    assert_same(fit(file, fit_with={"checkpoint": checkpoint, "resume": True}), fit(file))


def test_the_command_line(client, signals, file, tmp_path):
    settings = ["--ndim", "1", "--filters", "4", "--size", "5", "--batch", "3", "--epochs", "2", "-q"]
    for name, more in (("alone", []), ("there", ["--scheduler", client.scheduler.address])):
        output = str(tmp_path / f"{name}.safetensors")
        assert run(["learn", str(file.path), "-o", output, *settings, *more]) == 0
    alone, there = (pt.load(tmp_path / f"{name}.safetensors") for name in ("alone", "there"))
    assert_same(there, alone)


def test_what_is_no_cluster_is_told(signals, monkeypatch):
    with pytest.raises(ValueError, match="cluster must be"):
        fit(signals, 3)
    monkeypatch.setattr(clusters, "TUNING", clusters.Tuning(patience=0.5))
    with pytest.raises(ConnectionError, match="does not answer"):
        fit(signals, "tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'pointillist\[cluster\]'"), connect("tcp://127.0.0.1:9"):
        pass


@pytest.mark.parametrize(("length", "count"), [(7, 3), (7, 7), (2, 5), (1, 1), (5, 0)])
def test_pieces_hold_every_signal_once_and_in_order(length, count):
    part = UnreadBatch(2, 10, tuple(range(20, 20 + length)))
    pieces = split(part, count)
    assert len(pieces) == min(max(count, 1), length)
    assert [i for piece in pieces for i in piece.indices] == list(part.indices)
    batch = Batch([np.full((1, 3), float(i)) for i in range(length)], None)
    again = join(split(batch, count))
    assert [signal[0, 0] for signal in again.signals] == list(range(length))
    assert again.weights is None


def test_weights_of_some_pieces_are_weights_of_all():
    plain, weighted = (Batch([np.zeros((1, 2))], weights) for weights in (None, [np.array([[0.0, 2.0]])]))
    joined = join([plain, weighted])
    np.testing.assert_array_equal(joined.weights, [[[1, 1]], [[0, 2]]])


def test_a_local_cluster_listens_on_the_loopback_address_only(client):
    client.wait_for_workers(2)  # Dask hands the client over while workers are still starting
    info = client.scheduler_info()
    addresses = [info["address"], *info["workers"], *(worker["nanny"] for worker in info["workers"].values())]
    assert len(addresses) == 5
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)
