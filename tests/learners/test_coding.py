"""How codes are solved for while learning, and the pairs of settings of which one would be ignored."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.learners.coding import check_learning, learning_solver

SIGNALS = np.random.default_rng(0).standard_normal((3, 30))
SMALL = {"n_filters": 2, "filter_size": 3, "penalty": 0.5, "random_state": 0, "n_jobs": 1}


@pytest.mark.parametrize("learning", [None, pt.Ridge()])
def test_the_ridge_fades(learning):
    assert learning_solver("cd", learning, 0, 6.0).ridge == 1.0
    assert learning_solver("cd", learning, 6, 6.0).ridge == pytest.approx(0.5)
    late = learning_solver("cd", learning, 3000, 6.0)
    assert 0 < late.ridge < 1e-5
    assert late.max_iter == learning_solver("cd", learning, 0, 6.0).max_iter
    on_line = learning_solver("cd", learning, 3000, 6.0, 1)
    assert (on_line.ridge, on_line.tol) == (0.0, 0.1)


def test_a_ridge_has_a_strength_and_a_half_life_of_its_own():
    assert learning_solver("cd", pt.Ridge(3.0, 4), 4, 6.0).ridge == pytest.approx(1.5)


@pytest.mark.parametrize(("model", "half_life"), [(pt.BatchCSC(max_iter=7), 3.5), (pt.OnlineCSC(), 10.0)])
def test_the_half_life_follows_the_run(model, half_life):
    assert model.training_step().half_life == half_life


@pytest.mark.parametrize("solver", ["admm", "fft"])
def test_the_papers_solvers_make_ten_iterations(solver):
    made = learning_solver(solver, None, 3, 6.0)
    assert (made.max_iter, made.tol) == (10, 0.0)
    assert learning_solver(solver, 0.01, 3, 6.0).tol == 0.01


def test_a_gap_and_an_object_are_used_as_they_are():
    gap = learning_solver("cd", 0.02, 0, 6.0)
    assert (gap.tol, gap.ridge) == (0.02, 0.0)
    own = pt.solvers.CoordinateDescent(max_iter=7)
    assert learning_solver(own, None, 0, 6.0) is own


@pytest.mark.parametrize(
    ("solver", "learning", "message"),
    [
        (pt.solvers.CoordinateDescent(), 0.1, "learning=0.1 is for named solvers"),
        (pt.solvers.CoordinateDescent(), pt.Ridge(), "is for named solvers"),
        ("admm", pt.Ridge(), 'Ridge is for solver="cd"'),
        ("fft", pt.Ridge(), 'Ridge is for solver="cd"'),
        ("cd", "ridge", "learning must be None, a Ridge or a relative duality gap"),
        ("cd", True, "learning must be None"),
        ("cd", -0.1, "learning must be None"),
        ("simplex", None, "solver must be one of"),
    ],
)
def test_pairs_that_exclude_each_other_are_refused(solver, learning, message):
    with pytest.raises(ValueError, match=message):
        check_learning(solver, learning)
    for learner in (pt.BatchCSC, pt.OnlineCSC):
        with pytest.raises(ValueError, match=message):
            learner(**SMALL, solver=solver, learning=learning).fit(SIGNALS)


def test_a_tolerance_belongs_to_the_solver_object():
    for learner in (pt.BatchCSC, pt.OnlineCSC):
        with pytest.raises(ValueError, match=r"tol=0\.01 would have no effect"):
            learner(**SMALL, solver=pt.solvers.CoordinateDescent(), tol=0.01).fit(SIGNALS)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"strength": 0.0}, "strength must be (a )?positive, got 0.0; to learn without a ridge: learning=0.1"),
        ({"strength": float("nan")}, "strength must be (a )?positive"),
        ({"half_life": 0}, "half_life must be None or a positive"),
    ],
)
def test_bad_ridges_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        pt.Ridge(**setting)
