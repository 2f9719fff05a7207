"""Random problems: all kinds occur, seeds repeat them, and a wrong bound would be seen."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.certificate import bounds, gaps, photograph
from benchmarks.reach import Optimum, Task, optimum_of

import pointillist as pt
from benchmarks import problems

KINDS = {
    *(
        "1 dimension(s)",
        "2 dimension(s)",
        "3 dimension(s)",
        "float32",
        "float64",
        "weights",
        "channels",
        "non-negative",
    ),
    *problems.BOUNDARIES,
    *("sampled", "penalty of each filter", "filters of several sizes", "stopped early"),
}


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


def test_a_bound_that_is_too_high_is_seen(monkeypatch):
    encode = pt.encode

    def boasting(**given):
        result = encode(**given)
        exact = given["solver"].tol == problems.EXACT
        return result if exact else replace(result, gap=np.zeros_like(result.gap))

    monkeypatch.setattr(pt, "encode", boasting)
    problem = problems.draw(0) | {"solver": pt.solvers.CoordinateDescent(tol=0.1, max_iter=1)}
    assert problems.examine(problem).margin < -problems.ROUNDING


def test_gaps_are_followed_round_by_round():
    image = photograph(32)
    assert image.shape == (32, 32)
    assert image.dtype == np.float32
    task = Task(image[None], pt.load_filters("natural-100")[:10], 1.0)
    optimum = optimum_of(task)
    path = gaps(task, optimum, 4)
    assert all(gap >= excess for gap, excess in path)
    assert path[0][1] > path[-1][1]
    assert Optimum(np.array([2.0, 4.0]), 0.0).excess(np.array([2.5, 4.0])) == 0.25


def test_photographs_are_no_larger_than_they_are():
    pytest.importorskip("skimage", reason="the extra bench is not installed")
    with pytest.raises(ValueError, match="side must be at most 512, got 600"):
        photograph(600)
