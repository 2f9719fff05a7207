"""Learners as metadata and arrays, and back."""

import numpy as np

import pointillist as pt
from pointillist.learners.checkpoints import pack, pack_parameters, unpack_parameters

SIGNALS = np.random.default_rng(0).standard_normal((40, 60)).astype(np.float32)


def test_parameters_come_back():
    update = pt.FilterUpdate(init=np.ones((3, 5)), zero_mean=True)
    solver = pt.solvers.SampledADMM(rho=2.0)
    parameters, arrays = pack_parameters(pt.OnlineCSC(3, (5,), solver=solver, update=update), seed=7)
    assert parameters["random_state"] == 7
    assert arrays.keys() == {"parameter.update.init"}
    again = unpack_parameters(parameters, arrays)
    assert (again["solver"], again["filter_size"]) == (solver, (5,))
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
