"""Random problems: all kinds occur, seeds repeat them, and a wrong bound would be seen."""

import numpy as np
from benchmarks.certificate import bounds

from benchmarks import problems

KINDS = {*(f"{n} dimension(s)" for n in (1, 2, 3)), "float32", "float64", "weights", "channels", "non-negative"}
KINDS |= {*problems.BOUNDARIES, "sampled", "penalty of each filter", "filters of several sizes", "stopped early"}


def test_all_kinds_occur_and_a_seed_repeats_them():
    assert {kind for seed in range(60) for kind in problems.kinds_of(problems.draw(seed))} == KINDS
    for first, again in zip(problems.draw(3).values(), problems.draw(3).values(), strict=True):
        np.testing.assert_array_equal(first, again)


def test_bounds_of_some_problems_hold():
    table = bounds(12)
    assert table.rows[0][:2] == ["all", 12]
    assert sum(row[1] for row in table.rows if "dimension" in row[0]) == 12
    for row in table.rows:
        assert row[3:5] == [0, 0]
        assert row[5] is None or row[5] > 0
    assert table.rows[0][5] is not None
