"""How codes are solved for while learning, and the pairs of settings of which one would be ignored."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.learners.estimators import training_step

SIGNALS = np.random.default_rng(0).standard_normal((3, 30))
SMALL = {"n_filters": 2, "filter_size": 3, "penalty": 0.5, "random_state": 0, "n_jobs": 1}


def coder(step, ndim=2, **settings):
    """The solver of a step, for a run whose ridge has a half-life of six steps unless it says otherwise."""
    return training_step(pt.BatchCSC(max_iter=12, **settings)).coder(step, ndim)


@pytest.mark.parametrize("learning", [None, pt.Ridge()])
def test_the_ridge_fades(learning):
    assert coder(0, learning=learning).ridge == 1.0
    assert coder(6, learning=learning).ridge == pytest.approx(0.5)
    late = coder(3000, learning=learning)
    assert 0 < late.ridge < 1e-5
    assert late.max_iter == coder(0, learning=learning).max_iter
    on_line = coder(3000, 1, learning=learning)
    assert (on_line.ridge, on_line.tol) == (0.0, 0.1)


def test_a_ridge_has_a_strength_and_a_half_life_of_its_own():
    assert coder(4, learning=pt.Ridge(3.0, 4)).ridge == pytest.approx(1.5)


def test_the_half_life_of_a_stream_does_not_follow_the_run():
    assert training_step(pt.OnlineCSC()).coder(10, 2).ridge == pytest.approx(0.5)


@pytest.mark.parametrize("solver", ["admm", "fft"])
def test_the_papers_solvers_make_ten_iterations(solver):
    made = coder(3, solver=solver)
    assert (made.max_iter, made.tol) == (10, 0.0)
    assert coder(3, solver=solver, learning=0.01).tol == 0.01


def test_a_gap_and_an_object_are_used_as_they_are():
    gap = coder(0, learning=0.02)
    assert (gap.tol, gap.ridge) == (0.02, 0.0)
    own = pt.solvers.CoordinateDescent(max_iter=7)
    assert coder(0, solver=own) is own


@pytest.mark.parametrize(
    ("solver", "learning", "message"),
    [
        (pt.solvers.CoordinateDescent(), 0.1, "learning=0.1 is not for solver=CoordinateDescent"),
        (pt.solvers.CoordinateDescent(), pt.Ridge(), "a Ridge is for"),
        ("admm", pt.Ridge(), 'a Ridge is for "cd"'),
        ("fft", pt.Ridge(), 'a Ridge is for "cd"'),
        ("cd", "ridge", "learning must be None, a Ridge or a relative duality gap"),
        ("cd", True, "learning must be None"),
        ("cd", -0.1, "learning must be None"),
        ("simplex", None, "solver must be one of"),
    ],
)
def test_pairs_that_exclude_each_other_are_refused(solver, learning, message):
    for learner in (pt.BatchCSC, pt.OnlineCSC):
        with pytest.raises(ValueError, match=message):
            learner(**SMALL, solver=solver, learning=learning).fit(SIGNALS)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"strength": 0.0}, "strength must be (a )?positive, got 0.0; to learn without a ridge: learning=0.1"),
    ],
)
def test_bad_ridges_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        pt.Ridge(**setting)
