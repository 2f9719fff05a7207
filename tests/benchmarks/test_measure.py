"""Tests of what is read from clocks and pixels; no test asks how long anything takes."""

import numpy as np
import pytest
from benchmarks.measure import profiled

import pointillist as pt


def test_a_profile_gives_all_time_to_functions():
    images = np.random.default_rng(0).standard_normal((1, 16, 16)).astype(np.float32)
    total, parts = profiled(lambda: pt.encode(images, images[:, :3, :3], 1.0, n_jobs=1))
    assert sum(parts.values()) == pytest.approx(total)
    assert list(parts.values()) == sorted(parts.values(), reverse=True)
    assert any(name.startswith("encoding.") for name in parts)
