"""The map on a tiny problem: SPORCO is tuned and counted rightly, and a point has both leads."""

import numpy as np
import pytest
import scipy.fft
from benchmarks.map import Case, measure
from benchmarks.reach import Task
from benchmarks.tuned import objective

import pointillist as pt

PENALTY = 0.2


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((4, 3, 3))
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    return Task(rng.standard_normal((2, 16, 15)).astype(np.float32), filters.astype(np.float32), PENALTY, "circular")


def spectra_of(task):
    return scipy.fft.rfft2(task.filters.astype(np.float64), s=task.images.shape[1:]).transpose(1, 2, 0)


def test_the_objective_is_ours(task):
    found = task.solve(pt.solvers.CoordinateDescent(tol=1e-4))
    centred = found.codes.to_dense()[0].transpose(1, 2, 0)
    codes = np.roll(centred, (-1, -1), (0, 1))  # from where a filter's centre lies to where its corner does
    value = objective(task.images[0].astype(np.float64), spectra_of(task), codes, PENALTY)
    assert value == pytest.approx(found.objective[0], rel=1e-6)


@pytest.mark.parametrize("n_images", [1, 2])
def test_a_point_has_both_leads(sporco, monkeypatch, task, n_images):
    monkeypatch.setattr("benchmarks.map.threads", lambda: 1)  # tiny transforms wait long for a busy second core
    case = Case("λ", task.images[:n_images], task.filters, PENALTY)
    outcome = measure(case, limit=200, repeats=1, shares=(0.2,))
    assert outcome.reached
    assert 0 < outcome.density < 4
    assert len(outcome.row()) == 10
    ways = "in one call" in outcome.their_setting or "one by one" in outcome.their_setting
    assert ways == (n_images > 1)
