"""What grows is found, what scatters is not; a short soak runs with the slow tests."""

import numpy as np
import pytest
from attack.soak import LEAST, Reading, Soak, growth, work

from attack import activities

MEBIBYTE = 2**20


def readings(memory, seconds=3600, **others):
    times = np.linspace(0, seconds, len(memory))
    counts = {"files": 8, "threads": 1, "cached": 3, "temporary": 0}
    return [
        Reading(t, int(m * MEBIBYTE), **{**counts, **{name: values[i] for name, values in others.items()}})
        for i, (t, m) in enumerate(zip(times, memory, strict=True))
    ]


def test_steady_memory_is_no_finding():
    rng = np.random.default_rng(0)
    warming = 400 - 200 * np.exp(-np.arange(60) / 5)
    assert growth(readings(warming + rng.standard_normal(60))) == []


@pytest.mark.parametrize(("seconds", "more"), [(3600, 20), (600, 10)])
def test_a_leak_is_found(seconds, more):
    (words,) = growth(readings(np.linspace(300, 300 + more, 40), seconds))
    assert words.startswith("memory grows by")


@pytest.mark.parametrize("name", ["files", "threads", "cached", "temporary"])
def test_what_is_opened_and_not_closed_is_found(name):
    found = growth(readings(np.full(40, 300), **{name: list(range(40))}))
    assert found == [f"{name} grow from 29 to 30"]
    scattering = [5 + i % 3 for i in range(40)]
    assert growth(readings(np.full(40, 300), **{name: scattering})) == []


def test_failing_activities_are_told(tmp_path, monkeypatch):
    def broken(rng, folder):
        raise RuntimeError("planted")

    monkeypatch.setattr(activities, "ACTIVITIES", (broken, lambda rng, folder: None))
    ((title, trace),) = work({"seed": 0, "folder": str(tmp_path), "rounds": 1})
    assert title == "broken: RuntimeError: planted"
    assert "Traceback" in trace


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_short_soak(tmp_path):
    soak = Soak()
    for seed in range(2 * LEAST):
        (tmp_path / str(seed)).mkdir()
        assert soak.attempt(seed, tmp_path / str(seed)) == []
    assert len(soak.readings) == 2 * LEAST
    soak.close()
