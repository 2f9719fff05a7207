"""Tests of checkpoints and exact resume: the bits of the uninterrupted run, and no run continued as another one."""

import errno
import logging
import os

import numpy as np
import pytest

import pointillist as pt
from pointillist.errors import CheckpointError
from pointillist.storage import CheckpointFolder, codec

SMALL = {"n_filters": 4, "filter_size": 5, "penalty": 0.3, "random_state": 0, "n_jobs": 1, "batch_size": 2}


@pytest.fixture
def signals():
    return np.cumsum(np.random.default_rng(0).standard_normal((7, 80)), axis=1) / 3


@pytest.fixture
def path(tmp_path):
    return tmp_path / "filters.safetensors"


class OwnSolver(pt.solvers.CoordinateDescent):
    """A solver that is not one of the package."""


class Killed(BaseException):
    """Ends a run at once, as nothing in the library expects."""


def kill_at(step):
    def callback(info):
        if info["iteration"] == step:
            raise Killed

    return callback


def fit(signals, settings=None, **run):
    """A learner of `settings`, fitted in two passes."""
    settings = {"n_epochs": 2, **(SMALL if settings is None else settings)}
    return pt.OnlineCSC(**settings).fit(signals, **run)


def interrupted(signals, checkpoint, step, settings=None, **run):
    """Fit, be killed in `step`, resume with a fresh learner."""
    with pytest.raises(Killed):
        fit(signals, settings, checkpoint=checkpoint, callbacks=[kill_at(step)], **run)
    return fit(signals, settings, checkpoint=checkpoint, resume=True, **run)


def assert_same(model, other):
    np.testing.assert_array_equal(model.filters_, other.filters_)
    np.testing.assert_array_equal(model.usage_, other.usage_)
    assert (model.n_iter_, model.n_seen_, model.seed_) == (other.n_iter_, other.n_seen_, other.seed_)
    np.testing.assert_array_equal(getattr(model, "outliers_", []), getattr(other, "outliers_", []))
    strip = [[{**info, "seconds": 0} for info in one.history_] for one in (model, other)]
    assert strip[0] == strip[1]


@pytest.mark.parametrize("step", [1, 2, 4, 5, 8])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_resumed_run_is_the_uninterrupted_one(signals, path, step, every):
    model = interrupted(signals, pt.Checkpoints(path, every=every), step)
    assert_same(model, fit(signals))
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"sampling": 0.4},
        *[{"sampling": pt.Draws(0.4, kind), "n_filters": 9} for kind in ("codes", "positions", "stretches", "cells")],
        {"solver": "admm"},
        {"update": pt.FilterUpdate(statistics="dense")},
        {"learning": pt.Ridge(half_life=3)},
        {"n_filters": [2, 2], "filter_size": [3, 5], "penalty": np.array([0.2, 0.3, 0.4, 0.5])},
        {"update": pt.FilterUpdate(init="patches", zero_mean=True)},
        {"penalty": 3.0},  # leaves filters unused: they are replaced on the way
        {"n_jobs": 2},
        {"solver": OwnSolver(max_iter=3)},
        {"robust": pt.Robust()},
        {"robust": pt.Robust(fraction=0.1, window=20)},
        {"robust": pt.Robust(warm_up=4)},
    ],
)
def test_settings_of_every_kind_resume(signals, path, settings):
    settings = {**SMALL, **settings}
    model = interrupted(signals, pt.Checkpoints(path, every=1), 3, settings)
    assert_same(model, fit(signals, settings))


@pytest.mark.parametrize(("rank", "update"), [(1, None), (2, pt.FilterUpdate(init="patches", statistics="dense"))])
def test_filters_of_low_rank_resume(path, rank, update):
    """Their factors are not stored: they follow from the filters, to the bit."""
    signals = np.random.default_rng(3).standard_normal((7, 6, 60)).astype(np.float32)
    settings = {**SMALL, "channels": True, "rank": rank, "update": update}
    model = interrupted(signals, pt.Checkpoints(path, every=1), 4, settings)
    assert_same(model, fit(signals, settings))
    np.testing.assert_array_equal(model.patterns_, fit(signals, settings).patterns_)


def test_weights_order_and_validation_resume(signals, path):
    more = {"shuffle": False, "validation": signals[:2], "validation_every": 2}
    more["weights"] = np.random.default_rng(1).random(signals.shape)
    model = interrupted(signals, pt.Checkpoints(path, every=1), 3, **more)
    assert_same(model, fit(signals, **more))


def test_a_seed_of_its_own_comes_from_the_checkpoint(signals, path):
    settings = {**SMALL, "random_state": None}
    model = interrupted(signals, pt.Checkpoints(path, every=2), 5, settings)
    assert_same(model, fit(signals, {**SMALL, "random_state": model.seed_}))


def test_another_number_of_threads_may_resume(signals, path):
    checkpoint = pt.Checkpoints(path, every=2)
    with pytest.raises(Killed):
        fit(signals, checkpoint=checkpoint, callbacks=[kill_at(5)])
    model = fit(signals, {**SMALL, "n_jobs": 2}, checkpoint=checkpoint, resume=True)
    assert_same(model, fit(signals))


def test_a_checkpoint_is_a_model(signals, unfinished):
    """It can be loaded, used, saved, and taught more."""
    file = CheckpointFolder(unfinished.path).files()[0]
    model = pt.load(file)
    there = fit(signals, callbacks=[lambda info: info["iteration"] == 4])
    assert isinstance(model, pt.OnlineCSC)
    assert model.get_params() == there.get_params()
    assert (model.n_iter_, model.n_seen_, model.seed_) == (4, there.n_seen_, 0)
    # A run sorts its filters by use at its end, which this one has not reached.
    order = np.argsort(-model.usage_, kind="stable")
    np.testing.assert_array_equal(model.filters_[order], there.filters_)
    codes = model.transform(signals)
    assert codes.nnz > 0
    np.testing.assert_allclose(model.inverse_transform(codes), signals, atol=2)
    pt.save(model, unfinished.path, resume=True)
    again = pt.load(unfinished.path).partial_fit(signals[:2])
    np.testing.assert_array_equal(again.filters_, model.partial_fit(signals[:2]).filters_)
    assert again.n_iter_ == 5


@pytest.mark.parametrize("every", ["0.000001s", "1h", 3])
def test_how_often_changes_nothing(signals, path, every):
    model = fit(signals, checkpoint=pt.Checkpoints(path, every=every))
    assert_same(model, fit(signals))


def test_a_stopped_run_keeps_its_state_and_goes_on(signals, path):
    checkpoint = pt.Checkpoints(path, every="1h")
    model = fit(signals, checkpoint=checkpoint, callbacks=[lambda info: info["iteration"] == 3])
    assert model.n_iter_ == 3
    assert checkpoint.peek()["step"] == 3
    again = fit(signals, checkpoint=checkpoint, resume=True)
    assert_same(again, fit(signals))


def test_the_end_of_a_run_is_kept_by_choice(signals, path):
    checkpoint = pt.Checkpoints(path, every=100, keep=True, record={"batch": 2})
    model = fit(signals, checkpoint=checkpoint)
    assert checkpoint.peek()["step"] == 8
    assert checkpoint.peek()["record"] == {"batch": 2}
    again = fit(signals, checkpoint=checkpoint, resume=True)
    assert_same(again, model)
    checkpoint.clear()
    assert list(path.parent.iterdir()) == []
    assert checkpoint.peek() is None


def test_a_fit_without_resume_does_not_touch_an_unfinished_run(signals, path):
    checkpoint = pt.Checkpoints(path, every=2)
    with pytest.raises(Killed):
        fit(signals, checkpoint=checkpoint, callbacks=[kill_at(5)])
    before = sorted(path.parent.iterdir())
    with pytest.raises(ValueError, match="has not ended: resume it"):
        fit(signals, checkpoint=checkpoint)
    assert sorted(path.parent.iterdir()) == before
    with pytest.raises(ValueError, match="resume needs checkpoint"):
        fit(signals, resume=True)


@pytest.fixture
def unfinished(signals, path):
    checkpoint = pt.Checkpoints(path, every=2)
    with pytest.raises(Killed):
        fit(signals, checkpoint=checkpoint, callbacks=[kill_at(5)])
    return checkpoint


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"penalty": 0.4}, "penalty is 0.4, was 0.3"),
        ({"batch_size": 3}, "batch_size is 3, was 2"),
        ({"random_state": 1}, "random_state is 1, was 0"),
        ({"update": pt.FilterUpdate(init=np.ones((4, 5)))}, "update__init holds other values"),
        ({"update": pt.FilterUpdate(n_sweeps=2)}, "run: update is 'FilterUpdate', was None. Resume"),
        ({"learning": pt.Ridge(2.0)}, "run: learning is 'Ridge', was None. Resume"),
        ({"solver": pt.solvers.CoordinateDescent()}, "run: solver is 'CoordinateDescent', was 'cd'. Resume"),
        ({"n_epochs": 3}, "run: n_epochs is 3, was 2. Resume"),
        ({"shuffle": False}, "shuffle is False, was True"),
    ],
)
def test_other_settings_are_refused_by_name(signals, unfinished, settings, words):
    run = {name: value for name, value in settings.items() if name == "shuffle"}
    settings = {name: value for name, value in settings.items() if name not in run}
    with pytest.raises(CheckpointError, match=words):
        fit(signals, {**SMALL, **settings}, checkpoint=unfinished, resume=True, **run)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"update": pt.FilterUpdate(init=np.ones((4, 5)))}, "run: update__init holds other values. Resume"),
        ({"update": pt.FilterUpdate(init=np.eye(4, 5), n_sweeps=2)}, "run: update__n_sweeps is 2, was None. Resume"),
        ({"penalty": np.full(4, 0.4)}, "penalty holds other values"),
    ],
)
def test_other_values_in_the_settings_are_refused(signals, path, change, words):
    settings = {**SMALL, "penalty": np.full(4, 0.3), "update": pt.FilterUpdate(init=np.eye(4, 5))}
    with pytest.raises(Killed):
        fit(signals, settings, checkpoint=pt.Checkpoints(path, every=2), callbacks=[kill_at(5)])
    with pytest.raises(CheckpointError, match=words):
        fit(signals, {**settings, **change}, checkpoint=pt.Checkpoints(path, every=2), resume=True)


def test_other_data_are_refused(signals, unfinished):
    changed = signals.copy()
    changed[3, 3] += 1e-9
    for other in (changed, signals[:6]):
        with pytest.raises(CheckpointError, match="data: "):
            fit(other, checkpoint=unfinished, resume=True)
    with pytest.raises(CheckpointError, match="data: weights"):
        fit(signals, weights=np.ones_like(signals), checkpoint=unfinished, resume=True)


def test_another_version_is_refused_another_environment_told(signals, unfinished, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr("pointillist.learners.checkpoints.own_version", lambda: "9.9")
        with pytest.raises(CheckpointError, match=r"pointillist version is '9\.9'"):
            fit(signals, checkpoint=unfinished, resume=True)
    monkeypatch.setattr("pointillist.learners.checkpoints.environment", lambda: {"processor": "another"})
    fit(signals, checkpoint=unfinished, resume=True)
    assert "another environment" in caplog.text
    assert "processor is 'another'" in caplog.text


def test_a_damaged_checkpoint_gives_way_to_the_one_before(signals, unfinished, caplog):
    newest = CheckpointFolder(unfinished.path).files()[0]
    newest.write_bytes(newest.read_bytes()[:-8] + b"nonsense")
    model = fit(signals, checkpoint=unfinished, resume=True)
    assert "is damaged" in caplog.text
    assert_same(model, fit(signals))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EROFS, os.strerror(errno.EROFS)),
        PermissionError(errno.EACCES, os.strerror(errno.EACCES)),
    ],
    ids=["full", "read-only", "forbidden"],
)
@pytest.mark.parametrize("where", ["save_file", "replace", "fsync", "mkdir"])
def test_a_disk_that_fails_does_not_stop_the_run(signals, path, monkeypatch, caplog, error, where):
    """From step 3 on nothing can be written: the run says so once, ends as it should, and step 2 stays good."""
    caplog.set_level(logging.WARNING)
    checkpoint = pt.Checkpoints(path, every=1, keep=True)

    def fail(*arguments, **options):
        raise error

    def break_at_three(info):
        if info["iteration"] == 3:
            monkeypatch.setattr(codec if where == "save_file" else os, where, fail)

    model = fit(signals, checkpoint=checkpoint, callbacks=[break_at_three])
    monkeypatch.undo()
    assert_same(model, fit(signals))
    told = [record.getMessage() for record in caplog.records if "no checkpoint at step" in record.getMessage()]
    assert len(told) == 1
    assert "step 3" in told[0]
    assert os.strerror(error.errno) in told[0]
    assert checkpoint.peek()["step"] == 2
    assert sorted(entry.name for entry in path.parent.iterdir()) == [
        "filters.checkpoint-00000001.safetensors",
        "filters.checkpoint-00000002.safetensors",
    ]
    again = fit(signals, checkpoint=checkpoint, resume=True)
    assert_same(again, model)


def test_checkpoints_that_cannot_be_removed_do_not_lose_the_model(signals, path, monkeypatch, caplog):
    def read_only(info):
        if info["iteration"] == 8:
            monkeypatch.setattr("pathlib.Path.unlink", fail)

    def fail(self, missing_ok=False):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    model = fit(signals, checkpoint=pt.Checkpoints(path, every=3), callbacks=[read_only])
    assert model.n_iter_ == 8
    assert "cannot be removed" in caplog.text


def test_an_iterator_says_that_it_cannot_resume_exactly(signals, path, caplog):
    checkpoint = pt.Checkpoints(path, every=1)
    with pytest.raises(Killed):
        fit(iter(signals), {**SMALL, "n_epochs": 1}, checkpoint=checkpoint, callbacks=[kill_at(3)])
    model = fit(iter(signals), {**SMALL, "n_epochs": 1}, checkpoint=checkpoint, resume=True)
    assert "cannot be resumed exactly" in caplog.text
    assert model.n_seen_ == 7


@pytest.mark.parametrize("every", [0, -1, "0s", "x", "1.5", "60 seconds", True, 1.5, None])
def test_bad_steps_and_times(path, every):
    with pytest.raises(ValueError, match="every must be"):
        pt.Checkpoints(path, every=every)
