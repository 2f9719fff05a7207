"""The update descends, whatever the statistics and constraints; first guesses and replacements are feasible."""

import logging

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.dictionary.constraints import FilterConstraints, factorise, likeness
from pointillist.dictionary.statistics import CodedBatch, make_statistics
from pointillist.dictionary.update import (
    draw_patches,
    duplicate_filters,
    filters_in_turn,
    initial_filters,
    replace_filters,
    spread_patches,
    unused_filters,
)
from pointillist.problem import certificate

CONSTRAINTS = [
    {}, {"zero_mean": True}, {"nonnegative": True}, {"support": True}, {"support": True, "zero_mean": True},
    {"rank": 1}, {"rank": 3}, {"rank": 2, "zero_mean": True}, {"rank": 1, "nonnegative": True},
    {"rank": 2, "support": True}, {"rank": 1, "support": True, "zero_mean": True},
]  # fmt: skip


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
@pytest.mark.parametrize("weights", [None, "mask", "uneven"])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: " ".join(map(str, c.items())) or "ball")
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_no_sweep_raises_the_surrogate(kind, weights, constraint, relaxation, reference):
    rank = constraint.get("rank")
    sums = reference.sums(kind, 0, (12, 13), (4, 3), weights=weights, channels=4 if rank else 1)
    support = np.random.default_rng(1).random((4, 4, 3)) < 0.7
    constraints = FilterConstraints(**{**constraint, **({"support": support} if "support" in constraint else {})})
    filters = constraints.normalise(np.random.default_rng(2).standard_normal((4, sums.channels, 4, 3)))
    objective = first = reference.surrogate(sums, filters)
    for _ in range(15):
        filters = sums.sweep(filters, constraints, relaxation=relaxation)
        now = reference.surrogate(sums, filters)
        assert now <= objective + 1e-12 * abs(objective)
        objective = now
        for k, one in enumerate(filters):
            np.testing.assert_allclose(constraints.project(one, k), one, atol=1e-12)
        assert (
            np.all(np.linalg.svd(filters.reshape(4, sums.channels, -1), compute_uv=False)[:, rank:] < 1e-12) or not rank
        )
    assert objective < first


def test_many_sweeps_reach_the_constrained_optimum(reference):
    """Dense C, one filter: the optimum over the ball by bisection on its multiplier."""
    rng = np.random.default_rng(5)
    problem, x = reference.problem(rng, (60,), (5,), n_filters=1, boundary="valid")
    indices = np.flatnonzero(rng.random(56) < 0.3)
    values = rng.standard_normal(len(indices))
    sums = make_statistics("toeplitz", 1, 1, (5,))
    reference.add(sums, problem, 9 * x, indices, values, certificate(problem, 0, 9 * x, indices, values).residual, 1.0)
    gram = np.stack([sums.product(unit.reshape(1, 1, 5), 0).ravel() for unit in np.eye(5)])
    linear = sums.linear.ravel()
    low, high = 0.0, 1e6
    assert np.linalg.norm(np.linalg.solve(gram, linear)) > 1
    for _ in range(200):
        middle = (low + high) / 2
        best = np.linalg.solve(gram + middle * np.eye(5), linear)
        low, high = (middle, high) if np.linalg.norm(best) > 1 else (low, middle)
    found = reference.swept(problem.filters, sums, FilterConstraints(), n_sweeps=3000)
    np.testing.assert_allclose(found.ravel(), best, atol=1e-6)


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
    updated = sums.sweep(problem.filters, FilterConstraints())
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
@pytest.mark.parametrize(
    "constraint", [{}, {"rank": 1}, {"rank": 2, "zero_mean": True}, {"rank": 1, "nonnegative": True}]
)
def test_single_precision_descends_up_to_its_rounding(kind, constraint, reference):
    sums, constraints = (
        reference.sums(kind, 13, (12, 13), (4, 3), channels=3),
        FilterConstraints(**constraint),
    )
    drawn = np.random.default_rng(14).standard_normal((4, 3, 4, 3))
    filters = start = constraints.normalise(drawn).astype(np.float32)
    exact, before = filters.astype(np.float64), start.copy()
    objective = reference.surrogate(sums, exact)
    for _ in range(10):
        filters, exact = sums.sweep(filters, constraints), sums.sweep(exact, constraints)
        assert filters.dtype == np.float32
        now = reference.surrogate(sums, filters.astype(np.float64))
        assert now <= objective + 1e-6 * abs(objective)
        objective = now
    np.testing.assert_allclose(filters, exact, atol=1e-4)
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("weight", [1e-36, 1e36])
def test_the_scale_of_the_sums_does_not_matter(kind, rank, weight, reference):
    """Weights i^γ − (i−1)^γ grow without bound over a long stream; a float32 step has to survive that."""
    sums, constraints = reference.sums(kind, 15, (12, 13), (4, 3), channels=3), FilterConstraints(rank=rank)
    drawn = np.random.default_rng(16).standard_normal((4, 3, 4, 3))
    filters = constraints.normalise(drawn).astype(np.float32)
    expected = sums.sweep(filters, constraints)
    sums.load({name: weight * array for name, array in sums.arrays().items()})
    np.testing.assert_allclose(sums.sweep(filters, constraints), expected, atol=1e-4)


def test_filters_take_turns_where_little_is_new():
    np.testing.assert_array_equal(filters_in_turn(60, 7, 1.0), np.arange(60))
    np.testing.assert_array_equal(filters_in_turn(5, 7, 0.01), np.arange(5))
    for share in (0.09, 0.04, 1e-9):
        parts = [filters_in_turn(60, step, share) for step in range(12)]
        counts = np.bincount(np.concatenate(parts), minlength=60)
        assert counts.min() == counts.max() < 12


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
    found = sums.sweep(start, constraints, chosen=np.array([1, 3]))
    np.testing.assert_array_equal(found[[0, 2]], start[[0, 2]])
    kept = np.setdiff1d(np.arange(4), [1])
    one = sums.sweep(start, constraints, chosen=np.array([1]))
    np.testing.assert_array_equal(one[kept], start[kept])
    np.testing.assert_allclose(found[1], one[1], atol=1e-12)
    assert np.abs(found[[1, 3]] - start[[1, 3]]).max(axis=(1, 2, 3)).min() > 1e-6


EVENTS = {"1-D": ((400,), (9,), (15,)), "2-D": ((40, 45), (5, 4), (8, 7)), "3-D": ((16, 15, 17), (3, 3, 4), (5, 5, 6))}


def recording(case, rates, channels=6, n_signals=4, seed=0):
    """Signals with events of one pattern and shape each, some of them rare, and the events as filters of their size."""
    shape, size, _ = EVENTS[case]
    rng = np.random.default_rng(seed)
    window = np.ones(())
    for s in size:
        window = np.multiply.outer(window, np.hanning(s + 2)[1:-1])
    patterns = np.linalg.qr(rng.standard_normal((channels, len(rates))))[0].T
    events = np.einsum("kc,k...->kc...", patterns, rng.standard_normal((len(rates), *size)) * window)
    events /= np.sqrt(np.sum(events**2, axis=tuple(range(1, events.ndim)), keepdims=True))
    signals = 0.01 * rng.standard_normal((n_signals, channels, *shape))
    for signal in signals:
        for event, rate in zip(events, rates, strict=True):
            for _ in range(rate):
                corner = [rng.integers(n - s + 1) for n, s in zip(shape, size, strict=True)]
                signal[(slice(None), *(slice(c, c + s) for c, s in zip(corner, size, strict=True)))] += 2 * event
    return list(signals), events


@pytest.mark.parametrize("case", EVENTS)
def test_rare_events_are_among_the_first_filters(case):
    """Of the random patches most show the two events that come four times as often."""
    signals, events = recording(case, rates=(4, 4, 1))
    size = EVENTS[case][2]
    filters = spread_patches(signals, size, 3, 1, np.random.default_rng(1))
    assert filters.shape == (3, 6, *size)
    padded = np.zeros((3, 6, *size))
    padded[(..., *(slice(s) for s in EVENTS[case][1]))] = events
    both = np.concatenate([padded, filters]).reshape(6, 6, -1)
    alike = likeness(*factorise(both, 1), size)[:3, 3:]
    assert np.all(alike.max(axis=1) > 0.9), alike
    assert sorted(alike.argmax(axis=1)) == [0, 1, 2]


def test_signals_without_anything_begin_with_noise():
    constraints = FilterConstraints(rank=1, zero_mean=True)
    filters = initial_filters(
        "patches", (2, 3, 5), constraints, [np.ones((3, 20))], np.random.default_rng(0), np.dtype(float)
    )
    np.testing.assert_allclose(np.sum(filters**2, axis=(1, 2)), 1)
    np.testing.assert_allclose(filters.sum(axis=2), 0, atol=1e-12)


@pytest.mark.parametrize("size", [(9,), (3, 4), (2, 3, 2)])
def test_likeness_is_the_largest_cosine_over_shifts(size):
    rng = np.random.default_rng(2)
    filters = np.einsum("kcr,kr...->kc...", rng.standard_normal((4, 5, 2)), rng.standard_normal((4, 2, *size)))
    alike = likeness(*factorise(filters.reshape(4, 5, -1), 2), size)
    for k in range(4):
        for m in range(4):
            largest = 0.0
            for shift in np.ndindex(*(2 * s - 1 for s in size)):
                wide = np.zeros((5, *(3 * s for s in size)))
                wide[(slice(None), *(slice(s, 2 * s) for s in size))] = filters[m]
                at = [slice(d + 1, d + 1 + s) for d, s in zip(shift, size, strict=True)]
                largest = max(largest, abs(np.vdot(wide[(slice(None), *at)], filters[k])))
            cosine = largest / np.linalg.norm(filters[k]) / np.linalg.norm(filters[m])
            assert alike[k, m] == pytest.approx(cosine**2)


def _statistics(reference, kind, seed=0):
    rng = np.random.default_rng(seed)
    problem, x = reference.problem(rng, (60,), (9,), n_filters=4, channels=3)
    indices = np.flatnonzero(rng.random(4 * problem.geometry.n_positions) < 0.1)
    values = (1 + indices // problem.geometry.n_positions) * rng.standard_normal(len(indices))
    sums = make_statistics(kind, 4, 3, (9,))
    reference.add(sums, problem, x, indices, values, certificate(problem, 0, x, indices, values).residual, 1.0)
    return sums


def test_of_duplicates_the_most_used_stays(reference):
    filters = FilterConstraints(rank=1).normalise(np.random.default_rng(3).standard_normal((4, 3, 9)))
    assert duplicate_filters(filters, _statistics(reference, "toeplitz"), 1).tolist() == []
    shape = np.hanning(9)[1:-1]
    filters[0], filters[3] = 0, 0
    filters[0, :, :7] = np.multiply.outer([1, 2, 2], shape)
    filters[3, :, 2:] = -np.multiply.outer([1, 2, 2], shape)
    energies = _statistics(reference, "toeplitz").energies()
    assert energies[3] > energies[0]
    assert duplicate_filters(filters, _statistics(reference, "toeplitz"), 1).tolist() == [0]


@pytest.mark.parametrize("kind", ["dense", "toeplitz"])
def test_nothing_is_left_of_filters_that_are_forgotten(kind, reference):
    """The sums are those of the codes of the other filters, which see what all filters left of the signals."""
    sums, left = _statistics(reference, kind), _statistics(reference, kind)
    filters, which = np.random.default_rng(4).standard_normal((4, 3, 9)), np.array([1, 3])
    left.forget(which)
    assert unused_filters(left).tolist() == [1, 3]
    np.testing.assert_array_equal(left.energies()[[0, 2]], sums.energies()[[0, 2]])
    others = filters.copy()
    others[which] = 0
    assert reference.surrogate(left, filters) == pytest.approx(reference.surrogate(sums, others))
    np.testing.assert_array_equal(left.sweep(filters, FilterConstraints())[which], filters[which])
