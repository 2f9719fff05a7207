"""Tests of what makes series ready for scores: the baseline goes, the filters are those of the beat."""

import numpy as np
import pytest

import pointillist as pt

LENGTH = 40


def test_filters_are_the_beat(heart):
    best = max(float(np.max(np.correlate(one, heart.pulse(), "full"))) for one in heart.model.filters_)
    assert best > 0.95 * np.linalg.norm(heart.pulse())
    assert heart.model.filters_.shape == (4, LENGTH)
    assert heart.model.nonnegative


def test_same_seed_same_filters_and_another_seed_others(heart):
    again = pt.learn_windows(heart.signals, LENGTH, n_windows=100, n_jobs=2, random_state=0)
    assert again.filters_.tobytes() == heart.model.filters_.tobytes()
    other = pt.learn_windows(heart.signals, LENGTH, n_windows=100, n_jobs=1, random_state=1)
    assert other.filters_.tobytes() != heart.model.filters_.tobytes()


def test_the_penalty_follows_the_signal_unless_given(heart):
    twice = pt.learn_windows([2 * heart.signals[0]], LENGTH, n_windows=5, n_jobs=1, random_state=0)
    once = pt.learn_windows(heart.signals, LENGTH, n_windows=5, n_jobs=1, random_state=0)
    assert twice.penalty == pytest.approx(2 * once.penalty)
    assert pt.learn_windows(heart.signals, LENGTH, n_windows=5, penalty=0.7, n_jobs=1, random_state=0).penalty == 0.7


def test_offset_and_wander_are_taken_away(heart):
    series, _ = heart.recording(kinds=())
    drift = 50 + 3 * np.sin(np.arange(len(series)) / 400)
    flat = pt.remove_baseline((series + drift)[None], LENGTH)[0]
    assert np.median(np.abs(flat - series)) < 0.1
    assert flat.max() == pytest.approx(series.max(), abs=0.3)


def test_missing_samples_stay_missing():
    series = np.ones(200)
    series[50:60] = np.nan
    flat = pt.remove_baseline(series[None], 20)[0]
    assert np.isnan(flat[50:60]).all()
    assert not flat[:50].any()


def test_arguments_are_checked():
    series = np.random.default_rng(0).standard_normal((1, 100))
    for size in (1, 2.5, None, "long", True):
        with pytest.raises(ValueError, match="filter_size must be"):
            pt.learn_windows(series, size)
        with pytest.raises(ValueError, match="filter_size must be"):
            pt.remove_baseline(series, size)
    with pytest.raises(ValueError, match="fewer than filter_size"):
        pt.learn_windows(series, 101)
    with pytest.raises(ValueError, match="n_windows must be"):
        pt.learn_windows(series, 10, n_windows=0)
    with pytest.raises(ValueError, match="signals are constant"):
        pt.learn_windows(np.ones((1, 100)), 10)


@pytest.mark.parametrize("prepare", [pt.remove_baseline, pt.learn_windows])
def test_infinite_samples_are_refused_by_name(prepare):
    series = [np.ones(60), np.random.default_rng(0).standard_normal(60)]
    series[1][3:5] = np.inf, -np.inf
    with pytest.raises(ValueError, match=r"signals\[1\] holds infinite samples; write NaN"):
        prepare(series, 5)


@pytest.mark.parametrize("prepare", [pt.remove_baseline, pt.learn_windows])
@pytest.mark.parametrize("size", [61, 10**30])
def test_series_shorter_than_a_filter_are_refused_by_name(prepare, size):
    with pytest.raises(ValueError, match=r"signals\[0\] has 60 samples, fewer than filter_size"):
        prepare(np.random.default_rng(0).standard_normal((1, 60)), size)
