"""The update descends, whatever the statistics and constraints; first guesses and replacements are feasible."""

import logging

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import CodedBatch
from pointillist.dictionary.update import (
    FilterUpdate,
    draw_patches,
    filters_in_turn,
    initial_filters,
    make_statistics,
    replace_filters,
    step_length,
    unused_filters,
    update_filters,
)
from pointillist.problem import certificate

CONSTRAINTS = [{}, {"zero_mean": True}, {"nonnegative": True}, {"support": True}, {"support": True, "zero_mean": True}]


def statistics_of(reference, kind, seed, signal, size, *, boundary="same", weights=None, channels=1, n_images=3):
    rng = np.random.default_rng(seed)
    sums = make_statistics(kind, 4, channels, size)
    for _ in range(n_images):
        problem, x = reference.problem(
            rng, signal, size, n_filters=4, boundary=boundary, weights=weights, channels=channels
        )
        indices = np.flatnonzero(rng.random(4 * problem.geometry.n_positions) < 0.1)
        values = rng.standard_normal(len(indices))
        reference.add(sums, problem, x, indices, values, certificate(problem, 0, x, indices, values).residual, 1.0)
    return sums


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
@pytest.mark.parametrize("weights", [None, "mask", "uneven"])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: " ".join(c) or "ball")
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_no_sweep_raises_the_surrogate(kind, weights, constraint, relaxation, reference):
    sums = statistics_of(reference, kind, 0, (12, 13), (4, 3), weights=weights)
    support = np.random.default_rng(1).random((4, 4, 3)) < 0.7
    constraints = FilterConstraints(**{**constraint, **({"support": support} if "support" in constraint else {})})
    filters = constraints.normalise(np.random.default_rng(2).standard_normal((4, 1, 4, 3)))
    objective = first = sums.surrogate(filters)
    for _ in range(15):
        filters = update_filters(filters, sums, constraints, relaxation=relaxation)
        now = sums.surrogate(filters)
        assert now <= objective + 1e-12 * abs(objective)
        objective = now
        for k, one in enumerate(filters):
            np.testing.assert_allclose(constraints.project(one, k), one, atol=1e-12)
    assert objective < first


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
@pytest.mark.parametrize(("signal", "size"), [((40,), (6,)), ((6, 7, 8), (2, 3, 2))])
def test_sweeps_descend_in_other_dimensions_and_with_channels(kind, signal, size, reference):
    sums = statistics_of(reference, kind, 3, signal, size, boundary="full", channels=2)
    filters = reference.filters(np.random.default_rng(4), 4, 2, size)
    once, thrice = (update_filters(filters, sums, FilterConstraints(), n_sweeps=n) for n in (1, 3))
    assert sums.surrogate(thrice) < sums.surrogate(once) < sums.surrogate(filters)
    again = update_filters(update_filters(once, sums, FilterConstraints()), sums, FilterConstraints())
    np.testing.assert_allclose(again, thrice, atol=1e-12)


def test_many_sweeps_reach_the_constrained_optimum(reference):
    """Dense C, one filter: the optimum over the ball by bisection on its multiplier."""
    rng = np.random.default_rng(5)
    problem, x = reference.problem(rng, (60,), (5,), n_filters=1, boundary="valid")
    indices = np.flatnonzero(rng.random(56) < 0.3)
    values = rng.standard_normal(len(indices))
    sums = make_statistics("toeplitz", 1, 1, (5,))
    reference.add(sums, problem, 9 * x, indices, values, certificate(problem, 0, 9 * x, indices, values).residual, 1.0)
    gram = np.stack([sums.product(unit.reshape(1, 1, 5), 0).ravel() for unit in np.eye(5)])
    linear = sums.linear().ravel()
    low, high = 0.0, 1e6
    assert np.linalg.norm(np.linalg.solve(gram, linear)) > 1
    for _ in range(200):
        middle = (low + high) / 2
        best = np.linalg.solve(gram + middle * np.eye(5), linear)
        low, high = (middle, high) if np.linalg.norm(best) > 1 else (low, middle)
    found = update_filters(problem.filters, sums, FilterConstraints(), n_sweeps=3000)
    np.testing.assert_allclose(found.ravel(), best, atol=1e-6)


def test_precision_and_input_are_left_alone(reference):
    sums = statistics_of(reference, "toeplitz", 6, (12, 13), (4, 3))
    filters = reference.filters(np.random.default_rng(7), 4, 1, (4, 3), np.float32)
    before = filters.copy()
    assert update_filters(filters, sums, FilterConstraints()).dtype == np.float32
    np.testing.assert_array_equal(filters, before)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
def test_unused_filters_are_found_and_left_alone_by_the_update(kind, reference):
    rng = np.random.default_rng(8)
    problem, x = reference.problem(rng, (12, 13), (4, 3), n_filters=4)
    n = problem.geometry.n_positions
    indices = np.flatnonzero(rng.random(4 * n) < 0.1)
    indices = indices[(indices // n != 1) & (indices // n != 3)]
    values = rng.standard_normal(len(indices))
    sums = make_statistics(kind, 4, 1, (4, 3))
    assert unused_filters(sums).tolist() == [0, 1, 2, 3]
    reference.add(sums, problem, x, indices, values, certificate(problem, 0, x, indices, values).residual, 1.0)
    assert unused_filters(sums).tolist() == [1, 3]
    updated = update_filters(problem.filters, sums, FilterConstraints())
    np.testing.assert_array_equal(updated[[1, 3]], problem.filters[[1, 3]])
    assert not np.array_equal(updated[[0, 2]], problem.filters[[0, 2]])


@pytest.mark.parametrize("zero_mean", [False, True])
def test_replacements_are_lively_patches_of_the_residual(zero_mean, caplog):
    rng = np.random.default_rng(9)
    residuals = [np.zeros((1, 20, 20)), np.zeros((1, 15, 30))]
    residuals[1][0, 5:10, 10:20] = rng.standard_normal((5, 10))
    filters = np.ones((5, 1, 4, 4)) / 4
    constraints = FilterConstraints(zero_mean=zero_mean)
    with caplog.at_level(logging.INFO, "pointillist"):
        fresh = replace_filters(filters, np.array([1, 4]), residuals, constraints, np.random.default_rng(0))
    assert "replaced 2 unused filters" in caplog.text
    np.testing.assert_array_equal(fresh[[0, 2, 3]], filters[[0, 2, 3]])
    np.testing.assert_array_equal(filters, 0.25)
    for k in (1, 4):
        assert np.linalg.norm(fresh[k]) == pytest.approx(1)
        assert not zero_mean or abs(fresh[k].sum()) < 1e-12
    assert not np.allclose(fresh[1], fresh[4])
    assert replace_filters(filters, np.array([], int), residuals, constraints, rng) is filters


def test_patches_are_windows_of_the_signals():
    rng = np.random.default_rng(10)
    signals = [rng.standard_normal((2, 6, 5)), rng.standard_normal((2, 3, 8))]
    patches = draw_patches(signals, (3, 4), 50, rng)
    assert patches.shape == (50, 2, 3, 4)
    windows = [
        signal[:, i : i + 3, j : j + 4]
        for signal in signals
        for i in range(signal.shape[1] - 2)
        for j in range(signal.shape[2] - 3)
    ]
    found = {next(n for n, window in enumerate(windows) if np.array_equal(patch, window)) for patch in patches}
    assert max(found) >= 8 > min(found)


@pytest.mark.parametrize("init", ["random", "patches"])
@pytest.mark.parametrize("constraint", [{}, {"zero_mean": True}, {"nonnegative": True}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_filters_are_feasible_and_of_unit_norm(init, constraint, dtype):
    rng = np.random.default_rng(11)
    signals = [rng.standard_normal((2, 20, 20)).astype(dtype) for _ in range(2)]
    constraints = FilterConstraints(**constraint)
    make = [
        initial_filters(init, (6, 2, 3, 4), constraints, signals, np.random.default_rng(seed), np.dtype(dtype))
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(make[0], make[1])
    assert not np.array_equal(make[0], make[2])
    assert make[0].shape == (6, 2, 3, 4)
    assert make[0].dtype == dtype
    np.testing.assert_allclose(np.sum(make[0].astype(float) ** 2, axis=(1, 2, 3)), 1, atol=1e-6)
    if constraints.zero_mean:
        np.testing.assert_allclose(make[0].sum(axis=(2, 3)), 0, atol=1e-5)
    if constraints.nonnegative:
        assert np.all(make[0] >= 0)


def test_given_filters_are_taken_as_they_are_once_projected():
    given = np.random.default_rng(12).standard_normal((3, 4)) * np.array([[0.01], [0.1], [10]])
    arguments = (FilterConstraints(), [], np.random.default_rng(0), np.dtype(float))
    taken = initial_filters(given, (3, 1, 4), *arguments)
    np.testing.assert_array_equal(taken[:2, 0], given[:2])
    np.testing.assert_allclose(taken[2, 0], given[2] / np.linalg.norm(given[2]))
    for bad, message in ((given[:2], "init has shape"), (given * np.nan, "init holds NaN")):
        with pytest.raises(ValueError, match=message):
            initial_filters(bad, (3, 1, 4), *arguments)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
def test_single_precision_descends_up_to_its_rounding(kind, reference):
    sums = statistics_of(reference, kind, 13, (12, 13), (4, 3))
    filters = reference.filters(np.random.default_rng(14), 4, 1, (4, 3), np.float32)
    exact = filters.astype(np.float64)
    objective = sums.surrogate(exact)
    for _ in range(10):
        filters = update_filters(filters, sums, FilterConstraints())
        exact = update_filters(exact, sums, FilterConstraints())
        now = sums.surrogate(filters.astype(np.float64))
        assert now <= objective * (1 + 1e-6)
        objective = now
    np.testing.assert_allclose(filters, exact, atol=1e-4)
    assert np.all(np.sum(filters.astype(np.float64) ** 2, axis=(1, 2, 3)) <= 1 + 1e-6)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
@pytest.mark.parametrize("weight", [1e-36, 1e36])
def test_the_scale_of_the_sums_does_not_matter(kind, weight, reference):
    """Weights i^γ − (i−1)^γ grow without bound over a long stream; a float32 step has to survive that."""
    rng = np.random.default_rng(15)
    problem, x = reference.problem(rng, (12, 13), (4, 3), n_filters=4, dtype=np.float32)
    indices = np.flatnonzero(rng.random(4 * problem.geometry.n_positions) < 0.1)
    values = 10 * rng.standard_normal(len(indices)).astype(np.float32)
    residual = certificate(problem, 0, x, indices, values).residual
    updated = []
    for scale in (1.0, weight):
        sums = make_statistics(kind, 4, 1, (4, 3))
        reference.add(sums, problem, x, indices, values, residual, scale)
        updated.append(update_filters(problem.filters, sums, FilterConstraints()))
    assert np.all(np.isfinite(updated[1]))
    np.testing.assert_allclose(updated[1], updated[0], atol=1e-4)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"init": "zeros"}, 'init must be "random", "patches" or an array'),
        ({"statistics": "sparse"}, 'statistics must be "toeplitz" or "dense"'),
        ({"n_sweeps": 0}, "n_sweeps must be None or a positive integer"),
        ({"forgetting": 0.5}, "forgetting must be None or a number, at least 1"),
        ({"zero_mean": True, "nonnegative": True}, "exclude each other"),
    ],
)
def test_bad_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        FilterUpdate(**setting)


def test_filters_take_turns_where_little_is_new():
    np.testing.assert_array_equal(filters_in_turn(60, 7, 1.0), np.arange(60))
    np.testing.assert_array_equal(filters_in_turn(5, 7, 0.01), np.arange(5))
    for share in (0.09, 0.04, 1e-9):
        parts = [filters_in_turn(60, step, share) for step in range(12)]
        counts = np.bincount(np.concatenate(parts), minlength=60)
        assert counts.min() == counts.max() < 12


def test_updates_are_longer_where_much_is_new(reference):
    assert step_length(1.0, 1) == 1
    lengths = [step_length(share, 2) for share in (1.0, 0.3, 0.1, 0.0)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] < 2
    assert lengths[-1] == 1
    sums = statistics_of(reference, "toeplitz", 0, (12, 13), (4, 3))
    filters = 0.1 * np.random.default_rng(2).standard_normal((4, 1, 4, 3))
    once, longer = (update_filters(filters, sums, FilterConstraints(), relaxation=r) for r in (1.0, 1.5))
    first = int(np.argmax(sums.lipschitz() > 0))  # updated before any other moves
    plain = FilterConstraints().project(
        filters[first] + 1.5 * (_unprojected(sums, filters, first) - filters[first]), first
    )
    np.testing.assert_allclose(longer[first], plain, atol=1e-12)
    assert not np.allclose(once, longer)


def _unprojected(sums, filters, k):
    """Where a plain step with the bound of filter k leads, without constraints."""
    return filters[k] - (sums.product(filters, k) - sums.linear()[k]) / sums.lipschitz()[k]


@pytest.mark.parametrize("kind", ["toeplitz", "dense"])
@pytest.mark.parametrize("rank", [None, 1])
def test_only_chosen_filters_are_updated(kind, rank):
    rng = np.random.default_rng(3)
    filters = rng.standard_normal((4, 2, 3, 3)) / 5
    signal = rng.standard_normal((2, 12, 11))
    codes = SparseCodes([np.arange(0, 4 * 132, 7)], [rng.standard_normal(76)], [(12, 11)], 4)
    sums = make_statistics(kind, 4, 2, (3, 3))
    sums.add(CodedBatch([signal], None, codes, [signal]), filters, np.ones(1))
    constraints = FilterConstraints(rank=rank)
    start = sums.sweep(filters, constraints)
    found = update_filters(start, sums, constraints, chosen=np.array([1, 3]))
    np.testing.assert_array_equal(found[[0, 2]], start[[0, 2]])
    kept = np.setdiff1d(np.arange(4), [1])
    one = update_filters(start, sums, constraints, chosen=np.array([1]))
    np.testing.assert_array_equal(one[kept], start[kept])
    np.testing.assert_allclose(found[1], one[1], atol=1e-12)
    assert np.abs(found[[1, 3]] - start[[1, 3]]).max(axis=(1, 2, 3)).min() > 1e-6
