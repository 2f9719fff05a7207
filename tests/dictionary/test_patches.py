"""Patches to begin filters of low rank with: of the rank, in the middle of events, and all different."""

import numpy as np
import pytest

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.factors import factorise, likeness
from pointillist.dictionary.patches import spread_patches
from pointillist.dictionary.update import duplicate_filters, initial_filters, make_statistics
from pointillist.problem import certificate

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


def test_first_filters_come_again_with_their_seed_and_only_then():
    signals, _ = recording("1-D", rates=(5, 5))
    how = ("patches", (3, 6, 15), FilterConstraints(rank=2), signals)
    made = [initial_filters(*how, np.random.default_rng(seed), np.dtype(np.float32)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(made[0], made[1])
    assert not np.array_equal(made[0], made[2])


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
def test_retired_filters_go_on_explaining_what_they_did(kind, reference):
    """The surrogate of the others is what it was with the retired ones in place, whatever takes their place."""
    sums, left = _statistics(reference, kind), _statistics(reference, kind)
    rng, which = np.random.default_rng(4), np.array([1, 3])
    filters = rng.standard_normal((4, 3, 9))
    left.retire(filters, which)
    for _ in range(3):
        others = rng.standard_normal((4, 3, 9))
        before = others.copy()
        before[which] = filters[which]
        assert left.surrogate(others) == pytest.approx(sums.surrogate(before))
    assert left.energies()[which].tolist() == [0, 0]
    np.testing.assert_array_equal(left.energies()[[0, 2]], sums.energies()[[0, 2]])
