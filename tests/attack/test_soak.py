"""What grows is found, what scatters is not; a short soak runs with the slow tests."""

import numpy as np
import pytest
from attack.soak import LEAST, Reading, Soak, growth


def test_a_leak_is_found():
    counts = {"files": 8, "threads": 1, "cached": 3, "temporary": 0}
    times, memory = np.linspace(0, 3600, 40), np.linspace(300, 310, 40)
    (words,) = growth([Reading(t, int(m * 2**20), **counts) for t, m in zip(times, memory, strict=True)])
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
