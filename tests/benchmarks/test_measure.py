"""Tests of what is read from clocks and pixels; no test asks how long anything takes."""

import numpy as np
import pytest
from benchmarks.judge import Descent, times_to
from benchmarks.measure import profiled

import pointillist as pt


def test_a_profile_gives_all_time_to_functions():
    images = np.random.default_rng(0).standard_normal((1, 16, 16)).astype(np.float32)
    total, parts = profiled(lambda: pt.encode(images, images[:, :3, :3], 1.0, n_jobs=1))
    assert sum(parts.values()) == pytest.approx(total)
    assert list(parts.values()) == sorted(parts.values(), reverse=True)
    assert any(name.startswith("encoding.") for name in parts)


def test_the_fastest_of_ours_decides_the_ratio():
    mine = [Descent("a", [1.0, 2.0], [9.0, 5.0]), Descent("b", [4.0], [5.0]), Descent("c", [1.0], [6.0])]
    assert times_to(5.0, 8.0, mine) == [8.0, 2.0, 4.0, None, 4.0]
    assert times_to(1.0, 8.0, mine) == [8.0, None, None, None, None]
