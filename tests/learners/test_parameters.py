"""Nested names of settings: clone, grid searches and pipelines reach every field, and frozen objects stay as they are."""

import inspect
import pickle
import pydoc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import pointillist as pt

SIGNALS = np.random.default_rng(0).standard_normal((4, 30))
SMALL = {"n_filters": 2, "filter_size": 3, "penalty": 0.5, "random_state": 0, "n_jobs": 1}


@pytest.fixture(params=[pt.BatchCSC, pt.OnlineCSC])
def learner(request):
    return request.param


def test_every_parameter_is_documented_where_it_stands(learner):
    names = [name for name in inspect.signature(learner).parameters if name != "self"]
    documented = inspect.getdoc(learner).split("Attributes\n")[0]
    assert all(f"\n{name} : " in documented for name in names)


def test_fields_are_parameters(learner):
    model = learner(**SMALL, solver=pt.solvers.CoordinateDescent(max_iter=7))
    parameters = model.get_params()
    assert parameters["update__zero_mean"] is False
    assert parameters["solver__max_iter"] == 7
    assert "learning__strength" not in parameters
    assert learner().get_params()["learning__strength"] == 1.0
    assert "update__zero_mean" not in model.get_params(deep=False)


def test_setting_a_field_replaces_the_object(learner):
    update = pt.FilterUpdate(n_sweeps=2)
    model = learner(**SMALL, update=update)
    assert model.set_params(update__zero_mean=True, learning__strength=2.0, n_filters=3) is model
    assert model.update == pt.FilterUpdate(n_sweeps=2, zero_mean=True)
    assert model.learning == pt.Ridge(2.0)
    assert model.n_filters == 3
    assert update == pt.FilterUpdate(n_sweeps=2)
    solved = learner(solver=pt.solvers.CoordinateDescent()).set_params(solver__max_iter=5)
    assert solved.solver == pt.solvers.CoordinateDescent(max_iter=5)
    both = learner().set_params(update__n_sweeps=3, update=update)
    assert both.update.n_sweeps == 3


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"update__zeromean": True}, "update__zeromean does not exist: FilterUpdate has init, "),
        ({"solver__max_iter": 3}, "solver='cd' has no fields"),
        ({"nothing__at_all": 3}, "has no parameter 'nothing'"),
        ({"nothing": 3}, "Invalid parameter"),
        ({"update__n_sweeps": 0}, "n_sweeps must be None or a positive integer"),
    ],
)
def test_names_that_do_not_exist_are_refused(learner, parameter, message):
    with pytest.raises(ValueError, match=message):
        learner().set_params(**parameter)
    with pytest.raises(ValueError, match="learning=None has no fields"):
        learner(solver="admm").set_params(learning__strength=2.0)


def test_copies_are_equal_and_their_own(learner):
    first = np.random.default_rng(1).standard_normal((2, 3))
    model = learner(**SMALL, update=pt.FilterUpdate(init=first), learning=pt.Ridge(half_life=4))
    copy = clone(model)
    np.testing.assert_array_equal(copy.update.init, first)
    assert copy.learning == model.learning
    again = pickle.loads(pickle.dumps(model.fit(SIGNALS)))
    np.testing.assert_array_equal(again.filters_, model.filters_)
    np.testing.assert_array_equal(again.transform(SIGNALS).to_dense(), model.transform(SIGNALS).to_dense())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_over_fields(learner, n_jobs):
    grid = {"update__zero_mean": [False, True], "learning__strength": [0.5, 1.0]}
    search = GridSearchCV(learner(**SMALL), grid, cv=2, n_jobs=n_jobs).fit(SIGNALS)
    assert len(search.cv_results_["params"]) == 4
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    best = search.best_estimator_
    assert best.update.zero_mean == search.best_params_["update__zero_mean"]
    assert best.learning.strength == search.best_params_["learning__strength"]


def test_pipelines_pass_fields_on(learner):
    pipeline = Pipeline([("centre", FunctionTransformer()), ("csc", learner(**SMALL))])
    pipeline.set_params(csc__update__zero_mean=True).fit(SIGNALS)
    np.testing.assert_allclose(pipeline["csc"].filters_.sum(axis=1), 0, atol=1e-6)
    assert pipeline.get_params()["csc__update__zero_mean"] is True


def test_fields_that_exclude_each_other_are_set_together(learner):
    model = learner(**SMALL, robust=pt.Robust(alpha=2.0, warm_up=1))
    assert model.get_params()["robust__alpha"] == 2.0
    model.set_params(robust__alpha=3.5, robust__fraction=0.1)
    assert model.robust == pt.Robust(fraction=0.1, warm_up=1)
    assert learner().set_params(robust__window=30, robust=pt.Robust()).robust == pt.Robust(window=30)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"robust__alpha": 2.0}, "robust=None has no fields, so robust__alpha cannot be set"),
        ({"robust": pt.Robust(), "robust__beta": 2.0}, "robust__beta does not exist: Robust has"),
        ({"robust": pt.Robust(), "robust__alpha": -1.0}, "alpha must be a positive"),
        ({"update__zero_mean__alpha": 2.0}, "update__zero_mean__alpha does not exist"),
        ({"update__": 2.0}, "update__ does not exist"),
        ({"solver__tol": 2.0}, "solver='cd' has no fields"),
    ],
)
def test_names_of_fields_that_do_not_exist_are_refused(learner, parameter, message):
    with pytest.raises(ValueError, match=message):
        learner().set_params(**parameter)


def test_grid_search_over_passes_and_windows_that_count(learner):
    length = "n_epochs" if learner is pt.OnlineCSC else "max_iter"
    model = learner(**SMALL, robust=pt.Robust(window=10))
    search = GridSearchCV(model, {"robust__alpha": [0.5, 50.0], length: [1, 2]}, cv=2).fit(SIGNALS)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.robust == pt.Robust(alpha=search.best_params_["robust__alpha"], window=10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pt.OnlineCSC(4, 7, 0.5).fit(SIGNALS, n_epochs=2), r"n_epochs is an argument of OnlineCSC\("),
        (lambda: pt.BatchCSC(4, 7, 0.5).fit(SIGNALS, max_iter=2), r"max_iter is an argument of BatchCSC\("),
        (lambda: pt.OnlineCSC(4, 7, callbacks=[]), "callbacks is an argument of fit"),
        (lambda: pt.BatchCSC(4, 7, verbose=1), "verbose is an argument of fit"),
        (lambda: pt.FilterUpdate(rank=1), "rank is an argument of the learner"),
        (lambda: pt.FilterUpdate(robust=pt.Robust()), "robust is an argument of the learner"),
        (lambda: pt.OnlineCSC(4, 7, epochs=3), "epochs"),
    ],
)
def test_an_argument_in_another_place_is_told_its_own(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_help_is_read_in_a_few_screens(learner):
    text = pydoc.plain(pydoc.render_doc(learner))
    assert len(text.splitlines()) < 200
    names = [
        "fit(",
        "transform(",
        "encode(",
        "score(",
        "set_params(",
        "get_feature_names_out(",
        "patterns_",
        "n_jobs : ",
    ]
    assert [name for name in names if name not in text] == []
