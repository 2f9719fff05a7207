"""What grows is found, what scatters is not; a short soak runs with the slow tests."""

import numpy as np
import pytest
from attack.soak import LEAST, Reading, Soak, growth

MEBIBYTE = 2**20


def readings(memory, seconds=3600, **others):
    times = np.linspace(0, seconds, len(memory))
    counts = {"files": 8, "threads": 1, "cached": 3, "temporary": 0}
    return [
        Reading(t, int(m * MEBIBYTE), **{**counts, **{name: values[i] for name, values in others.items()}})
        for i, (t, m) in enumerate(zip(times, memory, strict=True))
    ]


@pytest.mark.parametrize(("seconds", "more"), [(3600, 10), (600, 20)])
def test_a_leak_is_found(seconds, more):
    (words,) = growth(readings(np.linspace(300, 300 + more, 40), seconds))
    assert words.startswith("memory grows by")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_short_soak(tmp_path):
    soak = Soak()
    for seed in range(2 * LEAST):
        (tmp_path / str(seed)).mkdir()
        assert soak.attempt(seed, tmp_path / str(seed)) == []
    assert len(soak.readings) == 2 * LEAST
    soak.close()
