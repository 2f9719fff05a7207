"""Results, statuses, and solvers that users write: the documentation's meets ours, and answers that are none are refused."""

import re
from pathlib import Path

import numpy as np
import pytest

import pointillist as pt
from pointillist.codes import SparseCodes
from pointillist.solvers.base import Result, Status, merge_results, result_of


def part(numbers, statuses):
    return Result(
        SparseCodes.from_dense([np.full((1, 3), n, float) for n in numbers]),
        np.array(numbers, float),
        np.array(numbers) / 100,
        tuple(statuses),
        np.array(numbers),
        [np.full((1, 3), n) for n in numbers],
    )


def test_merge_puts_every_signal_in_its_place():
    ok, limit = Status.CONVERGED, Status.ITERATION_LIMIT
    merged = merge_results([part([5, 1, 3], [ok, ok, limit]), part([2, 4], [ok, ok])], [[4, 0, 2], [1, 3]])
    np.testing.assert_array_equal(merged.objective, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(merged.gap, np.arange(1, 6) / 100)
    np.testing.assert_array_equal(merged.iterations, [1, 2, 3, 4, 5])
    assert merged.statuses == (ok, ok, limit, ok, ok)
    assert merged.status is limit
    assert [one.values[0][0] for one in merged.codes] == [1, 2, 3, 4, 5]
    assert [residual[0, 0] for residual in merged.residuals] == [1, 2, 3, 4, 5]


def test_the_worst_status_wins():
    assert part([1, 2], [Status.CONVERGED] * 2).status is Status.CONVERGED
    assert part([1, 2], [Status.ITERATION_LIMIT, Status.DIVERGED]).status is Status.DIVERGED
    assert len({status.advice for status in Status}) == 3


def test_signals_are_judged_by_their_gaps_and_objectives(reference):
    problem, x = reference.problem(np.random.default_rng(0), (9,), (3,))
    gaps, objectives = np.array([0.1, 0.2, 0.0, 0.0, np.nan]), np.array([1, 1, np.nan, np.inf, 1])
    nothing = [np.empty(0, int)] * 5
    found = result_of(problem, nothing, nothing, objectives, gaps, np.zeros(5, int), [x] * 5, 0.1)
    names = ["converged", "iteration limit", "diverged", "diverged", "diverged"]
    assert [status.value for status in found.statuses] == names


PAGE = Path(__file__).parents[2] / "docs" / "api" / "solvers.md"
DRAWN = np.random.default_rng(0)
SIGNALS = DRAWN.standard_normal((3, 40))
FILTERS = DRAWN.standard_normal((3, 5)) / 3


@pytest.fixture(scope="module")
def own():
    """The solver of the page in the documentation."""
    block = re.search(r"```python\n(.*?)\nsignals = ", PAGE.read_text("utf-8"), re.S)[1]
    names = {"__name__": "page"}
    exec(block, names)
    return names["ProximalGradient"]


@pytest.mark.parametrize(
    "setting",
    [
        {}, {"weights": (DRAWN.random(SIGNALS.shape) < 0.8).astype(float)}, {"weights": 3 * DRAWN.random((40,))},
        {"boundary": "full"}, {"boundary": "circular"}, {"sampling": 0.5, "random_state": 1}, {"nonnegative": True},
        {"penalty": np.array([0.3, 0.5, 0.9])}, {"penalty": 0.3 + DRAWN.random((3, 40))},
    ],
)  # fmt: skip
def test_the_page_solves_what_we_solve(own, setting):
    given = {"penalty": 0.5, "n_jobs": 1, **setting}
    mine = pt.encode(SIGNALS, FILTERS, solver=own(tol=1e-2), **given)
    ours = pt.encode(SIGNALS, FILTERS, tol=1e-6, **given)
    assert mine.status is pt.Status.CONVERGED
    np.testing.assert_allclose(mine.objective, ours.objective, rtol=1e-2)
    assert np.all(mine.objective * (1 - mine.gap) <= ours.objective * (1 + 1e-6))
    assert np.all(mine.iterations == 300)


def test_channels_and_pictures_are_solved_too(own):
    pictures, filters = DRAWN.standard_normal((2, 2, 9, 10)), DRAWN.standard_normal((2, 2, 3, 3)) / 4
    mine = pt.encode(pictures, filters, 0.5, channels=True, solver=own())
    np.testing.assert_allclose(mine.objective, pt.encode(pictures, filters, 0.5, channels=True).objective, rtol=1e-2)


@pytest.mark.parametrize(("kind", "few"), [(pt.BatchCSC, {"max_iter": 2}), (pt.OnlineCSC, {"batch_size": 2})])
def test_both_learners_learn_with_it(own, kind, few):
    exact = {"solver": pt.solvers.CoordinateDescent(tol=1e-7, max_iter=500)}
    found = [
        kind(3, 5, 0.5, n_jobs=1, random_state=0, **few, **solver).fit(SIGNALS).filters_
        for solver in ({"solver": own(max_iter=2000, tol=1e-2)}, exact)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=2e-3)
    model = kind(3, 5, 0.5, solver=own(), n_jobs=1, random_state=0, **few).set_params(solver__max_iter=400).fit(SIGNALS)
    assert np.all(model.encode(SIGNALS).iterations == 400)
    assert isinstance(model.solver, pt.solvers.Solver)
    assert "ProximalGradient(max_iter=400, tol=0.01)" in repr(model)


def test_a_path_goes_with_it_and_a_start_is_refused(own):
    path = pt.penalty_path(SIGNALS, FILTERS, n=2, smallest=0.3, solver=own(max_iter=400))
    assert path[1].result.codes.nnz > path[0].result.codes.nnz == 0
    with pytest.raises(ValueError, match="ProximalGradient begins at zero"):
        pt.encode(SIGNALS, FILTERS, 0.5, solver=own(), start=path[1].result.codes)


class Silly:
    """A solver that gives back what it is told to; it does not say whether it takes a start."""

    def __init__(self, answer):
        self.answer = answer

    def prepare(self, problem):
        return problem

    def solve(self, state, signals, *, n_jobs=1, start=None):
        return self.answer(state, signals)


def _answer(codes):
    return lambda problem, signals: pt.certify(problem, signals, codes)


DENSE = np.ones((3, 3, 40))


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda problem, signals: None, TypeError, "Silly: solve must return a Result for all 3 signals.*got None"),
        (_answer(DENSE), ValueError, "codes must be SparseCodes, got ndarray"),
        (_answer(pt.SparseCodes.from_dense(DENSE[:2])), ValueError, "codes must be of 3 signals and 3 filters"),
        (_answer(pt.SparseCodes.from_dense(DENSE[..., 1:])), ValueError, r"on the grid \(40,\)"),
        (_answer(pt.SparseCodes.from_dense(-DENSE)), ValueError, "codes of signal 0 are negative"),
        (_answer(pt.SparseCodes.from_dense(DENSE)), ValueError, "non-zero where problem.sample has no code"),
        (lambda p, signals: pt.certify(p, [s[0] for s in signals], None), ValueError, "codes must be SparseCodes"),
        (
            lambda p, signals: pt.certify(p, [s[0] for s in signals], pt.SparseCodes.from_dense(DENSE)),
            ValueError,
            r"signals must be a list of arrays of shape \(1, 40\)",
        ),
    ],
)
def test_answers_that_are_none_are_refused(answer, error, message):
    sampled = {"sampling": 0.5, "random_state": 0} if "sample" in message else {}
    with pytest.raises(error, match=message):
        pt.encode(SIGNALS, FILTERS, 0.5, solver=Silly(answer), nonnegative=True, **sampled)


def test_a_certificate_judges_bad_codes_too():
    filters = FILTERS / np.linalg.norm(FILTERS, axis=1, keepdims=True)  # solvers are given filters of norms near one
    result = pt.encode(SIGNALS, filters, 0.5, tol=1e-5)
    again = []
    answer = lambda problem, signals: again.append(pt.certify(problem, signals, result.codes, tol=1e-4)) or again[0]  # noqa: E731
    judged = pt.encode(SIGNALS, filters, 0.5, solver=Silly(answer))
    np.testing.assert_allclose(judged.objective, result.objective, rtol=1e-9)
    assert judged.status is pt.Status.CONVERGED
    nothing = pt.SparseCodes.from_dense(0 * DENSE)
    with pytest.warns(UserWarning, match="iteration limit"):
        assert pt.encode(SIGNALS, filters, 0.5, solver=Silly(_answer(nothing))).status is pt.Status.ITERATION_LIMIT
