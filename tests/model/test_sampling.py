"""Tests of the Bernoulli sample: its law, its seeds and its bounds."""

import numpy as np
import pytest

from pointillist.model import sampling
from pointillist.model.sampling import check_sampling, draw_ahead, draw_sample, generator, seed_from


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.97])
def test_rate_is_that_of_independent_trials(p):
    counts = np.array([len(draw_sample(5, (20, 30), p, 7, step)) for step in range(400)])
    trials = 5 * 20 * 30
    deviation = np.sqrt(trials * p * (1 - p))
    assert abs(counts.mean() - trials * p) < 4 * deviation / np.sqrt(len(counts))
    assert counts.std() == pytest.approx(deviation, rel=0.2)


@pytest.mark.parametrize("p", [0.05, 0.4])
def test_every_code_is_as_likely_and_neighbours_are_independent(p):
    steps, n = 3000, 40
    chosen = np.zeros((steps, n), bool)
    for step in range(steps):
        chosen[step, draw_sample(2, (20,), p, 3, step)] = True
    bound = 5 * np.sqrt(p * (1 - p) / steps)
    assert np.max(np.abs(chosen.mean(axis=0) - p)) < bound
    both = np.mean(chosen[:, 1:] & chosen[:, :-1], axis=0)
    assert np.max(np.abs(both - p**2)) < 5 * np.sqrt(p**2 * (1 - p**2) / steps)


@pytest.mark.parametrize("grid", [(50,), (6, 7), (3, 4, 5)])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.99])
def test_indices_are_ascending_unique_and_inside(grid, p):
    for step in range(20):
        sample = draw_sample(4, grid, p, 0, step)
        assert sample.dtype == np.int64
        assert np.all(np.diff(sample) > 0)
        assert len(sample) == 0 or (sample[0] >= 0 and sample[-1] < 4 * np.prod(grid))


def test_the_sample_follows_seed_step_and_grid():
    first = draw_sample(3, (10, 10), 0.2, 5, 1)
    np.testing.assert_array_equal(first, draw_sample(3, (10, 10), 0.2, 5, 1))
    for other in (
        draw_sample(3, (10, 10), 0.2, 5, 2),
        draw_sample(3, (10, 10), 0.2, 6, 1),
        draw_sample(3, (20, 5), 0.2, 5, 1),
    ):
        assert not np.array_equal(first, other)


def test_all_codes_is_none():
    assert draw_sample(3, (4, 4), 1.0, 0, 0) is None


@pytest.mark.parametrize("p", [1e-4, 0.1, 0.3333, 1 / 3, 0.6])
def test_waiting_times_are_those_of_the_geometric_law_to_the_bit(p):
    ours, theirs = np.cumsum(generator(3, 1, 5000).geometric(p, 9000)) - 1, draw_sample(1, (5000,), p, 3, 1)
    np.testing.assert_array_equal(theirs, ours[ours < 5000])


def test_samples_drawn_ahead_are_those_of_their_steps():
    for seed, step in [(0, 1), (0, 2), (0, 3), (1, 3), (0, 5), (0, 4), (0, 5), (0, 6)]:
        ahead = draw_ahead(3, (40, 50), 0.2, seed, step)
        np.testing.assert_array_equal(ahead, draw_sample(3, (40, 50), 0.2, seed, step))
    assert draw_ahead(3, (40, 50), 1.0, 0, 1) is None


def test_a_surplus_of_successes_still_ends(monkeypatch):
    """Waiting times of one sample each, as rare luck would draw them, must not stall the loop."""

    class Lucky:
        calls = 0

        def standard_exponential(self, size):
            Lucky.calls += 1
            if Lucky.calls > 20_000:
                raise AssertionError("draw_sample does not end")
            return np.full(size, 1e-9)

    monkeypatch.setattr(sampling, "generator", lambda *key: Lucky())
    np.testing.assert_array_equal(draw_sample(1, (10_000,), 0.01, 0, 0), np.arange(10_000))


@pytest.mark.parametrize("p", [0, -0.1, 1.5, float("nan"), None, [0.5, 0.5]])
def test_rates_outside_are_refused(p):
    with pytest.raises(ValueError, match="sampling must lie in"):
        check_sampling(p)


@pytest.mark.parametrize("p", [1, 1.0, 0.25, np.float32(0.5)])
def test_rates_inside_pass(p):
    assert check_sampling(p) == float(p)


def test_generators_are_keyed():
    draws = {key: generator(1, *key).random() for key in [(0,), (1,), (0, 0), (0, 1), (1, 0)]}
    assert len(set(draws.values())) == len(draws)
    assert generator(1, 0, 1).random() == draws[(0, 1)]
    assert generator(2, 0, 1).random() != draws[(0, 1)]


def test_seeds_from_what_people_pass():
    assert seed_from(3) == 3
    assert seed_from(np.int64(3)) == 3
    assert seed_from(np.random.default_rng(0)) == seed_from(np.random.default_rng(0))
    assert seed_from(np.random.RandomState(0)) == seed_from(np.random.RandomState(0))
    assert seed_from(None) != seed_from(None)


@pytest.mark.parametrize("bad", [-1, 1.5, "zero"])
def test_bad_random_state_is_named(bad):
    with pytest.raises(ValueError, match="random_state"):
        seed_from(bad)
