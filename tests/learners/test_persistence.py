"""Tests of saved models and codes: what comes back does what was saved, and damage is told plainly."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from pointillist import BatchCSC, CoordinateDescent, FilterUpdate, OnlineCSC, Ridge, SampledADMM, SparseCodes
from pointillist.errors import ModelFileError
from pointillist.learners.persistence import load, load_codes, load_codes_metadata, save, save_codes
from pointillist.storage import save_model

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


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_filters": [2, 1], "filter_size": [3, 5]},
        {"filter_size": (5,)},
        {"filter_size": [(3,), (5,)]},
        {"penalty": np.array([0.3, 0.4, 0.5])},
        {"update": FilterUpdate(zero_mean=True, forgetting=2.0)},
        {"learning": Ridge(half_life=3.0)},
        {"learning": 0.2},
        {"solver": CoordinateDescent(tol=1e-2)},
        {"solver": SampledADMM(max_iter=7, rho=2.0)},
        {"channels": True},
    ],
)
def test_parameters_of_every_kind_come_back(path, signals, parameters):
    data = signals[:, None] if parameters.get("channels") else signals
    model = OnlineCSC(**(SMALL | parameters), random_state=0).fit(data)
    save(model, path)
    again = load(path)
    for name, value in model.get_params(deep=False).items():
        assert type(getattr(again, name)) is type(value)
        assert np.all(getattr(again, name) == value)
    np.testing.assert_array_equal(again.fit(data).filters_, model.filters_)


def test_first_filters_come_back(path, signals):
    first = np.random.default_rng(1).standard_normal((3, 5))
    model = OnlineCSC(**SMALL, update=FilterUpdate(init=first, n_sweeps=2), random_state=0).fit(signals)
    save(model, path)
    again = load(path)
    np.testing.assert_array_equal(again.update.init, first)
    assert again.update.n_sweeps == 2
    np.testing.assert_array_equal(again.fit(signals).filters_, model.filters_)


def test_generators_are_replaced_by_what_can_be_stored(path, signals):
    model = OnlineCSC(**SMALL, random_state=np.random.default_rng(5)).fit(signals)
    save(model, path)
    again = load(path)
    assert again.random_state == model.seed_
    np.testing.assert_array_equal(again.fit(signals).filters_, model.filters_)


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


def test_a_model_of_a_device_that_is_not_here_goes_on_without_it(path, signals, monkeypatch):
    def absent(device):
        raise RuntimeError(f'device="{device}" found no CUDA device')

    monkeypatch.setattr("pointillist.dictionary.device.open_device", absent)
    model = OnlineCSC(**SMALL, random_state=0).partial_fit(signals[:2])
    save(model.set_params(device="cuda"), path, resume=True)
    again = load(path)
    assert again.device == "cuda"
    assert again.state_.statistics.device == "cuda"
    for one in (model, again):
        one.set_params(device="cpu").partial_fit(signals[2:])
    np.testing.assert_array_equal(again.filters_, model.filters_)


def test_without_statistics_it_goes_on_from_the_filters(path, signals):
    model = OnlineCSC(**SMALL, random_state=0).fit(signals)
    save(model, path)
    again = load(path).partial_fit(signals[:1])
    assert again.n_iter_ == 5
    assert np.abs(np.sum(again.filters_ * model.filters_, axis=1)).min() > 0.5


def test_nan_in_the_history_survives(path, signals):
    model = BatchCSC(**SMALL, max_iter=2).fit(signals)
    model.history_[0]["gap"] = float("inf")
    save(model, path)
    assert np.isnan(load(path).history_[0]["gap"])


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


@pytest.fixture
def codes():
    parts = [np.random.default_rng(i).standard_normal((3, 4 + i, 5)).astype(np.float32) for i in range(2)]
    dense = [np.where(np.abs(part) > 1, part, 0) for part in parts]
    return SparseCodes.from_dense([*dense, np.zeros((3, 2, 2), np.float32)])


def test_codes_come_back(tmp_path, codes):
    save_codes(codes, tmp_path / "c", {"names": ["a", "b", "c"]})
    again = load_codes(tmp_path / "c")
    assert again.grids == codes.grids
    assert again.n_filters == 3
    for i in range(3):
        np.testing.assert_array_equal(again[i].to_dense(), codes[i].to_dense())
        assert again.values[i].dtype == np.float32
    assert load_codes_metadata(tmp_path / "c") == {"names": ["a", "b", "c"]}


def test_damaged_codes_are_told_plainly(tmp_path, codes):
    path = tmp_path / "c"
    with pytest.raises(FileNotFoundError, match="no such codes file"):
        load_codes(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match="not a codes file"):
        load_codes(path)
    save_model(path, np.zeros((2, 3), np.float32), {})
    with pytest.raises(ModelFileError, match="holds no codes"):
        load_codes(path)
    save_codes(codes, path)
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118
        header = file.metadata()
    tensors["indices"][0] = 10**6
    save_file(tensors, path, header)
    with pytest.raises(ModelFileError, match="outside the grid"):
        load_codes(path)
    newer = json.loads(header["pointillist"]) | {"format_version": 9}
    save_file(tensors, path, {"pointillist": json.dumps(newer)})
    with pytest.raises(ModelFileError, match="upgrade"):
        load_codes(path)
