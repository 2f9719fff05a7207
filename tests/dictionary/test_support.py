"""Filters of several sizes in one box: counts, centres and what is refused."""

import numpy as np
import pytest

from pointillist.dictionary.support import filter_shapes


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
