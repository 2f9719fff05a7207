"""The kernel for pairs of neighbouring codes against a double loop."""

import numpy as np
import pytest

from pointillist.dictionary.pairs import add_pairs
from pointillist.dictionary.toeplitz import ToeplitzStatistics
from pointillist.problem import Geometry


@pytest.mark.parametrize(
    ("grid", "size"), [((23,), (4,)), ((3,), (3,)), ((6, 9), (3, 2)), ((5, 4), (1, 3)), ((4, 5, 6), (2, 3, 2))]
)
def test_pairs_are_all_products_of_close_codes(grid, size):
    rng = np.random.default_rng(0)
    n_filters, weight = 3, 1.7
    signal = tuple(g + s - 1 for g, s in zip(grid, size, strict=True))
    geometry = Geometry(signal, size, 1, "valid")
    assert geometry.grid == grid
    codes = np.where(rng.random((n_filters, *grid)) < 0.4, rng.standard_normal((n_filters, *grid)), 0)
    indices = np.flatnonzero(codes)
    sums = ToeplitzStatistics(n_filters, 1, size)
    add_pairs(
        geometry, n_filters, [indices], [codes.ravel()[indices]], [weight], sums.pairs.reshape(len(sums.pairs), -1)
    )
    centre = np.array(size) - 1
    expected = np.zeros((n_filters, n_filters, *sums.span))
    places = [(k, np.array(at), codes[(k, *at)]) for k in range(n_filters) for at in np.ndindex(*grid)]
    for k, at, value in places:
        for m, other, product in places:
            shift = other - at
            if value and product and np.all(np.abs(shift) <= centre):
                expected[(k, m, *(shift + centre))] += weight * value * product
    for k in range(n_filters):
        for m in range(k, n_filters):
            np.testing.assert_allclose(sums.pairs[sums.first[k] + m - k], expected[k, m], atol=1e-12)


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_signals_taken_together_give_the_bits_of_one_after_the_other(boundary, monkeypatch):
    rng = np.random.default_rng(0)
    geometry = Geometry((9, 11), (3, 4), 1, boundary)
    dense = np.where(rng.random((5, 6, 9, 11)) < 0.3, rng.standard_normal((5, 6, 9, 11)), 0).reshape(5, -1)
    indices = [np.flatnonzero(codes) for codes in dense]
    values = [codes[index] for codes, index in zip(dense, indices, strict=True)]
    weights = [1.0, 0.3, 7.0, 2.5, 0.1]
    found = []
    for together in (1, 2 * 99, 10**6):
        monkeypatch.setattr("pointillist.dictionary.pairs._TOGETHER", together)
        sums = ToeplitzStatistics(6, 1, (3, 4)).pairs
        add_pairs(geometry, 6, indices, values, weights, sums.reshape(len(sums), -1))
        found.append(sums)
    assert np.any(found[0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_signals_without_codes_add_nothing(boundary):
    geometry, none = Geometry((9,), (3,), 1, boundary), (np.empty(0, np.int64), np.empty(0, np.float32))
    one = np.array([4]), np.array([2.0], np.float32)
    for codes, expected in (([none], 0.0), ([none, none], 0.0), ([none, one, none], 12.0)):
        sums = ToeplitzStatistics(2, 1, (3,)).pairs
        indices, values = zip(*codes, strict=True)
        add_pairs(geometry, 2, indices, values, [3.0] * len(codes), sums)
        assert sums.sum() == expected


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_neither_threads_nor_room_change_a_bit(boundary, monkeypatch):
    rng = np.random.default_rng(0)
    geometry = Geometry((12, 11), (3, 4), 1, boundary)
    dense = np.where(rng.random((6, 12, 11)) < 0.5, rng.standard_normal((6, 12, 11)), 0).ravel()
    indices = np.flatnonzero(dense)
    found = []
    for room, least, n_jobs in ((2**15, 400_000, 1), (1, 400_000, 1), (1, 0, 3)):
        monkeypatch.setattr("pointillist.kernels.statistics._ROOM", room)
        monkeypatch.setattr("pointillist.dictionary.pairs._WORTH_THREADS", least)
        sums = ToeplitzStatistics(6, 1, (3, 4)).pairs
        add_pairs(geometry, 6, [indices], [dense[indices]], [1.5], sums.reshape(len(sums), -1), n_jobs)
        found.append(sums)
    assert np.count_nonzero(found[0]) > 100
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
