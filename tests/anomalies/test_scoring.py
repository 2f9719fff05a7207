"""Tests of anomaly scores: what is planted is found, for its own reason, in series, images and volumes."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import pointillist as pt

LENGTH = 40
REASONS = {"early": "rhythm", "missing": "rhythm", "shape": "residual", "burst": "residual"}


@pytest.mark.parametrize("kind", REASONS)
def test_what_is_planted_is_found_for_its_reason(heart, kind):
    begin = heart.planted[kind]
    reach = slice(begin - 5, begin + 2 * LENGTH)
    assert heart.found.scores[0][reach].max() > 2 * heart.found.threshold
    part = heart.found.parts[REASONS[kind]][0]
    assert part[reach].max() > np.quantile(part, 0.99)
    events = heart.found.events()
    assert np.any((events["start"] < reach.stop) & (events["stop"] > reach.start))


def test_little_else_is_found(heart):
    score, threshold = heart.found.scores[0].copy(), heart.found.threshold
    for begin in heart.planted.values():
        score[begin - LENGTH // 2 : begin + 3 * LENGTH] = 0
    assert np.mean(score > threshold) < 0.03
    strongest = max(float(heart.found.scores[0][begin : begin + 2 * LENGTH].max()) for begin in heart.planted.values())
    assert score.max() < strongest / 2


def test_an_early_event_holds_from_its_moment_on_and_its_pause_is_no_second_event(heart):
    begin, rhythm = heart.planted["early"], heart.found.parts["rhythm"][0]
    assert rhythm[begin - LENGTH // 2 : begin - 2].max() < heart.found.threshold
    assert rhythm[begin + 8] > heart.found.threshold
    # The beat after the early one is in time, and so is the pause that makes up for it.
    assert rhythm[begin + 12 + LENGTH + 8 : begin + 12 + 2 * LENGTH - 4].max() < heart.found.threshold


def test_scores_are_the_sums_of_their_parts(heart):
    assert set(heart.found.parts) == {"residual", "amplitude", "rarity", "rhythm"}
    np.testing.assert_allclose(np.sum([part[0] for part in heart.found.parts.values()], axis=0), heart.found.scores[0])
    assert all(part[0].min() >= 0 for part in heart.found.parts.values())


def test_the_threshold_does_not_follow_the_anomalies(heart):
    quiet = heart.recording(kinds=())[0]
    signals = pt.remove_baseline(quiet[None], LENGTH)
    calm = pt.anomaly_score(signals, heart.model)
    assert heart.found.threshold == pytest.approx(calm.threshold, rel=0.3)
    assert np.mean(calm.scores[0] > calm.threshold) < 0.05


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_the_unit_of_the_signal_does_not_matter(heart, factor):
    model = pt.learn_windows([factor * heart.signals[0]], LENGTH, n_windows=100, n_jobs=1, random_state=0)
    found = pt.anomaly_score([factor * heart.signals[0]], model)
    np.testing.assert_allclose(found.scores[0], heart.found.scores[0], rtol=0.2, atol=1.0)


def test_several_series_and_channels(heart):
    series = heart.signals[0]
    halves = pt.anomaly_score([series[:3000], series[3000:]], heart.model)
    assert [score.shape for score in halves.scores] == [(3000,), (len(series) - 3000,)]
    assert set(halves.events()["signal"]) == {0, 1}
    two = np.stack([series, -0.5 * series])[None]
    model = pt.learn_windows(two, LENGTH, n_windows=100, channels=True, n_jobs=1, random_state=0)
    found = pt.anomaly_score(two, model)
    assert found.scores[0].shape == series.shape
    begin = heart.planted["early"]
    assert found.parts["rhythm"][0][begin : begin + LENGTH].max() > found.threshold


def test_what_was_not_seen_is_not_judged(heart):
    series = heart.signals[0].copy()
    begin = heart.planted["shape"]
    weights = np.ones_like(series)
    weights[begin - 10 : begin + 40] = 0
    weighted = pt.anomaly_score([series], heart.model, weights=[weights])
    assert not weighted.scores[0][begin - 10 : begin + 40].any()
    missing = np.where(weights > 0, series, np.nan)
    np.testing.assert_allclose(pt.anomaly_score([missing], heart.model).scores[0], weighted.scores[0])
    begin = heart.planted["early"]
    assert weighted.scores[0][begin : begin + LENGTH].max() > weighted.threshold


@pytest.mark.parametrize("boundary", ["valid", "same", "full", "circular"])
def test_every_boundary_puts_events_where_they_are(heart, boundary):
    model = pt.BatchCSC(2, LENGTH, 0.4, boundary=boundary, max_iter=6, nonnegative=True, n_jobs=1, random_state=0)
    model.fit(heart.signals[0][:2000][None])
    found = pt.anomaly_score(heart.signals, model)
    rhythm, begin = found.parts["rhythm"][0], heart.planted["early"]
    assert begin - 4 <= begin - 10 + int(np.argmax(rhythm[begin - 10 : begin + 30])) <= begin + 25
    assert rhythm[begin : begin + 30].max() > 5


def _texture(rng, shape):
    rows = np.arange(shape[-1])
    return (np.sin(rows / 1.5) + 0.05 * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize(("shape", "size"), [((60, 64), 7), ((16, 20, 24), 5)])
def test_a_blob_in_an_image_or_a_volume_is_found(shape, size):
    rng = np.random.default_rng(0)
    plain, spoiled = _texture(rng, shape), _texture(rng, shape)
    corner = tuple(side // 2 for side in shape)
    box = tuple(slice(c, c + 5) for c in corner)
    spoiled[box] += 2.0
    model = pt.BatchCSC(4, (size,) * len(shape), 0.5, max_iter=5, n_jobs=1, random_state=0).fit(plain[None])
    found = pt.anomaly_score(np.stack([plain, spoiled]), model)
    assert set(found.parts) == {"residual", "amplitude", "rarity"}
    strongest = found.events()[np.argmax(found.events()["score"])]
    assert strongest["signal"] == 1
    assert all(c - size <= place < c + 5 + size for c, place in zip(corner, strongest["peak"], strict=True))
    assert strongest["start"].shape == (len(shape),)


def test_nothing_strange_in_silence_or_in_a_few_samples():
    model = pt.BatchCSC(2, 5, 0.5, max_iter=1, n_jobs=1, random_state=0).fit(np.eye(1, 30, 9))
    found = pt.anomaly_score(np.zeros((2, 30)), model)
    assert len(found.events()) == 0
    assert np.isfinite(found.scores).all()
    assert np.isfinite(pt.anomaly_score(np.eye(1, 30, 12), model).scores).all()


def test_arguments_are_checked(heart):
    with pytest.raises(ValueError, match="model must be a fitted"):
        pt.anomaly_score(heart.signals, heart.model.filters_)
    with pytest.raises(NotFittedError, match="model is not fitted"):
        pt.anomaly_score(heart.signals, pt.OnlineCSC())
    for rate in (0, 0.5, None, "few"):
        with pytest.raises(ValueError, match="false_alarms must be"):
            pt.anomaly_score(heart.signals, heart.model, false_alarms=rate)
    with pytest.raises(ValueError, match=r"signals\[None\]"):
        pt.anomaly_score(heart.signals[0], heart.model)
    with pytest.raises(ValueError, match="weights"):
        pt.anomaly_score(heart.signals, heart.model, weights=[np.ones(3)])


def test_progress_is_told(heart):
    told = []
    pt.anomaly_score(heart.signals, heart.model, progress=told.append)
    assert told[-1] == 1


def test_an_event_in_a_gap_is_not_missed(heart):
    """A beat that was not seen, in one channel or in all, may have happened, so that no other is overdue after it."""
    series = heart.recording(kinds=())[0]
    calm = pt.remove_baseline(series[None], LENGTH)[0]
    several = np.stack([calm, 0.5 * calm])
    model = pt.learn_windows(several[None], LENGTH, n_windows=60, channels=True, n_jobs=1, random_state=0)
    begin = 40 * LENGTH + 10  # some forty beats from the start, and as long as one
    for channels in (slice(0, 1), slice(0, 2)):
        gaps = several.copy()
        gaps[channels, begin : begin + LENGTH] = np.nan
        found = pt.anomaly_score([gaps], model)
        around = slice(begin - LENGTH, begin + 3 * LENGTH)
        assert found.parts["rhythm"][0][around].max() < found.threshold
        assert found.scores[0][around].max() < 3 * found.threshold


def test_a_model_of_rank_one(heart):
    """Filters that are a pattern over channels times a shape serve as others do."""
    leads = np.array([1.0, -0.5, 0.2])
    several = (leads[:, None] * heart.signals[0]).astype(np.float32)
    how = {"n_epochs": 3, "rank": 1, "update": pt.FilterUpdate(init="patches"), "n_jobs": 1, "random_state": 0}
    model = pt.OnlineCSC(2, LENGTH, 0.5, channels=True, nonnegative=True, **how)
    model.fit(np.stack(np.split(several[:, :3000], 10, axis=1)))
    found = pt.anomaly_score([several], model)
    for kind in ("early", "burst"):
        begin = heart.planted[kind]
        assert found.scores[0][begin : begin + 2 * LENGTH].max() > 2 * found.threshold


@pytest.mark.parametrize("boundary", ["valid", "same", "circular"])
def test_scores_at_the_border_of_images_are_as_those_inside(boundary):
    """Of clean pictures: filters are cut off there, and boxes hold fewer samples."""
    pictures = [picture[60:124, 80:144] for picture in pt.photographs().values()]
    pictures += [picture[130:194, 10:74] for picture in pt.photographs().values()]
    signals = pt.contrast_normalise(np.stack(pictures))
    model = pt.OnlineCSC(8, 9, 0.7, boundary=boundary, batch_size=4, n_jobs=1, random_state=0).fit(signals)
    found = pt.anomaly_score(signals, model, false_alarms=0.05)
    place = np.minimum(np.arange(64), 63 - np.arange(64))
    depth = np.minimum.outer(place, place)
    left, above = np.stack(found.parts["residual"]), np.stack(found.scores) > found.threshold
    inside = depth >= 9
    for first, last in ((0, 2), (2, 5), (5, 9)):
        ring = (depth >= first) & (depth < last)
        assert left[:, ring].mean() == pytest.approx(left[:, inside].mean(), rel=0.15)
        # What the pictures show matters more: 0.36 to 1.26 for several seeds.
        assert 1 / 3 < above[:, ring].mean() / above[:, inside].mean() < 2


def test_small_images_are_scored():
    """Some fifty samples in a ring at the border say little, and some rings have none."""
    rng = np.random.default_rng(0)
    model = pt.BatchCSC(2, 5, 0.5, max_iter=2, n_jobs=1, random_state=0).fit(rng.standard_normal((1, 20, 20)))
    found = pt.anomaly_score(rng.standard_normal((1, 20, 20)), model)
    assert np.isfinite(found.scores[0]).all()
    assert np.isfinite(pt.anomaly_score(rng.standard_normal((1, 6, 7)), model).scores[0]).all()
