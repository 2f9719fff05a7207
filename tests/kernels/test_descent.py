"""Tests of the search for codes that are worth descending on."""

import numpy as np
import pytest

from pointillist.kernels.descent import pick


def slowly(best, best_filter, grid, cell, floor):
    """The first of the largest ratios above the floor in every cell, cell after cell."""
    places = np.stack(np.unravel_index(np.arange(len(best)), grid), axis=1) // cell
    found = []
    for corner in np.ndindex(*(-(-side // cell) for side in grid)):
        inside = np.flatnonzero((places == corner).all(axis=1))
        top = inside[np.argmax(best[inside])]
        if best[top] > floor:
            found.append(best_filter[top] * len(best) + top)
    return found


@pytest.mark.parametrize("grid", [(40,), (1,), (9, 13), (1, 7), (4, 5, 6)])
@pytest.mark.parametrize("cell", [1, 2, 3])
@pytest.mark.parametrize("floor", [0.2, 0.9, 2.0])
def test_the_best_of_every_cell_is_picked(grid, cell, floor):
    rng = np.random.default_rng(0)
    best = rng.choice(np.linspace(0, 1, 11), np.prod(grid)).astype(np.float32)  # so that some are equal
    best_filter = rng.integers(7, size=len(best), dtype=np.int32)
    picked = pick(best, best_filter, np.array(grid), cell, np.float32(floor))
    np.testing.assert_array_equal(picked, slowly(best, best_filter, grid, cell, np.float32(floor)))


def test_positions_without_a_number_are_not_picked():
    best = np.array([np.nan, 3.0, np.nan, np.nan], np.float32)
    for cell, expected in ((1, [1]), (2, [1])):
        np.testing.assert_array_equal(pick(best, np.zeros(4, np.int32), np.array([4]), cell, np.float32(1)), expected)
