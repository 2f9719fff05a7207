"""A model comes back from its file as it was, and other files are refused."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.mne import CSC, read_csc
from pointillist.storage import read_arrays, write_arrays


@pytest.fixture
def written(fitted, tmp_path):
    csc, _ = fitted
    path = tmp_path / "csc.safetensors"
    csc.save(path)
    return csc, path


def test_a_model_comes_back(written, planted):
    csc, path = written
    again = read_csc(path)
    assert repr(again) == repr(csc)
    assert np.array_equal(pt.load(path).filters_, csc.model_.filters_)  # the file is a model of its learner
    assert np.array_equal(again.get_components(), csc.get_components())
    assert np.array_equal(again.get_shapes(), csc.get_shapes())
    assert np.array_equal(again.get_sources(planted.raw).get_data(), csc.get_sources(planted.raw).get_data())
    for name in ("n_filters", "duration", "penalty", "rank", "nonnegative", "robust", "n_passes", "tol", "exclude"):
        assert getattr(again, name) == getattr(csc, name), name
    assert (again.gap_, again.objective_, again.penalty_) == (csc.gap_, csc.objective_, csc.penalty_)
    assert (again.dropped_, again.event_id_) == (csc.dropped_, csc.event_id_)
    assert again.sensors_.names == csc.sensors_.names
    assert np.array_equal(again.sensors_.positions, csc.sensors_.positions)


def test_exclude_a_covariance_and_robust_come_back(mne, planted, tmp_path):
    cov = mne.Covariance(np.full(20, 4e-12), planted.raw.ch_names, [], [], 100)
    settings = {"noise_cov": cov, "rank": None, "robust": pt.Robust(alpha=3.0), "nonnegative": False}
    csc = CSC(2, 0.4, n_passes=1, n_jobs=1, random_state=0, **settings).fit(planted.raw, stop=10.0)
    csc.exclude = [1]
    csc.save(tmp_path / "csc.safetensors")
    again = read_csc(tmp_path / "csc.safetensors")
    assert (again.exclude, again.rank, again.robust, again.nonnegative) == ([1], None, pt.Robust(alpha=3.0), False)
    assert np.array_equal(again.sensors_.whitener, csc.sensors_.whitener)
    assert np.array_equal(again.apply(planted.raw.copy()).get_data(), csc.apply(planted.raw.copy()).get_data())


def test_files_are_replaced_only_when_asked(written):
    csc, path = written
    with pytest.raises(FileExistsError, match="overwrite=True"):
        csc.save(path)
    csc.save(path, overwrite=True)
    with pytest.raises(RuntimeError, match="call fit first"):
        CSC().save(path, overwrite=True)


def test_other_models_are_refused(tmp_path):
    model = pt.OnlineCSC(2, 5, 0.5, random_state=0).fit(np.random.default_rng(0).standard_normal((2, 40), np.float32))
    pt.save(model, tmp_path / "plain.safetensors")
    with pytest.raises(pt.ModelFileError, match="not of a CSC"):
        read_csc(tmp_path / "plain.safetensors")
    with pytest.raises(FileNotFoundError):
        read_csc(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.pop("sensors"),
        lambda facts: facts.update(exclude=[9]),
        lambda facts: facts["settings"].update(duration="long"),
        lambda facts: facts["settings"].update(penalty=7),
        lambda facts: facts["sensors"]["names"].pop(),
        lambda facts: facts["sensors"].update(names=["Cz"] * 20),
        lambda facts: facts["sensors"]["positions"][3].pop(),
        lambda facts: facts["sensors"].update(whitener=[[1.0]] * 20),
        lambda facts: facts["sensors"].update(sfreq=-1.0),
        lambda facts: facts["sensors"].update(facts=[[1.5] * 4] * 20),
    ],
)
def test_damaged_files_are_refused(change, written):
    _, path = written
    stored = read_arrays(path, "model")
    change(stored.metadata["preprocessing"]["mne"])
    write_arrays(path, "model", stored.metadata, stored.arrays)
    with pytest.raises(pt.ModelFileError, match="damaged file of a CSC"):
        read_csc(path)
