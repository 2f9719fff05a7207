"""Tests of what `fit` is told about a run: `verbose` and `warm_start`, as scikit-learn knows them."""

import numpy as np
import pytest
from sklearn.base import clone

import pointillist as pt

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 40))
LEARNERS = {"BatchCSC": {"max_iter": 3}, "OnlineCSC": {"batch_size": 4, "n_epochs": 1}}


def _learner(name, **settings):
    usual = {"penalty": 0.5, "n_jobs": 1, "random_state": 0, **LEARNERS[name]}
    return getattr(pt, name)(3, 5, **{**usual, **settings})


@pytest.mark.parametrize("name", LEARNERS)
def test_a_warm_start_begins_with_the_filters_of_the_last_fit(name):
    model = _learner(name).fit(X)
    first = model.filters_.copy()
    given = _learner(name, penalty=0.3, update=pt.FilterUpdate(init=first)).fit(X)
    model.set_params(penalty=0.3).fit(X, warm_start=True)
    np.testing.assert_array_equal(model.filters_, given.filters_)
    assert model.update is None
    assert len(model.history_) == 3
    assert not np.array_equal(model.filters_, _learner(name, penalty=0.3).fit(X).filters_)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_warm_start_of_an_unfitted_learner_is_a_plain_one(name):
    fitted = _learner(name).fit(X)
    np.testing.assert_array_equal(clone(fitted).fit(X, warm_start=True).filters_, fitted.filters_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_filters": 4}, "warm_start needs as many filters.*3 of 5.*n_filters=4 and filter_size=5"),
        ({"filter_size": 7}, "warm_start needs as many filters"),
        ({"penalty": np.ones(3)}, "warm_start needs one penalty and one filter_size"),
        ({"n_filters": [1, 2], "filter_size": [3, 5]}, "warm_start needs one penalty and one filter_size"),
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_other_filters_cannot_be_begun_with(name, change, message):
    model = _learner(name).fit(X).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(X, warm_start=True)


def test_a_run_is_resumed_or_begun(tmp_path):
    with pytest.raises(ValueError, match="warm_start begins a new run"):
        _learner("OnlineCSC").fit(X, checkpoint=pt.Checkpoints(tmp_path / "m"), resume=True, warm_start=True)


@pytest.mark.parametrize(
    ("verbose", "steps"), [(0, []), (False, []), (1, [1, 2, 5, 10, 12]), (True, [1, 2, 5, 10, 12])]
)
def test_lines_come_less_and_less_often(verbose, steps, capsys):
    _learner("OnlineCSC", batch_size=1).fit(X, verbose=verbose)
    said = capsys.readouterr().out.splitlines()
    assert [int(line.split(":")[0].removeprefix("step ")) for line in said] == steps


def test_two_tells_of_every_step_and_of_signals_that_are_held_out(capsys):
    model = _learner("BatchCSC").fit(X, verbose=2, validation=X[:2])
    said = capsys.readouterr().out.splitlines()
    last = model.history_[-1]
    assert len(said) == 3
    assert said[2].startswith(f"step 3: objective {last['objective']:.6g}, held-out objective ")
    assert f" {last['nnz']:,} codes, " in said[2]
