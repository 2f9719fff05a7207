"""Tests of the samples of codes: their laws, their seeds and their bounds."""

import numpy as np
import pytest

from pointillist.sampling import (
    KINDS,
    Draws,
    as_draws,
    draw_sample,
    generator,
    seed_from,
    spread_cell,
)

TOGETHER = tuple(kind for kind in KINDS if kind != "codes")


def codes(n_filters, grid, p, seed, step, kind="codes"):
    """Flat indices of the codes that are drawn."""
    return draw_sample(n_filters, grid, Draws(p, kind), seed, step).indices


def masks(kind, p, n_filters, grid, steps):
    """Whether each code is drawn in each step, (steps, n_filters, *grid)."""
    chosen = np.zeros((steps, n_filters * np.prod(grid)), bool)
    for step in range(steps):
        chosen[step, codes(n_filters, grid, p, 3, step, kind)] = True
    return chosen.reshape(steps, n_filters, *grid)


@pytest.mark.parametrize("grid", [(50,), (6, 7), (3, 4, 5)])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.99])
@pytest.mark.parametrize("kind", KINDS)
def test_indices_are_ascending_unique_and_inside(kind, grid, p):
    for step in range(5):
        sample = codes(11, grid, p, 0, step, kind)
        assert sample.dtype == np.int64
        assert len(draw_sample(11, grid, Draws(p, kind), 0, step)) == len(sample)
        assert np.all(np.diff(sample) > 0)
        assert len(sample) == 0 or (sample[0] >= 0 and sample[-1] < 11 * np.prod(grid))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_follows_seed_step_and_grid(kind):
    first = codes(3, (40, 40), 0.2, 5, 1, kind)
    np.testing.assert_array_equal(first, codes(3, (40, 40), 0.2, 5, 1, kind))
    for grid, seed, step in (((40, 40), 5, 2), ((40, 40), 6, 1), ((80, 20), 5, 1)):
        assert not np.array_equal(first, codes(3, grid, 0.2, seed, step, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1e-7, 1e-20, 5e-324])
def test_next_to_nothing_can_be_drawn(kind, p):
    assert len(draw_sample(20, (30, 31), Draws(p, kind), 0, 0)) <= 8


@pytest.mark.parametrize("kind", TOGETHER)
@pytest.mark.parametrize(("n_filters", "grid", "p"), [(11, (23,), 0.15), (9, (7, 19), 0.1), (10, (3, 5, 9), 0.4)])
def test_every_code_is_as_likely_whatever_is_drawn_together(kind, n_filters, grid, p):
    steps = 2500
    rates = masks(kind, p, n_filters, grid, steps).mean(axis=0)
    assert np.max(np.abs(rates - p)) < 5.5 * np.sqrt(p * (1 - p) / steps)


@pytest.mark.parametrize("kind", TOGETHER)
def test_filters_of_a_bundle_share_their_positions(kind):
    chosen = masks(kind, 0.2, 20, (9, 40), 5)
    for first, last in ((0, 8), (8, 16), (16, 20)):
        assert np.all(chosen[:, first:last] == chosen[:, first : first + 1])
    assert np.all(chosen[:, 0] == chosen[:, 8]) == (kind in ("positions", "cells"))


def test_a_bundle_has_at_most_one_position_in_each_of_its_cells():
    """In every window of a cell's size there are then at most as many positions as cells that it can meet."""
    assert spread_cell(2, 0.1) == (3, 3)
    chosen = masks("bundles", 0.1, 8, (30, 30), 20)[:, 0]
    counts = np.lib.stride_tricks.sliding_window_view(chosen, (3, 3), axis=(1, 2)).sum(axis=(-2, -1))
    assert counts.max() <= 4
    corners = [
        chosen[:, a:, b:][:, :24, :24].reshape(20, 8, 3, 8, 3).sum(axis=(2, 4)) for a in range(3) for b in range(3)
    ]
    for step in range(20):
        assert any(corner[step].max() <= 1 for corner in corners)


def test_stretches_are_neighbours_along_the_last_axis():
    chosen = masks("stretches", 0.05, 8, (12, 100), 5)[:, 0]
    edges = np.diff(np.pad(chosen, [(0, 0), (0, 0), (1, 1)]).astype(int), axis=-1)
    begins, ends = np.nonzero(edges > 0), np.nonzero(edges < 0)
    lengths, inside = ends[2] - begins[2], (begins[2] > 0) & (ends[2] < 100)
    assert inside.any()
    assert np.all(lengths[inside] % 16 == 0)


@pytest.mark.parametrize("p", [1e-4, 0.1, 0.3333, 1 / 3, 0.6])
def test_waiting_times_are_those_of_the_geometric_law_to_the_bit(p):
    ours, theirs = np.cumsum(generator(3, 1, 5000).geometric(p, 9000)) - 1, codes(1, (5000,), p, 3, 1)
    np.testing.assert_array_equal(theirs, ours[ours < 5000])


@pytest.mark.parametrize("p", [0, -0.1, 1.5, float("nan"), None, True, "0.5", [0.5, 0.5]])
def test_rates_outside_are_refused(p):
    with pytest.raises(ValueError, match="sampling must lie in"):
        as_draws(p)
    with pytest.raises(ValueError, match="share must lie in"):
        Draws(p)


def test_shares_are_taken_in_every_form_and_unknown_kinds_refused():
    assert as_draws(np.float32(0.5)) == as_draws(Draws(0.5)) == Draws(0.5)
    assert draw_sample(3, (4, 4), Draws(1.0, "codes"), 0, 0) is None
    for kind in ("", "rows", None, 1, ["codes"]):
        with pytest.raises(ValueError, match="kind must be one of codes, bundles"):
            Draws(0.1, kind)


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
