"""Filters split into patterns over channels and shapes: nearest, exact for filters of the rank, signs by convention."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.dictionary.factors import factorise, nearest_of_rank, orthonormal

SIZES = {"1-D": (9,), "2-D": (3, 4), "3-D": (2, 3, 2)}


def low_rank(seed, rank, size, channels=7, n_filters=5):
    """Filters of a rank, of norms between 0.1 and 1."""
    rng = np.random.default_rng(seed)
    patterns, shapes = rng.standard_normal((n_filters, channels, rank)), rng.standard_normal((n_filters, rank, *size))
    filters = np.einsum("kcr,kr...->kc...", patterns, shapes)
    norms = np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    return filters / norms * rng.uniform(0.1, 1, n_filters).reshape(-1, *([1] * (filters.ndim - 1)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_patterns_times_shapes_are_the_filters(size, rank, dtype):
    filters = low_rank(0, rank, SIZES[size]).astype(dtype)
    patterns, shapes = pt.split_channels(filters, rank)
    assert patterns.dtype == shapes.dtype == dtype
    assert patterns.shape == (5, rank, 7)
    assert shapes.shape == (5, rank, *SIZES[size])
    atol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.einsum("krc,kr...->kc...", patterns, shapes), filters, atol=atol)
    for one in patterns:
        np.testing.assert_allclose(one @ one.T, np.eye(rank), atol=atol)
    flat = shapes.reshape(5 * rank, -1)
    assert np.all(np.take_along_axis(flat, np.argmax(np.abs(flat), axis=1)[:, None], axis=1) > 0)
    norms = np.linalg.norm(flat, axis=1).reshape(5, rank)
    assert np.all(np.diff(norms, axis=1) <= 0)


def test_nothing_of_the_rank_is_nearer():
    rng = np.random.default_rng(1)
    full = rng.standard_normal((6, 3, 4))
    for rank in (1, 2):
        nearest = nearest_of_rank(full, rank)
        assert np.linalg.matrix_rank(nearest.reshape(6, 12)) == rank
        patterns, shapes = pt.split_channels(full[None], rank)
        np.testing.assert_allclose(np.einsum("rc,r...->c...", patterns[0], shapes[0]), nearest, atol=1e-12)
        left = np.linalg.svd(full.reshape(6, 12), compute_uv=False)[rank:]
        assert np.sum((full - nearest) ** 2) == pytest.approx(np.sum(left**2))
    assert nearest_of_rank(full, 6) is full


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_filters_are_exact_and_repeatable(rank, dtype):
    filters = low_rank(2, rank, (20,), channels=30).astype(dtype).astype(np.float64)
    patterns, shapes = factorise(filters, rank)
    np.testing.assert_allclose(patterns @ shapes, filters, atol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.swapaxes(patterns, 1, 2) @ patterns, np.tile(np.eye(rank), (5, 1, 1)), atol=1e-12)
    for again, first in zip(factorise(filters.copy(), rank), (patterns, shapes), strict=True):
        np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("true_rank", [0, 1])
def test_filters_of_a_lower_rank_have_orthonormal_patterns_too(true_rank):
    filters = low_rank(3, 1, (9,)) * true_rank
    patterns, shapes = factorise(filters, 3)
    np.testing.assert_allclose(patterns @ shapes, filters, atol=1e-14)
    np.testing.assert_allclose(np.swapaxes(patterns, 1, 2) @ patterns, np.tile(np.eye(3), (5, 1, 1)), atol=1e-12)
    assert np.all(np.isfinite(pt.split_channels(filters, 3)[0]))


def test_factors_of_non_negative_filters_are_non_negative():
    patterns, shapes = factorise(np.abs(low_rank(4, 1, (9,))), 1)
    assert np.all(patterns >= 0)
    assert np.all(shapes >= 0)


def test_orthonormal_columns_keep_their_signs():
    columns = np.random.default_rng(5).standard_normal((4, 6, 2))
    q, r = orthonormal(columns)
    np.testing.assert_allclose(q @ r, columns, atol=1e-12)
    assert np.all(np.einsum("kcr,kcr->kr", q, columns) > 0)


@pytest.mark.parametrize(
    ("filters", "rank", "message"),
    [
        (np.ones((2, 5)), 1, r"filters must be an array \(n_filters, channels, \*size\)"),
        (np.full((2, 3, 5), np.nan), 1, "filters hold NaN"),
        (np.ones((2, 3, 5)), 4, "rank=4 is more than filters of 3 channels with 5 samples can have: give at most 3"),
        (np.ones((2, 3, 5)), 0, "rank must be"),
        (np.ones((2, 3, 5)), None, "rank must be a positive integer"),
    ],
)
def test_what_cannot_be_split_is_named(filters, rank, message):
    with pytest.raises(ValueError, match=message):
        pt.split_channels(filters, rank)
