"""Robust learning: foreign windows do no harm, runs resume and spread over a cluster with the same bits."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.learners import step

SMALL = {"n_filters": 4, "filter_size": 6, "penalty": 0.3, "random_state": 0, "n_jobs": 1}
ROBUST = pt.Robust(alpha=6.0)


@pytest.fixture
def signals():
    """Twelve signals; the sixth has a burst in its middle."""
    signals = np.random.default_rng(0).standard_normal((12, 120))
    signals[5, 50:80] += 20 * np.random.default_rng(1).standard_normal(30)
    return signals


def planted(reference, seed=4):
    """Three filters, epochs of sparse codes for them, and the same with four of the forty made of other filters."""
    rng = np.random.default_rng(seed)
    fade = np.hanning(11)[1:-1]
    banks = [reference.filters(rng, 3, 1, (9,)) * fade for _ in range(2)]
    banks = [bank / np.linalg.norm(bank, axis=-1, keepdims=True) for bank in banks]
    signals = []
    for i in range(44):
        strength = 8 if i >= 40 else 1
        spikes = strength * rng.choice([-1, 1], (3, 60)) * (1 + rng.random((3, 60)))
        codes = np.where(rng.random((3, 60)) < 0.02, spikes, 0)
        signals.append(reference.synthesise(codes, banks[i >= 40], "same")[0] + 0.02 * rng.standard_normal(60))
    clean, foreign = np.array(signals[:40]), np.array(signals[40:])
    mixed = clean.copy()
    mixed[::10] = foreign
    return banks[0][:, 0], clean, mixed


def learn(learner, signals, robust, seed=4):
    settings = {"robust": robust, "learning": 0.1, "random_state": seed, "n_jobs": 1}
    if learner == "batch":
        return pt.BatchCSC(4, 13, 0.2, max_iter=30, **settings).fit(signals)
    return pt.OnlineCSC(4, 13, 0.2, **settings, n_epochs=6).fit(signals)


@pytest.mark.parametrize("learner", ["batch", "online"])
def test_foreign_windows_break_learning_unless_it_is_robust(reference, learner):
    truth, clean, mixed = planted(reference)
    good, broken, robust = (
        np.mean(reference.matched(learn(learner, given, setting).filters_, truth))
        for given, setting in ((clean, None), (mixed, None), (mixed, pt.Robust()))
    )
    assert robust >= 0.98 * good
    assert broken < 0.95 * good


def test_outliers_of_the_last_iteration_are_named(signals):
    model = pt.BatchCSC(**SMALL, max_iter=3, robust=ROBUST).fit(signals)
    table = model.outliers_
    assert set(table["signal"]) == {5}
    inside = np.zeros(120, bool)
    for one in table:
        assert one["stop"][0] - one["start"][0] == pytest.approx(24, abs=1)
        inside[one["start"][0] : one["stop"][0]] = True
    assert inside[50:80].all()
    assert not inside[:26].any()
    assert len(table) == model.history_[-1]["outliers"]
    assert np.all(table["error"] > 0)


def test_the_record_of_a_stream_is_the_last_judgement_of_each_signal(signals):
    model = pt.OnlineCSC(**SMALL, batch_size=3, robust=ROBUST, n_epochs=3).fit(signals)
    assert set(model.outliers_["signal"]) == {5}
    assert len(np.unique(model.outliers_["start"])) == len(model.outliers_)
    last = [info["outliers"] for info in model.history_[-4:]]
    assert sum(last) == len(model.outliers_)
    stream = pt.OnlineCSC(**SMALL, robust=ROBUST)
    for batch in np.split(signals, 6):
        stream.partial_fit(batch)
    assert 5 in stream.outliers_["signal"]  # the number of signals seen before it


def test_the_record_is_bounded(monkeypatch):
    monkeypatch.setattr(step, "TUNING", step.Tuning(latest=10, remembered=4))
    signals = np.random.default_rng(0).standard_normal((30, 40))
    model = pt.OnlineCSC(**SMALL, robust=pt.Robust(fraction=0.4)).fit(signals)
    assert len(model.state_.windows.errors) == 10
    assert len(model.outliers_) == 4


def test_nothing_is_left_out_in_the_warm_up(signals):
    model = pt.BatchCSC(**SMALL, max_iter=3, robust=pt.Robust(warm_up=2)).fit(signals)
    plain = pt.BatchCSC(**SMALL, max_iter=3).fit(signals)
    assert [info["outliers"] > 0 for info in model.history_] == [False, False, True]
    for ours, theirs in zip(model.history_[:2], plain.history_, strict=False):
        assert ours["objective"] == theirs["objective"]
    assert "outliers" not in plain.history_[0]
    assert not hasattr(plain, "outliers_")


def test_objective_and_codes_are_of_what_counts(signals):
    robust = pt.BatchCSC(**SMALL, max_iter=1, robust=ROBUST).fit(signals).history_[0]
    plain = pt.BatchCSC(**SMALL, max_iter=1).fit(signals).history_[0]
    assert robust["objective"] < 0.5 * plain["objective"]
    assert robust["nnz"] < plain["nnz"]
    assert robust["n_seen"] == plain["n_seen"]


def test_a_step_without_anything_that_counts_leaves_the_filters(signals):
    model = pt.OnlineCSC(**SMALL, n_epochs=1, robust=pt.Robust(window=120)).fit(signals[:5], shuffle=False)
    before, seen = model.filters_.copy(), model.n_seen_
    model.partial_fit(100 * signals[5:6])
    np.testing.assert_array_equal(model.filters_, before)
    assert model.n_seen_ == seen + 1
    assert (model.history_[-1]["outliers"], model.history_[-1]["objective"]) == (1, 0)


@pytest.mark.parametrize("statistics", ["toeplitz", "dense"])
@pytest.mark.parametrize("boundary", ["same", "valid", "full", "circular"])
def test_every_boundary_and_kind_of_statistics(signals, boundary, statistics):
    update = pt.FilterUpdate(statistics=statistics)
    model = pt.BatchCSC(**SMALL, max_iter=2, boundary=boundary, robust=ROBUST, update=update).fit(signals)
    assert set(model.outliers_["signal"]) == {5}
    assert np.all(np.isfinite(model.filters_))


def test_unused_filters_are_not_replaced_by_what_was_left_out():
    """With so high a penalty no filter is used, and all are replaced by the liveliest patches: of the step, or of noise."""
    signals = np.random.default_rng(0).standard_normal((4, 120))
    signals[2, 40:90] += 20
    level = {}
    for name, robust in {"all": None, "robust": pt.Robust(alpha=6.0)}.items():
        settings = {**SMALL, "penalty": 1e3, "robust": robust}
        model = pt.BatchCSC(**settings, max_iter=1).fit(signals)
        assert model.history_[0]["replaced"] == 4
        level[name] = np.abs(model.filters_.sum(axis=1)) / np.sqrt(6)
    assert np.max(level["all"]) > 0.99
    assert np.max(level["robust"]) < 0.95


def test_missing_samples_are_not_judged(signals):
    given = signals.copy()
    given[3, :60] = np.nan
    given[5, 40:90] = np.nan
    model = pt.BatchCSC(**SMALL, max_iter=2, robust=ROBUST).fit(given)
    assert not set(model.outliers_["signal"]) & {3, 5}


@pytest.mark.parametrize("learner", [pt.BatchCSC, pt.OnlineCSC])
def test_outliers_survive_in_the_file_of_a_model(signals, tmp_path, learner):
    robust = pt.Robust(fraction=0.2, window=(24,))
    model = learner(**SMALL, robust=robust).fit(signals)
    pt.save(model, tmp_path / "model.safetensors")
    again = pt.load(tmp_path / "model.safetensors")
    assert again.robust == robust
    assert len(again.outliers_)
    np.testing.assert_array_equal(again.outliers_, model.outliers_)


def test_windows_must_have_the_axes_of_the_signals(signals):
    with pytest.raises(ValueError, match="robust has a window of 2 axes"):
        pt.BatchCSC(**SMALL, robust=pt.Robust(window=(10, 10))).fit(signals)
    with pytest.raises(ValueError, match="robust must be None or a Robust"):
        pt.BatchCSC(**SMALL, robust=True).fit(signals)
