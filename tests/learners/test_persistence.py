"""Tests of saved models and codes: what comes back does what was saved, and damage is told plainly."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from pointillist import BatchCSC, Draws, FilterUpdate, OnlineCSC, Ridge, load, save
from pointillist.errors import ModelFileError
from pointillist.learners.checkpoints import unpack_parameters
from pointillist.solvers import CoordinateDescent, SampledADMM
from pointillist.storage import load_model, save_model

SMALL = {"n_filters": 3, "filter_size": 5, "penalty": 0.5, "sampling": 0.5, "n_jobs": 1}


@pytest.fixture
def signals():
    return np.random.default_rng(0).standard_normal((4, 60))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("learner", [BatchCSC, OnlineCSC])
def test_a_loaded_model_does_what_the_saved_one_did(path, signals, learner):
    model = learner(**SMALL, random_state=7).fit(signals, validation=signals[:1])
    save(model, path, preprocessing={"normalise": "contrast"}, extra={"data": {"signals": 4}})
    again = load(path)
    assert type(again) is learner
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.filters_, model.filters_)
    np.testing.assert_array_equal(again.usage_, model.usage_)
    assert again.history_ == model.history_
    assert (again.n_iter_, again.n_seen_, again.seed_) == (model.n_iter_, model.n_seen_, model.seed_)
    assert again.preprocessing_ == {"normalise": "contrast"}
    assert again.extra_ == {"data": {"signals": 4}}
    codes = again.transform(signals)
    np.testing.assert_array_equal(codes.to_dense(), model.transform(signals).to_dense())
    np.testing.assert_array_equal(again.inverse_transform(codes), model.inverse_transform(codes))
    assert again.score(signals) == model.score(signals)


def assert_equal(again, value):
    if is_dataclass(value):
        for field in fields(value):
            assert_equal(getattr(again, field.name), getattr(value, field.name))
    else:
        assert np.all(again == value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_filters": [2, 1], "filter_size": [3, 5]}, {"filter_size": (5,)}, {"filter_size": [(3,), (5,)]},
        {"penalty": np.array([0.3, 0.4, 0.5])},
        {"update": FilterUpdate(init=np.random.default_rng(1).standard_normal((3, 5)))},
        {"update": FilterUpdate(zero_mean=True, n_sweeps=2, forgetting=2)}, {"learning": Ridge(2.0, half_life=5)},
        {"learning": 0.1}, {"sampling": Draws(0.4, "cells")}, {"solver": CoordinateDescent(tol=1e-2)},
        {"solver": SampledADMM(max_iter=7, rho=2.0)}, {"channels": True},
    ],
)  # fmt: skip
def test_parameters_of_every_kind_come_back(path, signals, parameters):
    data = signals[:, None] if parameters.get("channels") else signals
    model = OnlineCSC(**(SMALL | parameters), random_state=0).fit(data)
    save(model, path)
    again = load(path)
    for name, value in model.get_params(deep=False).items():
        assert type(getattr(again, name)) is type(value)
        assert_equal(getattr(again, name), value)
    np.testing.assert_array_equal(again.fit(data).filters_, model.filters_)


def test_generators_are_replaced_by_the_seed(path, signals):
    model = OnlineCSC(**SMALL, random_state=np.random.default_rng(5)).fit(signals)
    save(model, path)
    again = load(path)
    assert again.random_state == model.seed_
    np.testing.assert_array_equal(again.fit(signals).filters_, model.filters_)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"callbacks": "tcp://elsewhere:8786"}, "callbacks"),
        ({"cluster": "tcp://elsewhere:8786"}, "cluster"),
        ({"sampling": {"class": "Draws", "settings": {"share": 2.0}}}, "share must lie in"),
        ({"sampling": {"class": "Draws", "settings": {"share": 0.5, "kind": "rows"}}}, "kind must be one of codes"),
        ({"sampling": {"class": "Draws", "settings": {"share": 0.5, "kind": 3}}}, "kind"),
    ],
)
def test_a_file_neither_reaches_out_of_the_process_nor_has_other_parameters(path, signals, changed, message):
    save(OnlineCSC(**SMALL).fit(signals), path)
    stored = load_model(path)
    stored.metadata["parameters"] |= changed
    save_model(path, stored.arrays.pop("filters"), stored.metadata, stored.arrays)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_solver_of_the_users_own_does_not_lose_the_model(path, signals, caplog):
    class Mine(CoordinateDescent):
        pass

    save(OnlineCSC(**SMALL, solver=Mine()).fit(signals), path)
    again = load(path)
    assert again.solver == OnlineCSC().solver
    assert "solver Mine is not one of the package" in caplog.text
    assert len(again.transform(signals)) == 4


@pytest.mark.parametrize("parameters", [{}, {"n_filters": [2, 1], "filter_size": [3, 5]}])
def test_resumes_exactly(path, signals, parameters):
    model = OnlineCSC(**(SMALL | parameters), random_state=0)
    for signal in signals[:2]:
        model.partial_fit(signal[None])
    save(model, path, resume=True)
    again = load(path)
    for signal in signals[2:]:
        model.partial_fit(signal[None])
        again.partial_fit(signal[None])
    np.testing.assert_array_equal(again.filters_, model.filters_)
    assert again.n_seen_ == 4


def test_a_model_of_a_device_is_loaded_for_the_cpu(path, signals, monkeypatch):
    """A file does not choose where its reader works."""
    monkeypatch.setattr("pointillist.dictionary.statistics.open_device", lambda device: pytest.fail("opened a device"))
    model = OnlineCSC(**SMALL, random_state=0).partial_fit(signals[:2])
    save(model.set_params(device="cuda"), path, resume=True)
    again = load(path)
    assert (again.device, again.state_.statistics.device) == ("cpu", "cpu")
    model.set_params(device="cpu")
    for one in (model, again):
        one.partial_fit(signals[2:])
    np.testing.assert_array_equal(again.filters_, model.filters_)


def test_parameters_that_are_not_those_of_the_filters_are_refused(path, signals):
    model = OnlineCSC(**SMALL).fit(signals)
    with pytest.raises(ValueError, match="n_filters=9 and filter_size=5 are not those of the filters"):
        save(model.set_params(n_filters=9), path)
    assert not path.exists()


def test_without_statistics_it_goes_on_from_the_filters(path, signals):
    model = OnlineCSC(**SMALL, random_state=0).fit(signals)
    save(model, path)
    again = load(path).partial_fit(signals[:1])
    assert again.n_iter_ == model.n_iter_ + 1
    assert np.abs(np.sum(again.filters_ * model.filters_, axis=1)).min() > 0.5


def test_nan_infinity_and_none_in_the_history_survive(path, signals):
    model = BatchCSC(**SMALL, max_iter=2).fit(signals)
    model.history_[0] |= {"gap": float("nan"), "objective": float("inf"), "note": None}
    save(model, path)
    again = load(path).history_[0]
    assert np.isnan(again["gap"])
    assert (again["objective"], again["note"]) == (float("inf"), None)


def test_what_cannot_be_saved_is_refused(path, signals):
    with pytest.raises(ValueError, match="learned nothing"):
        save(OnlineCSC(), path)
    with pytest.raises(ValueError, match="must be one of BatchCSC, OnlineCSC"):
        save(object(), path)
    with pytest.raises(ValueError, match="resume=True is for OnlineCSC"):
        save(BatchCSC(**SMALL, max_iter=1).fit(signals), path, resume=True)
    assert not path.exists()


def test_files_that_hold_no_learner_are_refused(path):
    filters = np.zeros((2, 3), np.float32)
    save_model(path, filters, {"made": "by hand"})
    with pytest.raises(ModelFileError, match="no model of a learner"):
        load(path)
    save_model(path, filters, {"class": "OnlineCSC", "parameters": {"n_filtres": 3}})
    with pytest.raises(ModelFileError, match="damaged model file"):
        load(path)


def test_a_setting_of_coordinate_descent_that_is_gone_is_passed_over():
    settings = {"tol": 0.25, "cells": {"tuple": [3, 2, 1]}, "keep_start": False}
    packed = {"solver": {"class": "CoordinateDescent", "settings": settings}}
    assert unpack_parameters(packed, {}) == {"solver": CoordinateDescent(tol=0.25, cells=(3, 2, 1))}
