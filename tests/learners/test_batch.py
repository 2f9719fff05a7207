"""What only the batch learner does."""

from itertools import pairwise

import numpy as np
import pytest

import pointillist as pt
from pointillist.learners.estimators import training_step

SMALL = {"n_filters": 4, "filter_size": 5, "penalty": 0.3, "random_state": 0, "n_jobs": 1}


@pytest.fixture
def signals():
    return np.cumsum(np.random.default_rng(0).standard_normal((5, 80)), axis=1) / 3


def test_exact_alternation_never_rises(signals):
    """Codes to a tight tolerance, then a descent on the filters: the objective goes down every time."""
    update = pt.FilterUpdate(replace_unused=False)
    model = pt.BatchCSC(max_iter=10, sampling=1.0, learning=1e-6, update=update, **SMALL)
    model.fit(signals.astype(np.float64))
    objectives = np.array([info["objective"] for info in model.history_])
    assert np.all(np.diff(objectives) <= 1e-5 * objectives[:-1])
    assert objectives[-1] < objectives[0]


def test_the_recorded_objective_is_that_of_the_codes_and_new_filters(signals):
    model = pt.BatchCSC(max_iter=1, sampling=1.0, learning=1e-7, **SMALL).fit(signals)
    step = training_step(pt.BatchCSC(max_iter=1, sampling=1.0, **SMALL))
    start = step.start(step.check(signals), 0).filters
    codes = pt.encode(signals, start[:, 0], 0.3, tol=1e-7)
    best = pt.encode(signals, model.filters_, 0.3, tol=1e-7).objective.sum()
    assert best <= model.history_[0]["objective"] * (1 + 1e-6)
    assert model.history_[0]["objective"] <= codes.objective.sum()
    assert model.history_[0]["nnz"] == pytest.approx(codes.codes.nnz, rel=0.05)


def test_small_changes_stop_it(signals):
    eager = pt.BatchCSC(max_iter=100, sampling=1.0, **SMALL).fit(signals, min_change=0.5)
    assert eager.n_iter_ == 3
    patient = pt.BatchCSC(max_iter=30, sampling=1.0, learning=0.01, **SMALL).fit(signals, min_change=1e-3)
    assert 3 < patient.n_iter_ < 30
    recent = [info["objective"] for info in patient.history_[-3:]]
    assert all(abs(b - a) < 1e-3 * a for a, b in pairwise(recent))
    assert pt.BatchCSC(max_iter=5, **SMALL).fit(signals).n_iter_ == 5


def test_bad_max_iter_is_named(signals):
    with pytest.raises(ValueError, match="max_iter must be a positive integer"):
        pt.BatchCSC(max_iter=0, **SMALL).fit(signals)


def test_forgetting_is_refused(signals):
    with pytest.raises(ValueError, match="forgetting, which is for OnlineCSC"):
        pt.BatchCSC(update=pt.FilterUpdate(forgetting=1.0), **SMALL).fit(signals)
