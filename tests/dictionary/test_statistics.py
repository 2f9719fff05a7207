"""The small statistics against the dense ones, both against sums written out, and sweeps in groups and threads."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from pointillist.dictionary import statistics
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import (
    CodedBatch,
    DenseStatistics,
    ToeplitzStatistics,
    add_pairs,
    code_matrix,
    make_statistics,
    plain_sweep,
    step_bounds,
)
from pointillist.kernels import statistics as kernels
from pointillist.problem import Geometry
from pointillist.solvers.encoding import encode
from pointillist.validation import BOUNDARIES

SHAPES = {
    "1-D": ((40,), (6,)),
    "long 1-D": ((80,), (37,)),
    "2-D": ((10, 12), (3, 4)),
    "flat 2-D": ((8, 9), (1, 5)),
    "tall 2-D": ((14, 9), (7, 2)),
    "3-D": ((6, 7, 8), (2, 3, 2)),
}


def coded(reference, seed, shape, *, boundary="valid", **how):
    return reference.coded(np.random.default_rng(seed), *SHAPES[shape], 0.15, boundary=boundary, **how)


def both(reference, problem, *answers, weight=1.0):
    shape = (problem.n_filters, problem.geometry.channels, problem.geometry.filter)
    dense, small = DenseStatistics(*shape), ToeplitzStatistics(*shape)
    for sums in (dense, small):
        reference.add(sums, problem, *answers, weight)
    return dense, small


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("boundary", ["valid", "circular"])
def test_dense_and_toeplitz_agree_where_nothing_is_clipped(shape, channels, boundary, reference):
    problem, *answers = coded(reference, 0, shape, channels=channels, boundary=boundary)
    dense, small = both(reference, problem, *answers, weight=1.3)
    other = reference.filters(np.random.default_rng(1), 3, channels, problem.geometry.filter)
    scale = np.max(np.abs(dense.linear))
    np.testing.assert_allclose(small.linear, dense.linear, atol=1e-12 * scale)
    for k in range(3):
        expected = dense.product(other, k)
        np.testing.assert_allclose(small.product(other, k), expected, atol=1e-12 * np.max(np.abs(expected)))
    np.testing.assert_allclose(small.energies(), dense.energies(), rtol=1e-12)
    for filters in (other, problem.filters):
        assert reference.surrogate(small, filters) == pytest.approx(reference.surrogate(dense, filters), rel=1e-10)
    assert small.total == dense.total == 1.3


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "mask", "uneven"])
@pytest.mark.parametrize("shape", ["1-D", "2-D"])
def test_the_dense_surrogate_is_the_weighted_loss(boundary, weights, shape, reference):
    problem, x, indices, values, residual = coded(reference, 2, shape, boundary=boundary, weights=weights, channels=2)
    sums = DenseStatistics(3, 2, problem.geometry.filter)
    reference.add(sums, problem, x, indices, values, residual, 0.7)
    codes = np.zeros((3, problem.geometry.n_positions))
    codes.ravel()[indices] = values
    codes = codes.reshape(3, *problem.geometry.grid)
    w = 1.0 if problem.weights is None else problem.weights
    for filters in (problem.filters, reference.filters(np.random.default_rng(3), 3, 2, problem.geometry.filter)):
        loss = 0.5 * np.sum(w * ((x - reference.synthesise(codes, filters, boundary)) ** 2 - x**2))
        assert reference.surrogate(sums, filters) == pytest.approx(0.7 * loss, rel=1e-10)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "mask", "uneven"])
@pytest.mark.parametrize("shape", ["1-D", "2-D", "3-D"])
def test_the_imputed_surrogate_majorises_and_touches(boundary, weights, shape, reference):
    """Up to a constant: S(d) − S(d₀) ≥ L(d) − L(d₀) for any d, with the slope of L at d₀."""
    problem, *answers = coded(reference, 4, shape, boundary=boundary, weights=weights, channels=2)
    if weights == "uneven":
        assert np.max(problem.weights) > 1
    dense, small = both(reference, problem, *answers)
    rng = np.random.default_rng(5)
    here = problem.filters
    for size in (1e-4, 1e-2, 1.0, 10.0):
        step = size * rng.standard_normal(here.shape)
        rise = reference.surrogate(dense, here + step) - reference.surrogate(dense, here)
        surrogate = reference.surrogate(small, here + step) - reference.surrogate(small, here)
        assert surrogate >= rise - 1e-9 * abs(reference.surrogate(dense, here))
    for k in range(3):
        slope = dense.product(here, k) - dense.linear[k]
        np.testing.assert_allclose(small.product(here, k) - small.linear[k], slope, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_lipschitz_bounds_the_largest_eigenvalue(shape, reference):
    problem, *answers = coded(reference, 6, shape)
    dense, small = both(reference, problem, *answers)
    exact, bound = dense.lipschitz(), small.lipschitz()
    for k in range(3):
        block = dense.quadratic[0, k, :, k]
        assert exact[k] == pytest.approx(np.max(np.linalg.eigvalsh(block)))
    assert np.all(bound >= exact * (1 - 1e-12))
    assert np.all(bound <= exact * 2 ** len(problem.geometry.filter) * 2)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
@pytest.mark.parametrize("shape", ["1-D", "2-D", "3-D"])
def test_permuting_statistics_and_filters_changes_nothing(kind, shape, reference):
    problem, *answers = coded(reference, 7, shape, n_filters=5, channels=2)
    sums = make_statistics(kind, 5, 2, problem.geometry.filter)
    reference.add(sums, problem, *answers, 1.0)
    other = reference.filters(np.random.default_rng(8), 5, 2, problem.geometry.filter)
    objective, energies, lipschitz = reference.surrogate(sums, other), sums.energies(), sums.lipschitz()
    products = np.stack([sums.product(other, k) for k in range(5)])
    linear = sums.linear.copy()
    order = np.array([3, 0, 4, 2, 1])
    sums.permute(order)
    assert reference.surrogate(sums, other[order]) == pytest.approx(objective, rel=1e-12)
    np.testing.assert_array_equal(sums.energies(), energies[order])
    np.testing.assert_allclose(sums.lipschitz(), lipschitz[order], rtol=1e-12)
    np.testing.assert_array_equal(sums.linear, linear[order])
    moved = np.stack([sums.product(other[order], k) for k in range(5)])
    np.testing.assert_allclose(moved, products[order], atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
def test_arrays_restore_the_sums(kind, reference):
    problem, *answers = coded(reference, 9, "2-D", channels=2)
    sums, copy = (make_statistics(kind, 3, 2, problem.geometry.filter) for _ in range(2))
    reference.add(sums, problem, *answers, 1.0)
    copy.load({name: array.copy() for name, array in sums.arrays().items()})
    for one in (sums, copy):
        reference.add(one, problem, *answers, 0.5)
    assert copy.total == sums.total == 1.5
    for name, array in sums.arrays().items():
        np.testing.assert_array_equal(copy.arrays()[name], array)


@pytest.mark.parametrize("shape", ["1-D", "2-D"])
def test_single_precision_codes_give_nearly_the_same_sums(shape, reference):
    exact = both(reference, *coded(reference, 12, shape))[1]
    single = both(reference, *coded(reference, 12, shape, dtype=np.float32))[1]
    for name, array in exact.arrays().items():
        assert single.arrays()[name].dtype == np.float64
        np.testing.assert_allclose(single.arrays()[name], array, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [{}, {"zero_mean": True}, {"nonnegative": True}])
def test_the_fast_sweep_is_the_papers(shape, kind, reference):
    problem, *answers = coded(reference, 13, shape, channels=2, boundary="same")
    small = both(reference, problem, *answers)[1]
    constraints = FilterConstraints(**kind)
    start = np.stack([constraints.project(one, k) for k, one in enumerate(problem.filters)])
    for relaxation in (1.0, 1.7):
        fast = small.sweep(start, constraints, relaxation=relaxation)
        slow = plain_sweep(small, start, constraints, step_bounds(small, None, relaxation))
        np.testing.assert_allclose(fast, slow, atol=1e-12)
        assert not np.array_equal(fast, start)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_code_matrix_synthesises(boundary, reference):
    rng = np.random.default_rng(14)
    geometry = Geometry((6, 7), (3, 2), 1, boundary)
    codes = rng.standard_normal((2, *geometry.grid))
    filters = rng.standard_normal((2, 1, 3, 2))
    matrix = code_matrix(geometry, 2, np.arange(codes.size), codes.ravel())
    expected = reference.synthesise(codes, filters, boundary)
    np.testing.assert_allclose(matrix @ filters.ravel(), expected.ravel(), atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
def test_a_batch_of_any_shapes_is_the_sum_of_its_signals(kind):
    """Weights, channels and penalties of each code, against sums and objectives written out signal by signal."""
    rng = np.random.default_rng(15)
    filters = rng.standard_normal((3, 2, 3, 2))
    signals = [rng.standard_normal((2, *shape)) for shape in ((8, 9), (7, 6), (8, 9))]
    weights = [2 * rng.random(signal.shape) for signal in signals]
    result = encode(signals, filters, 0.5, weights=weights, channels=True)
    batch = CodedBatch(signals, weights, result.codes, result.residuals)
    counts = np.array([1.0, 2.0, 4.0])
    whole, parts, threads = (make_statistics(kind, 3, 2, (3, 2)) for _ in range(3))
    whole.add(batch, filters, counts)
    threads.add(batch, filters, counts, n_jobs=3)
    for i in range(3):
        parts.add(batch.take([i]), filters, counts[[i]])
    for name, array in whole.arrays().items():
        np.testing.assert_allclose(array, parts.arrays()[name], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(array, threads.arrays()[name])
    np.testing.assert_allclose(whole.objectives(batch, filters, 0.5), result.objective, rtol=1e-10)
    each = np.array([0.5, 1.0, 2.0])
    dearer = whole.objectives(batch, filters, each) - result.objective
    usage = np.array([codes.usage() for codes in result.codes])
    np.testing.assert_allclose(dearer, usage @ (each - 0.5), rtol=1e-9)


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
    add_pairs(geometry, n_filters, [indices], [codes.ravel()[indices]], [weight], sums.pairs)
    centre = np.array(size) - 1
    expected = np.zeros((n_filters, n_filters, *(2 * s - 1 for s in size)))
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
def test_neither_threads_nor_room_nor_signals_taken_together_change_a_bit(boundary, monkeypatch):
    rng = np.random.default_rng(0)
    geometry = Geometry((9, 11), (3, 4), 1, boundary)
    dense = np.where(rng.random((5, 6, 9, 11)) < 0.3, rng.standard_normal((5, 6, 9, 11)), 0).reshape(5, -1)
    indices = [np.flatnonzero(codes) for codes in dense]
    values = [codes[index] for codes, index in zip(dense, indices, strict=True)]
    found, add = [], kernels.add_pairs
    for together, room, least, n_jobs in (
        (1, 2**15, 10**9, 1),
        (2 * 99, 1, 10**9, 1),
        (10**6, 1, 0, 3),
        (1, 2**15, 0, 16),
    ):
        numbers = {"positions": together, "shared_pairs": least}
        monkeypatch.setattr(kernels, "add_pairs", partial(add, room=room))
        monkeypatch.setattr(statistics, "TUNING", dataclasses.replace(statistics.TUNING, **numbers))
        found.append(ToeplitzStatistics(6, 1, (3, 4)).pairs)
        add_pairs(geometry, 6, indices, values, [1.0, 0.3, 7.0, 2.5, 0.1], found[-1], n_jobs)
    assert np.count_nonzero(found[0]) > 100
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("boundary", ["same", "circular"])
def test_signals_without_codes_add_nothing(boundary):
    geometry, none = Geometry((9,), (3,), 1, boundary), (np.empty(0, np.int64), np.empty(0, np.float32))
    one = np.array([4]), np.array([2.0], np.float32)
    for codes, expected in (([none], 0.0), ([none, none], 0.0), ([none, one, none], 12.0)):
        sums = ToeplitzStatistics(2, 1, (3,)).pairs
        indices, values = zip(*codes, strict=True)
        add_pairs(geometry, 2, indices, values, [3.0] * len(codes), sums)
        assert sums.sum() == expected


SIZES = [(7,), (40,), (5, 3), (6, 4), (7, 20), (7, 60), (11, 11), (13, 6), (2, 6, 3), (3, 7, 9)]


def filled(n_filters, size, channels=1, seed=0):
    """Statistics whose C is positive definite: that of random codes on a small circle."""
    rng = np.random.default_rng(seed)
    sums = ToeplitzStatistics(n_filters, channels, size)
    grid = tuple(2 * s for s in size)
    spectra = np.fft.fftn(rng.standard_normal((n_filters, *grid)), axes=range(1, len(size) + 1))
    for k in range(n_filters):
        products = np.fft.ifftn(spectra[k].conj() * spectra[k:], axes=range(1, len(size) + 1)).real
        for axis, side in enumerate(size, 1):
            products = np.take(products, np.arange(1 - side, side) % (2 * side), axis=axis)
        sums.pairs[sums.first[k] : sums.first[k] + n_filters - k] = products
    sums.linear[...] = rng.standard_normal(sums.linear.shape) * np.max(sums.energies())
    return sums, rng.standard_normal((n_filters, channels, *size)) / np.sqrt(np.prod(size))


def slow_product(sums, filters, k):
    """(C d)_k by its definition, sample by sample of the other filters: C_kl(δ) = C_lk(−δ)."""
    out = np.zeros(filters.shape[1:])
    for m in range(len(filters)):
        block = sums.pairs[sums.first[min(k, m)] + abs(m - k)]
        block = block if m >= k else np.flip(block)
        for j in np.ndindex(*sums.size):
            around = tuple(slice(s - 1 - at, 2 * s - 1 - at) for s, at in zip(sums.size, j, strict=True))
            taps = filters[(m, slice(None), *j)].reshape(-1, *[1] * len(j))
            out += taps * block[around]
    return out


@pytest.mark.parametrize("size", SIZES)
def test_products_are_sums_over_pairs_of_samples(size):
    sums, filters = filled(3, size, channels=2)
    for k in range(3):
        expected = slow_product(sums, filters, k)
        np.testing.assert_allclose(sums.product(filters, k), expected, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.parametrize("size", [(9,), (7, 6), (4, 5)])
@pytest.mark.parametrize("chosen", [None, np.arange(1, 30, 3)])
def test_groups_of_filters_change_no_more_than_rounding(size, chosen, monkeypatch):
    sums, filters = filled(30, size, channels=2)
    slow = plain_sweep(sums, filters, FilterConstraints(), step_bounds(sums, chosen, 1.0))
    for group in (1, 7, 24, 100):
        monkeypatch.setattr(statistics, "TUNING", dataclasses.replace(statistics.TUNING, group=group))
        np.testing.assert_allclose(sums.sweep(filters, FilterConstraints(), chosen), slow, atol=1e-11)
    assert np.max(np.abs(slow - filters)) > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(dtype, monkeypatch, reference):
    monkeypatch.setattr(statistics, "TUNING", dataclasses.replace(statistics.TUNING, shared_products=0))
    sums, filters = filled(30, (7, 6))
    found = [
        reference.swept(filters.astype(dtype), sums, FilterConstraints(), n_sweeps=2, n_jobs=n) for n in (1, 2, 5, 40)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert not np.array_equal(found[0], filters.astype(dtype))
