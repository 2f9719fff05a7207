"""Projections on the filters' constraints: feasible, idempotent and nearest; sizes of filters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.dictionary.constraints import FilterConstraints, filter_shapes

SUPPORT = np.zeros((2, 3, 4), bool)
SUPPORT[0, :2, :3] = True
SUPPORT[1, 1:, 2:] = True
KINDS = {
    "ball": {},
    "zero mean": {"zero_mean": True},
    "non-negative": {"nonnegative": True},
    "support": {"support": SUPPORT},
    "support and zero mean": {"support": SUPPORT, "zero_mean": True},
    "support and non-negative": {"support": SUPPORT, "nonnegative": True},
}


def feasible(filter_, constraints, k):
    assert np.linalg.norm(filter_) <= 1 + 1e-12
    if constraints.support is not None:
        assert not np.any(filter_[:, ~constraints.support[k]])
    if constraints.zero_mean:
        np.testing.assert_allclose(filter_.sum(axis=(1, 2)), 0, atol=1e-12)
    if constraints.nonnegative:
        assert np.all(filter_ >= 0)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**16), scale=st.sampled_from([0.05, 0.3, 5.0]), k=st.integers(0, 1))
def test_projection_is_feasible_idempotent_and_nearest(kind, seed, scale, k):
    constraints = FilterConstraints(**KINDS[kind])
    rng = np.random.default_rng(seed)
    point = scale * rng.standard_normal((2, 3, 4))
    before = point.copy()
    nearest = constraints.project(point, k)
    np.testing.assert_array_equal(point, before)
    feasible(nearest, constraints, k)
    np.testing.assert_allclose(constraints.project(nearest, k), nearest, atol=1e-12)
    distance = np.linalg.norm(point - nearest)
    for spread in (0.01, 0.1, 1.0):
        other = constraints.project(nearest + spread * rng.standard_normal(point.shape), k)
        feasible(other, constraints, k)
        assert distance <= np.linalg.norm(point - other) + 1e-12
        # The projection on a convex set makes an obtuse angle with every feasible direction.
        assert np.vdot(point - nearest, other - nearest) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_unit_filters_have_unit_norm(kind):
    constraints = FilterConstraints(**KINDS[kind])
    filters = 0.1 + np.random.default_rng(0).random((2, 2, 3, 4))
    unit = constraints.normalise(filters)
    for k, one in enumerate(unit):
        feasible(one, constraints, k)
        assert np.linalg.norm(one) == pytest.approx(1)


def test_a_filter_that_nothing_is_left_of_stays_zero():
    constraints = FilterConstraints(nonnegative=True)
    assert not np.any(constraints.unit(-np.ones((1, 3)), 0))
    assert not np.any(constraints.project(-np.ones((1, 3)), 0))


def test_only_zero_satisfies_both():
    with pytest.raises(ValueError, match="exclude each other"):
        FilterConstraints(zero_mean=True, nonnegative=True)


def test_one_size_needs_no_support():
    shapes = filter_shapes(5, 3, 2)
    assert shapes.sizes == [(3, 3)] * 5
    assert shapes.box == (3, 3)
    assert shapes.support() is None
    assert filter_shapes(2, (3, 5), 2).box == (3, 5)


@pytest.mark.parametrize(
    ("n_filters", "sizes", "expected"),
    [(5, [3, 5], [3, 3, 3, 5, 5]), ([1, 2], [3, 5], [3, 5, 5]), (2, [4, 3], [4, 3])],
)
def test_counts_are_given_or_shared_out(n_filters, sizes, expected):
    assert filter_shapes(n_filters, sizes, 1).sizes == [(s,) for s in expected]


def test_supports_share_their_centre():
    shapes = filter_shapes(3, [(3, 2), (5, 4), (1, 7)], 2)
    assert shapes.box == (5, 7)
    support = shapes.support()
    for one, size in zip(support, shapes.sizes, strict=True):
        rows, columns = np.nonzero(one)
        assert one.sum() == size[0] * size[1]
        assert rows.min() + (size[0] - 1) // 2 == 2
        assert columns.min() + (size[1] - 1) // 2 == 3
        assert (np.ptp(rows) + 1, np.ptp(columns) + 1) == size


@pytest.mark.parametrize(
    ("n_filters", "size", "message"),
    [
        (0, 3, "n_filters"),
        (2.5, 3, "n_filters"),
        (True, 3, "n_filters"),
        (1, [3, 5], "n_filters"),
        ([1], [3, 5], "n_filters must hold one positive integer for each of the 2 sizes"),
        ([1, 0], [3, 5], "n_filters"),
        (2, 0, "filter_size"),
        (2, (3,), "filter_size"),
        (2, (3, 3.5), "filter_size"),
        (2, "3", "filter_size"),
        (2, [], "filter_size is an empty list"),
    ],
)
def test_bad_shapes_are_named(n_filters, size, message):
    with pytest.raises(ValueError, match=message):
        filter_shapes(n_filters, size, 2)
