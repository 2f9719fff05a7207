"""What only the online learner does: streams, partial fits and forgetting."""

import numpy as np
import pytest

import pointillist as pt

SMALL = {"n_filters": 4, "filter_size": 5, "penalty": 0.3, "sampling": 0.5, "random_state": 0, "n_jobs": 1}


@pytest.fixture
def signals():
    return np.cumsum(np.random.default_rng(0).standard_normal((7, 80)), axis=1) / 3


def rows(array):
    """The filters in an order that does not depend on theirs."""
    flat = array.reshape(len(array), -1)
    return flat[np.lexsort(flat.T)]


@pytest.mark.parametrize("batch_size", [1, 3, 7])
@pytest.mark.parametrize("forgetting", [1.0, 2.0])
def test_partial_fits_equal_an_unshuffled_fit(signals, batch_size, forgetting):
    settings = {**SMALL, "batch_size": batch_size, "forgetting": forgetting}
    whole = pt.OnlineCSC(shuffle=False, **settings).fit(signals)
    parts = pt.OnlineCSC(**settings)
    for first in range(0, 7, batch_size):
        parts.partial_fit(signals[first : first + batch_size])
    np.testing.assert_array_equal(rows(parts.filters_), rows(whole.filters_))
    np.testing.assert_array_equal(np.sort(parts.usage_), np.sort(whole.usage_))
    assert parts.n_seen_ == whole.n_seen_ == 7
    assert parts.n_iter_ == whole.n_iter_ == -(-7 // batch_size)


def test_partial_fit_goes_on_after_fit(signals):
    model = pt.OnlineCSC(batch_size=2, **SMALL).fit(signals)
    before = model.filters_.copy()
    model.partial_fit(signals[:3])
    assert model.n_seen_ == 10
    assert model.n_iter_ == 5
    change = np.linalg.norm(model.filters_ - before, axis=1)
    assert 0 < change.max() < 0.7
    # A reorder that statistics and filters did not share would throw the filters far away.
    assert (
        pt.encode(signals, model.filters_, 0.3).objective.sum() < 1.05 * pt.encode(signals, before, 0.3).objective.sum()
    )


def test_fit_starts_afresh(signals):
    model = pt.OnlineCSC(batch_size=2, **SMALL).fit(signals)
    first = model.filters_.copy()
    model.partial_fit(signals)
    np.testing.assert_array_equal(model.fit(signals).filters_, first)
    assert model.n_seen_ == 7


def test_epochs_and_batches_are_counted(signals):
    model = pt.OnlineCSC(batch_size=3, n_epochs=2, **SMALL).fit(signals)
    assert model.n_iter_ == 6
    assert model.n_seen_ == 14
    assert [info["n_seen"] for info in model.history_] == [3, 6, 7, 10, 13, 14]


def test_shuffling_visits_every_signal_in_every_epoch():
    plan = pt.OnlineCSC(batch_size=3, n_epochs=3)._plan(7, 0)
    epochs = [[n for batch in plan[i : i + 3] for n in batch] for i in range(0, 9, 3)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert pt.OnlineCSC(batch_size=3, shuffle=False)._plan(7, 0) == [[0, 1, 2], [3, 4, 5], [6]]


def test_validation_is_done_when_due(signals):
    model = pt.OnlineCSC(batch_size=1, **SMALL).fit(signals, validation=signals[:1], validation_every=3)
    due = ["validation_objective" in info for info in model.history_]
    assert due == [False, False, True, False, False, True, False]


def test_weights_follow_the_shuffled_signals(signals):
    """Each signal lacks other samples: mixing up the weights would read the NaN."""
    weights = (np.random.default_rng(1).random(signals.shape) < 0.8).astype(float)
    holes = np.where(weights > 0, signals, np.nan)
    model = pt.OnlineCSC(batch_size=2, **SMALL).fit(holes, weights=weights)
    assert np.all(np.isfinite(model.filters_))
    model.partial_fit(holes[:2], weights=weights[:2])
    assert np.all(np.isfinite(model.filters_))


def test_batches_of_other_sizes_and_one_signal(signals):
    model = pt.OnlineCSC(**SMALL)
    for batch in (signals[:1], [signals[1][:40], signals[2]], signals[3:]):
        model.partial_fit(batch)
    assert model.n_seen_ == 7


@pytest.mark.parametrize("setting", [{"batch_size": 0}, {"n_epochs": 0}, {"forgetting": 0.5}])
def test_bad_settings_are_named(signals, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        pt.OnlineCSC(**setting, **SMALL).fit(signals)


def test_bad_batches_leave_the_model_as_it_was(signals):
    model = pt.OnlineCSC(**SMALL).fit(signals)
    before, seen = model.filters_.copy(), model.n_seen_
    for bad in (signals[:, :4], signals[:2] * np.nan, signals[None], []):
        with pytest.raises(ValueError, match=r"X|filter_size|dimensions"):
            model.partial_fit(bad)
    np.testing.assert_array_equal(model.filters_, before)
    assert model.n_seen_ == seen
    again = pt.OnlineCSC(**SMALL).fit(signals).partial_fit(signals[:2])
    np.testing.assert_array_equal(model.partial_fit(signals[:2]).filters_, again.filters_)
