"""Tests of what random numbers stand for, beside the same in array expressions."""

from math import prod

import numpy as np
import pytest

from pointillist.kernels import drawing


def slowly(numbers, share, sides, shifts, counts, grid):
    """For each block the positions that its numbers stand for, ascending."""
    found = []
    for block, own in enumerate(numbers):
        cells = np.stack(np.unravel_index(np.arange(prod(counts)), counts), axis=1)
        which = (own / share).astype(np.int64)
        inside = np.stack(np.unravel_index(np.minimum(which, prod(sides) - 1), sides), axis=1)
        places = cells * sides - shifts[:, block] + inside
        kept = (which < prod(sides)) & np.all((places >= 0) & (places < grid), axis=1)
        found.append(np.sort(np.ravel_multi_index(tuple(places[kept].T), grid)))
    return found


@pytest.mark.parametrize(
    ("grid", "sides"), [((50,), (7,)), ((12, 31), (3, 4)), ((9, 8), (1, 2)), ((5, 6, 13), (2, 2, 3)), ((1, 4), (2, 2))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positions_are_those_of_array_expressions(grid, sides, dtype):
    rng, n_blocks, share = np.random.default_rng(3), 5, dtype(0.9 / prod(sides))
    counts = tuple(2 + (length - 2) // side for length, side in zip(grid, sides, strict=True))
    numbers = rng.random((n_blocks, prod(counts)), dtype)
    shifts = np.stack([rng.integers(side, size=n_blocks) for side in sides])
    lasts, positions = np.full(n_blocks, -1), np.full(numbers.size, -1)
    steps, rows = np.full((2, numbers.shape[1]), -1, np.int32), np.full(int(1 / share) // sides[-1] + 2, -1)
    fill = np.full(prod(grid[:-1]) + 1, -1)
    found = np.full((len(fill), counts[-1]), -1, np.int32)
    drawing.spread(
        numbers, share, np.array(sides), shifts, np.array(counts), np.array(grid), lasts, steps, rows, found, fill,
        positions,
    )  # fmt: skip
    blocks = np.split(positions[: lasts[-1]], lasts[:-1])
    expected = slowly(numbers, share, sides, shifts, counts, grid)
    assert sum(map(len, expected)) > 0
    for one, other in zip(blocks, expected, strict=True):
        np.testing.assert_array_equal(one, other)
