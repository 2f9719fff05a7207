"""Damage of the photographs' benchmark: its shape, its share, that a seed repeats it, and where it lies."""

import numpy as np
import pytest

from benchmarks import scars

SHAPE = (300, 460)
KINDS = ["scratches", "dust", "text", "holes-12", "holes-30", "holes-40", "lines", "sky-holes", "sky-lines", "corner"]


@pytest.mark.parametrize("kind", KINDS)
def test_about_a_hundredth_is_missing_and_a_seed_repeats_it(kind):
    picture = np.random.default_rng(0).integers(0, 255, (*SHAPE, 3)).astype(np.uint8)
    picture[:140] = np.linspace(150, 220, 140, dtype=np.uint8)[:, None, None]  # a smooth sky
    first, again, other = (scars.damage(kind, SHAPE, np.random.default_rng(seed), picture) for seed in (1, 1, 2))
    assert first.shape == SHAPE
    assert first.dtype == bool
    assert 0.008 < first.mean() < 0.03
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
