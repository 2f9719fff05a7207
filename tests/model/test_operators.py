"""Dot tests of the convolution operator, and its agreement with scipy for every boundary."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pointillist.codes import SparseCodes
from pointillist.problem import ConvolutionOperator, Geometry, signal_shape, synthesise
from pointillist.validation import BOUNDARIES


@st.composite
def cases(draw):
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


@given(case=cases())
def test_correlate_is_the_adjoint_of_synthesise(case):
    left = np.vdot(case.operator.synthesise_dense(case.codes).astype(np.float64), case.signal)
    right = np.vdot(case.codes.astype(np.float64), case.operator.correlate(case.signal))
    scale = np.linalg.norm(case.codes) * np.linalg.norm(case.signal) * np.linalg.norm(case.filters)
    assert abs(left - right) <= (1e-6 if case.dtype == np.float32 else 1e-14) * max(scale, 1)


@given(case=cases())
def test_synthesis_agrees_with_scipy(case, reference):
    expected = reference.synthesise(case.codes, case.filters, case.geometry.boundary)
    dense = case.operator.synthesise_dense(case.codes)
    assert dense.dtype == case.dtype
    assert dense.shape == (case.geometry.channels, *case.geometry.signal)
    close(dense, expected, case.dtype, scale=10)
    index = np.flatnonzero(case.codes)
    close(case.operator.synthesise(index, case.codes.ravel()[index]), expected, case.dtype, scale=10)


@given(case=cases())
def test_correlation_at_indices_agrees_with_the_whole(case):
    whole = case.operator.correlate(case.signal)
    assert whole.shape == case.codes.shape
    index = np.flatnonzero(np.random.default_rng(0).random(whole.size) < 0.4)
    close(case.operator.correlate(case.signal, index), whole.ravel()[index], case.dtype, scale=10)


@given(case=cases())
def test_correlation_is_the_transposed_matrix(case, reference):
    assume(case.operator.n_codes < 600)
    matrix = reference.matrix(case.filters, case.geometry)
    expected = (matrix.T @ case.signal.ravel().astype(np.float64)).reshape(case.codes.shape)
    close(case.operator.correlate(case.signal), expected, case.dtype, scale=10)


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


def test_a_code_on_the_corner_places_the_filter_by_boundary():
    filters = np.arange(1.0, 7).reshape(1, 1, 2, 3)
    corner = np.array([0]), np.ones(1)
    placed = {
        boundary: ConvolutionOperator(filters, Geometry((4, 5), (2, 3), 1, boundary)).synthesise(*corner)[0]
        for boundary in BOUNDARIES
    }
    np.testing.assert_array_equal(placed["valid"][:2, :3], filters[0, 0])
    np.testing.assert_array_equal(placed["same"][:2, :2], filters[0, 0, :, 1:])
    assert placed["same"][:, 2:].sum() == 0
    assert placed["full"][0, 0] == 6
    assert placed["full"].sum() == 6
    assert placed["circular"][0, -1] == 1
    assert placed["circular"].sum() == filters.sum()


def test_operator_refuses_filters_of_another_shape():
    with pytest.raises(ValueError, match="filters must have shape"):
        ConvolutionOperator(np.ones((2, 1, 3, 3)), Geometry((8, 8), (3, 4)))


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


def test_a_boundary_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="boundary must be one of valid"):
        signal_shape((5,), (3,), "mirror")


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_exact_signals_are_those_of_filters_in_float64(boundary):
    rng = np.random.default_rng(3)
    filters, geometry = rng.standard_normal((4, 2, 5, 19)).astype(np.float32), Geometry((20, 30), (5, 19), 2, boundary)
    single, double = ConvolutionOperator(filters, geometry), ConvolutionOperator(filters.astype(float), geometry)
    codes = np.sort(rng.choice(single.n_codes, 200, replace=False))
    values = rng.standard_normal(200).astype(np.float32)
    exact = single.synthesise_exactly(codes, values)
    assert exact.dtype == np.float64
    np.testing.assert_array_equal(exact, double.synthesise(codes, values.astype(float)))
