"""Tests of the problem: its shapes, its operators against dense matrices, its certificate."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pointillist.codes import SparseCodes
from pointillist.problem import (
    ConvolutionOperator,
    Geometry,
    Problem,
    broadcast_penalty,
    certificate,
    lambda_max,
    relative_gap,
    signal_shape,
    synthesise,
)
from pointillist.validation import BOUNDARIES


@st.composite
def geometries(draw):
    ndim = draw(st.integers(1, 3))
    size = tuple(draw(st.integers(1, 4)) for _ in range(ndim))
    signal = tuple(f + draw(st.integers(0, 5)) for f in size)
    return Geometry(signal, size, draw(st.integers(1, 3)), draw(st.sampled_from(BOUNDARIES)))


@pytest.mark.parametrize(
    ("boundary", "grid", "padded", "offset"),
    [
        ("valid", (6, 5), (8, 8), (0, 0)),
        ("same", (8, 8), (10, 11), (1, 1)),
        ("full", (10, 11), (12, 14), (2, 3)),
        ("circular", (8, 8), (10, 11), (1, 1)),
    ],
)
def test_shapes_of_each_boundary(boundary, grid, padded, offset):
    geometry = Geometry((8, 8), (3, 4), boundary=boundary)
    assert (geometry.grid, geometry.padded, geometry.offset) == (grid, padded, offset)
    assert geometry.n_positions == grid[0] * grid[1]
    assert geometry.padded_length >= padded[0] * padded[1] + 16


@given(geometries())
def test_gather_is_the_adjoint_of_spread(geometry):
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((geometry.channels, *geometry.signal))
    flat = rng.standard_normal(geometry.padded_length)
    left = np.vdot(geometry.spread(signal), flat)
    right = np.vdot(signal, geometry.gather(flat))
    assert left == pytest.approx(right, rel=1e-12, abs=1e-12)


@given(geometries())
def test_spread_puts_the_signal_at_its_offset(geometry):
    rng = np.random.default_rng(1)
    signal = rng.standard_normal((geometry.channels, *geometry.signal)).astype(np.float32)
    flat = geometry.spread(signal)
    assert flat.dtype == np.float32
    assert flat.shape == (geometry.padded_length,)
    box = flat[: geometry.channels * int(np.prod(geometry.padded))].reshape(-1, *geometry.padded)
    for place in np.ndindex(geometry.padded):
        inside = tuple(p - o for p, o in zip(place, geometry.offset, strict=True))
        if geometry.boundary == "circular":
            inside = tuple(p % s for p, s in zip(inside, geometry.signal, strict=True))
        seen = all(0 <= p < s for p, s in zip(inside, geometry.signal, strict=True))
        expected = signal[(slice(None), *inside)] if seen else 0
        np.testing.assert_array_equal(box[(slice(None), *place)], expected)
    assert not np.any(flat[box.size :])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((8, 8), (3, 3), 1, "mirror"), "boundary must be one of .* got 'mirror'"),
        (((8,), (3, 3)), "dimensions"),
        (((8, 2), (3, 3)), "larger than the signal"),
    ],
)
def test_bad_geometry_says_why(arguments, message):
    with pytest.raises(ValueError, match=message):
        Geometry(*arguments)


@st.composite
def operator_cases(draw):
    """Geometries with odd, even and uneven filters; last axes beyond 16 samples and grids narrower than 16."""
    ndim = draw(st.integers(1, 3))
    last = draw(st.sampled_from([1, 3, 4, 5, 8, 11, 16, 17, 19, 33]))
    size = (*(draw(st.integers(1, 4)) for _ in range(ndim - 1)), last)
    signal = (*(f + draw(st.integers(0, 3)) for f in size[:-1]), last + draw(st.sampled_from([0, 1, 7, 15, 16, 21])))
    return Case(
        Geometry(signal, size, draw(st.integers(1, 3)), draw(st.sampled_from(BOUNDARIES))),
        draw(st.integers(1, 10)),
        draw(st.sampled_from([np.float32, np.float64])),
    )


class Case:
    def __init__(self, geometry, n_filters, dtype):
        rng = np.random.default_rng([geometry.n_positions, n_filters])
        self.geometry, self.dtype = geometry, dtype
        shape = (n_filters, geometry.channels, *geometry.filter)
        self.filters = rng.standard_normal(shape).astype(dtype)
        self.codes = rng.standard_normal((n_filters, *geometry.grid)).astype(dtype)
        self.codes[rng.random(self.codes.shape) < 0.5] = 0
        self.signal = rng.standard_normal((geometry.channels, *geometry.signal)).astype(dtype)
        self.operator = ConvolutionOperator(self.filters, geometry)

    def __repr__(self):
        return f"{self.geometry}, {len(self.filters)} filters, {self.dtype.__name__}"


def close(actual, expected, dtype, scale=1.0):
    tolerance = (1e-5 if dtype == np.float32 else 1e-13) * scale
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.max(np.abs(expected), initial=1.0))


@given(case=operator_cases())
def test_synthesis_agrees_with_scipy(case, reference):
    expected = reference.synthesise(case.codes, case.filters, case.geometry.boundary)
    dense = case.operator.synthesise_dense(case.codes)
    assert dense.dtype == case.dtype
    assert dense.shape == (case.geometry.channels, *case.geometry.signal)
    close(dense, expected, case.dtype, scale=10)
    index = np.flatnonzero(case.codes)
    close(case.operator.synthesise(index, case.codes.ravel()[index]), expected, case.dtype, scale=10)


@given(case=operator_cases())
def test_correlation_is_the_transposed_matrix(case, reference):
    assume(case.operator.n_codes < 600)
    matrix = reference.matrix(case.filters, case.geometry)
    expected = matrix.T @ case.signal.ravel().astype(np.float64)
    close(case.operator.correlate(case.signal), expected.reshape(case.codes.shape), case.dtype, scale=10)
    index = np.flatnonzero(np.random.default_rng(0).random(expected.size) < 0.4)
    close(case.operator.correlate(case.signal, index), expected[index], case.dtype, scale=10)


@pytest.mark.parametrize("size", [(5,), (4,), (3, 4), (6, 1), (2, 3, 4)])
@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_the_documented_centre_falls_on_the_code(size, boundary):
    signal = tuple(12 + i for i in range(len(size)))
    centre = tuple((s - 1) // 2 for s in size)
    filters = np.zeros((1, 1, *size))
    filters[(0, 0, *centre)] = 1
    operator = ConvolutionOperator(filters, Geometry(signal, size, 1, boundary))
    x = np.random.default_rng(0).standard_normal((1, *signal))
    np.testing.assert_array_equal(operator.synthesise_dense(x), x)
    np.testing.assert_array_equal(operator.correlate(x), x)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_synthesise_serves_signals_of_several_shapes(boundary, reference):
    rng = np.random.default_rng(3)
    filters = rng.standard_normal((2, 2, 3, 2))
    shapes = [(6, 7), (5, 5), (6, 7)]
    dense = [rng.standard_normal((2, *Geometry(s, (3, 2), 2, boundary).grid)) for s in shapes]
    codes = SparseCodes.from_dense(dense)
    assert [signal_shape(grid, (3, 2), boundary) for grid in codes.grids] == shapes
    for made, code in zip(synthesise(codes, filters, shapes, 2, boundary), dense, strict=True):
        np.testing.assert_allclose(made, reference.synthesise(code, filters, boundary), atol=1e-12)


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_exact_signals_are_those_of_filters_in_float64(boundary):
    rng = np.random.default_rng(3)
    filters, geometry = rng.standard_normal((4, 2, 5, 19)).astype(np.float32), Geometry((20, 30), (5, 19), 2, boundary)
    single, double = ConvolutionOperator(filters, geometry), ConvolutionOperator(filters.astype(float), geometry)
    codes = np.sort(rng.choice(single.n_codes, 200, replace=False))
    values = rng.standard_normal(200).astype(np.float32)
    exact = single.synthesise(codes, values, dtype=np.float64)
    assert exact.dtype == np.float64
    np.testing.assert_array_equal(exact, double.synthesise(codes, values.astype(float)))


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_refitted_codes_are_those_of_least_squares(boundary, reference):
    rng = np.random.default_rng(4)
    filters, geometry = reference.filters(rng, 3, 2, (5,)), Geometry((30,), (5,), 2, boundary)
    signal, root = rng.standard_normal((2, 30)), np.sqrt(rng.random((2, 30)))
    index = np.array([2, 17, 30, 41, 66])
    matrix = root.reshape(-1, 1) * reference.matrix(filters, geometry, index)
    expected, *_ = np.linalg.lstsq(matrix, (root * signal).ravel(), rcond=None)
    operator = ConvolutionOperator(filters, geometry)
    np.testing.assert_allclose(operator.refit(index, rng.standard_normal(5), signal, root, 30), expected, atol=1e-6)
    assert len(operator.refit(index[:0], np.empty(0), signal, root, 30)) == 0


SHAPES = [((20,), (4,)), ((6, 7), (3, 2)), ((4, 4, 5), (2, 2, 3))]


@st.composite
def problem_cases(draw):
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


@given(case=problem_cases())
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


@given(case=problem_cases())
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
    above, within = (replace(problem, penalty=problem.penalty * factor * scale) for scale in (1 + 1e-9, 0.99))
    assert certificate(above, 0, x, none, np.empty(0)).gap < 1e-9
    below = reference.lasso(matrix, x, prices * factor * 0.99, problem.weights, problem.nonnegative)
    assert np.count_nonzero(below.codes) > 0
    assert certificate(within, 0, x, none, np.empty(0)).gap > 0


def test_certificate_of_a_zero_signal_is_exact(reference):
    problem, x = reference.problem(np.random.default_rng(0), (12,), (3,))
    found = certificate(problem, 0, np.zeros_like(x), np.empty(0, np.int64), np.empty(0))
    assert (found.objective, found.gap) == (0, 0)


def test_each_signal_uses_its_own_weights(reference):
    problem, x = reference.problem(np.random.default_rng(1), (12,), (3,))
    weights = np.random.default_rng(2).random((2, 1, 12))
    own = replace(problem, weights=weights)
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
    assert problem.price(index, np.array([-1.0, 2, 0, 3, -4])) == pytest.approx(full.ravel()[index] @ [1, 2, 0, 3, 4])


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
