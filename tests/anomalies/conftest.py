"""A pulse that comes again and again, with a few anomalies planted at known places."""

from types import SimpleNamespace

import numpy as np
import pytest

import pointillist as pt

LENGTH = 40
BEATS = 150


def pulse(width=9):
    """A beat: a spike, then a slower wave."""
    shape = np.zeros(30)
    shape[:width] = np.hanning(width)
    shape[14:28] += 0.3 * np.hanning(14)
    return shape


def recording(seed=0, kinds=("early", "missing", "shape", "burst"), noise=0.02):
    """A series with one anomaly of each kind, and the sample at which each of them begins."""
    rng = np.random.default_rng(seed)
    series = noise * rng.standard_normal(LENGTH * (BEATS + 1))
    planted = {}
    for number in range(BEATS):
        moment = LENGTH * (number + 1) + int(rng.integers(-1, 2))
        shape = pulse()
        kind = {30: "early", 60: "missing", 90: "shape", 120: "burst"}.get(number)
        if kind in kinds:
            if kind == "early":
                moment -= 12
            elif kind == "missing":
                shape = 0 * shape
            elif kind == "shape":
                shape = -1.5 * pulse(21)
            elif kind == "burst":
                series[moment + 15 : moment + 35] += 0.5 * rng.standard_normal(20)
            planted[kind] = moment
        series[moment : moment + 30] += shape
    return series.astype(np.float32), planted


@pytest.fixture(scope="session")
def heart():
    """A recording, its anomalies, a model learned from it, and its scores."""
    series, planted = recording()
    signals = pt.remove_baseline(series[None], LENGTH)
    model = pt.learn_windows(signals, LENGTH, n_windows=100, n_jobs=1, random_state=0)
    return SimpleNamespace(
        series=series,
        signals=signals,
        planted=planted,
        model=model,
        found=pt.anomaly_score(signals, model),
        recording=recording,
        pulse=pulse,
    )
