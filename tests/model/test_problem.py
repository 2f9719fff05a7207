"""The certificate against dense optima by scikit-learn, and λ_max on both sides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.problem import Geometry, Problem, broadcast_penalty, certificate, lambda_max, relative_gap
from pointillist.validation import BOUNDARIES

SHAPES = [((20,), (4,)), ((6, 7), (3, 2)), ((4, 4, 5), (2, 2, 3))]


@st.composite
def cases(draw):
    """Arguments of a random problem."""
    signal, size = draw(st.sampled_from(SHAPES))
    return {
        "seed": draw(st.integers(0, 2**16)),
        "signal": signal,
        "size": size,
        "boundary": draw(st.sampled_from(BOUNDARIES)),
        "channels": draw(st.integers(1, 2)),
        "weights": draw(st.sampled_from([None, "mask", "uneven"])),
        "nonnegative": draw(st.booleans()),
        "penalty": draw(st.sampled_from(["number", "filter", "position"])),
        "sampled": draw(st.booleans()),
        "dtype": draw(st.sampled_from([np.float32, np.float64])),
    }


def build(reference, case):
    """The problem, its signal, D of the codes that may be non-zero, and their penalties."""
    case = dict(case)
    rng = np.random.default_rng(case.pop("seed"))
    kind, sampled = case.pop("penalty"), case.pop("sampled")
    geometry = Geometry(case["signal"], case["size"], case["channels"], case["boundary"])
    shape = {"number": (), "filter": (3,), "position": (3, *geometry.grid)}[kind]
    sample = np.flatnonzero(rng.random(3 * geometry.n_positions) < 0.4) if sampled else None
    problem, x = reference.problem(rng, **case, penalty=0.2 + 0.5 * rng.random(shape), sample=sample)
    matrix = reference.matrix(problem.filters, geometry)
    prices = np.broadcast_to(problem.penalty, (3, geometry.n_positions)).ravel()
    allowed = np.arange(matrix.shape[1]) if sample is None else sample
    return problem, x, matrix[:, allowed], prices[allowed], allowed


@given(case=cases())
def test_gap_bounds_the_distance_to_the_dense_optimum(case, reference):
    problem, x, matrix, prices, allowed = build(reference, case)
    best = reference.lasso(matrix, x, prices, problem.weights, problem.nonnegative)
    rng = np.random.default_rng(case["seed"] + 1)
    answers = [np.zeros_like(best.codes), best.codes]
    for noise in (1e-3, 1e-1, 1.0):
        guess = best.codes + noise * rng.standard_normal(best.codes.shape) * (rng.random(best.codes.shape) < 0.3)
        answers.append(np.maximum(guess, 0) if problem.nonnegative else guess)
    for codes in answers:
        chosen = np.flatnonzero(codes)
        found = certificate(problem, 0, x, allowed[chosen], codes[chosen])
        difference = x.ravel().astype(np.float64) - matrix @ codes
        w = np.ones(x.size) if problem.weights is None else problem.weights.ravel().astype(np.float64)
        objective = 0.5 * np.sum(w * difference**2) + np.sum(prices * np.abs(codes))
        assert found.objective == pytest.approx(objective, rel=1e-9)
        assert found.objective * (1 - found.gap) <= best.objective * (1 + 1e-9)
        assert best.objective <= found.objective * (1 + 1e-9)
        np.testing.assert_allclose(found.residual.ravel(), w * difference, atol=1e-9)
    exact = certificate(problem, 0, x, allowed, best.codes)
    assert exact.gap < 1e-4


@given(case=cases())
def test_lambda_max_separates_zero_from_non_zero(case, reference):
    problem, x, matrix, prices, allowed = build(reference, case)
    factor = lambda_max(problem, [x])[0]
    if len(allowed) == 0:
        assert factor == 0
        return
    w = np.ones(x.size) if problem.weights is None else problem.weights.ravel().astype(np.float64)
    correlations = matrix.T @ (w * x.ravel().astype(np.float64))
    correlations = correlations if problem.nonnegative else np.abs(correlations)
    assert factor == pytest.approx(max(np.max(correlations / prices), 0), rel=1e-9)
    none = np.empty(0, np.int64)
    scaled = {s: Problem(**{**vars_of(problem), "penalty": problem.penalty * factor * s}) for s in (1 + 1e-9, 0.99)}
    assert certificate(scaled[1 + 1e-9], 0, x, none, np.empty(0)).gap < 1e-9
    below = reference.lasso(matrix, x, prices * factor * 0.99, problem.weights, problem.nonnegative)
    assert np.count_nonzero(below.codes) > 0
    assert certificate(scaled[0.99], 0, x, none, np.empty(0)).gap > 0


def vars_of(problem):
    return {
        name: getattr(problem, name) for name in ("filters", "geometry", "penalty", "weights", "drawn", "nonnegative")
    }


def test_certificate_of_a_zero_signal_is_exact(reference):
    problem, x = reference.problem(np.random.default_rng(0), (12,), (3,))
    found = certificate(problem, 0, np.zeros_like(x), np.empty(0, np.int64), np.empty(0))
    assert (found.objective, found.gap) == (0, 0)


def test_each_signal_uses_its_own_weights(reference):
    problem, x = reference.problem(np.random.default_rng(1), (12,), (3,))
    weights = np.random.default_rng(2).random((2, 1, 12))
    own = Problem(**{**vars_of(problem), "weights": weights})
    assert own.has_own_weights
    none = np.empty(0, np.int64)
    for i in range(2):
        expected = 0.5 * np.sum(weights[i] * x**2)
        assert certificate(own, i, x, none, np.empty(0)).objective == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shape", "expected"), [((), (2, 1)), ((2,), (2, 1)), ((2, 1, 1), (2, 20)), ((4, 5), (2, 20)), ((2, 4, 5), (2, 20))]
)
def test_penalties_broadcast(shape, expected):
    value = 1 + np.random.default_rng(0).random(shape)
    price = broadcast_penalty(value, 2, Geometry((4, 5), (3, 3)))
    assert price.shape == expected
    whole = value[:, None, None] if shape == (2,) else value
    full = np.broadcast_to(whole, (2, 4, 5)).reshape(2, 20)
    np.testing.assert_array_equal(np.broadcast_to(price, (2, 20)), full)
    problem = Problem(filters=np.ones((2, 1, 3, 3)), geometry=Geometry((4, 5), (3, 3)), penalty=price)
    index = np.array([0, 7, 19, 20, 39])
    np.testing.assert_array_equal(problem.penalty_at(index), full.ravel()[index])


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf, [1.0, 0.0], np.ones((3, 2, 2))])
def test_bad_penalties_are_named(bad):
    with pytest.raises(ValueError, match="penalty"):
        broadcast_penalty(bad, 2, Geometry((4, 5), (3, 3)))


@pytest.mark.parametrize(
    ("objective", "loss", "energy", "ratio", "expected"),
    [
        (3.0, 2.0, 4.0, 0.5, 1 / 3),  # the peak at 1 is feasible: its dual objective is 2
        (3.0, 2.0, 4.0, 2.0, 0.5),  # half of the residual is: 2 − ½
        (3.0, 2.0, -1.0, 0.5, 1.0),  # a dual objective of zero is always to be had
        (0.0, 0.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, 3.0, 1.0),
    ],
)
def test_relative_gaps_of_one_signal_and_of_many(objective, loss, energy, ratio, expected):
    assert relative_gap(objective, loss, energy, ratio) == pytest.approx(expected)
    several = relative_gap(*(np.array([value, 1.0]) for value in (objective, loss, energy, ratio)))
    np.testing.assert_allclose(several, [expected, relative_gap(1.0, 1.0, 1.0, 1.0)])
