"""Tests of packed learners: parameters by their flat names, and files as large as was foretold."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.learners.packing import bytes_on_disk, flat, pack, pack_parameters, unpack_parameters
from pointillist.storage import CheckpointFolder

SIGNALS = np.random.default_rng(0).standard_normal((40, 60)).astype(np.float32)


def test_settings_have_flat_names():
    update = pt.FilterUpdate(init=np.ones((3, 5)), zero_mean=True)
    parameters, arrays = pack_parameters(
        pt.OnlineCSC(3, (5,), solver=pt.solvers.SampledADMM(rho=2.0), update=update), seed=7
    )
    named = flat(parameters)
    assert (named["update"], named["update__zero_mean"], named["random_state"]) == ("FilterUpdate", True, 7)
    assert (named["solver"], named["solver__rho"], named["filter_size"]) == ("SampledADMM", 2.0, {"tuple": [5]})
    assert arrays.keys() == {"parameter.update.init"}
    again = unpack_parameters(parameters, arrays)
    assert again["solver"] == pt.solvers.SampledADMM(rho=2.0)
    assert again["filter_size"] == (5,)
    np.testing.assert_array_equal(again["update"].init, update.init)


def test_objects_of_other_classes_leave_the_default(caplog):
    parameters, arrays = pack_parameters(pt.OnlineCSC(solver=object()), seed=0)
    assert "solver" not in unpack_parameters(parameters, arrays)
    assert "solver object is not one of the package" in caplog.text


def test_statistics_are_packed_by_choice():
    model = pt.OnlineCSC(3, 5, 0.5, random_state=0, n_jobs=1).partial_fit(SIGNALS[:2])
    without, everything = (set(pack(model, statistics=wanted)[1]) for wanted in (False, True))
    assert without == {"filters", "usage", "penalty", "history"}
    assert everything - without
    assert all(name.startswith("statistics.") for name in everything - without)


@pytest.mark.parametrize("checkpoints", [False, True])
def test_files_take_about_as_many_bytes_as_foretold(tmp_path, checkpoints):
    path = tmp_path / "filters.safetensors"
    checkpoint = pt.Checkpoints(path, every=10, keep=True) if checkpoints else None
    model = pt.OnlineCSC(20, 21, 0.5, random_state=0, n_jobs=1).fit(SIGNALS, checkpoint=checkpoint)
    pt.save(model, path)
    sizes = [file.stat().st_size for file in (path, *CheckpointFolder(path).files())]
    statistics = sum(array.nbytes for array in model.state_.statistics.arrays().values())
    foretold = bytes_on_disk(model.filters_.nbytes, model.n_iter_, statistics if checkpoints else None)
    # A third checkpoint is there while it is being written.
    there = sum(sizes) + (sizes[-1] if checkpoints else 0)
    assert 0.7 < foretold / there < 1.4
