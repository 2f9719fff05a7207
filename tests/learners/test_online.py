"""What only the online learner does: streams, partial fits and forgetting."""

import dataclasses

import numpy as np
import pytest

import pointillist as pt
from pointillist.data.sources import ArraySource
from pointillist.dictionary import statistics
from pointillist.errors import UnreadableFileError
from pointillist.learners.estimators import signal_counts
from pointillist.sampling import generator
from pointillist.solvers import coordinate_descent, scanning

SMALL = {
    "n_filters": 4,
    "filter_size": 5,
    "penalty": 0.3,
    "sampling": 0.5,
    "random_state": 0,
    "n_jobs": 1,
    "n_epochs": 1,
}


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
    settings = {**SMALL, "batch_size": batch_size, "update": pt.FilterUpdate(forgetting=forgetting)}
    whole = pt.OnlineCSC(**settings).fit(signals, shuffle=False)
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


@pytest.mark.parametrize("kind", ["array", "list", "source"])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_fit_is_a_plain_loop_over_shuffled_batches(signals, kind, shuffle, weighted):
    """Streams, sources and arrays share one loop: to the bit what partial fits in the documented order give."""
    settings = {**SMALL, "batch_size": 3, "n_epochs": 2}
    weights = np.random.default_rng(1).random(signals.shape) if weighted else None
    if weighted and kind == "source":
        pytest.skip("a source marks what was not seen by NaN")
    given = {"array": signals, "list": list(signals), "source": ArraySource(signals)}[kind]
    model = pt.OnlineCSC(**settings).fit(given, weights=weights, shuffle=shuffle)
    plain = pt.OnlineCSC(**settings)
    for epoch in range(2):
        order = generator(0, epoch, 2).permutation(7) if shuffle else np.arange(7)
        for first in (0, 3, 6):
            chosen = order[first : first + 3]
            plain.partial_fit(signals[chosen], weights=None if weights is None else weights[chosen])
    plain.state_.sort_by_use()
    np.testing.assert_array_equal(model.filters_, plain.state_.filters[:, 0])
    np.testing.assert_array_equal(model.usage_, plain.state_.usage)
    assert [info["objective"] for info in model.history_] == [info["objective"] for info in plain.history_]


class Damaged(ArraySource):
    """Signals of which some cannot be read."""

    damaged = (0, 4)

    def read(self, index, epoch=0):
        if index in self.damaged:
            raise UnreadableFileError(f"cannot read {self.name(index)}: it is damaged")
        return super().read(index, epoch)


@pytest.mark.parametrize("init", ["random", "patches"])
def test_unreadable_signals_are_skipped_or_stop_the_run(signals, init, caplog):
    settings = {**SMALL, "batch_size": 2, "n_epochs": 2, "update": pt.FilterUpdate(init=init)}
    model = pt.OnlineCSC(**settings).fit(Damaged(signals), on_error="skip")
    assert model.n_seen_ == 10
    assert model.skipped_ == {f"cannot read X[{i}]: it is damaged": 2 for i in (0, 4)}
    assert caplog.text.count("X[4]") == 1
    with pytest.raises(UnreadableFileError, match=r"X\[[04]\]"):
        pt.OnlineCSC(**settings).fit(Damaged(signals))


class Counting(ArraySource):
    """How often each signal was read."""

    def __init__(self, signals):
        super().__init__(signals)
        self.reads = [0] * len(signals)

    def read(self, index, epoch=0):
        self.reads[index] += 1
        return super().read(index, epoch)


@pytest.mark.parametrize(("n_epochs", "prefetch"), [(1, 0), (1, 2), (3, 2)])
def test_no_signal_is_read_more_often_than_it_is_learned_from(signals, n_epochs, prefetch):
    source = Counting(signals)
    pt.OnlineCSC(**{**SMALL, "n_epochs": n_epochs}, batch_size=2).fit(source, prefetch=prefetch)
    assert source.reads == [n_epochs] * len(signals)


def test_patches_are_drawn_from_signals_that_are_read_once_for_them(signals):
    source = Counting(signals)
    pt.OnlineCSC(**SMALL, batch_size=2, update=pt.FilterUpdate(init="patches")).fit(source)
    assert max(source.reads) == 2


def test_useless_signals_of_a_source_are_skipped_too(signals):
    mixed = [np.ones(80), signals[1], signals[2][:3], signals[3], signals[4]]
    settings = {**SMALL, "update": pt.FilterUpdate(init="patches"), "batch_size": 2}
    model = pt.OnlineCSC(**settings).fit(ArraySource(mixed), on_error="skip")
    assert model.n_seen_ == 3
    assert [why.split(" is ")[0] for why in sorted(model.skipped_)] == ["X[0]", "X[2]"]
    with pytest.raises(ValueError, match="no signal that can be used"):
        pt.OnlineCSC(**settings).fit(ArraySource([np.ones(80)]), on_error="skip")


def test_signals_from_an_iterator(signals):
    model = pt.OnlineCSC(batch_size=3, **SMALL).fit(signal for signal in signals)
    plain = pt.OnlineCSC(batch_size=3, **SMALL).fit(signals, shuffle=False)
    np.testing.assert_array_equal(model.filters_, plain.filters_)
    with pytest.raises(ValueError, match="no signal that can be used"):
        pt.OnlineCSC(**SMALL).fit(iter([]))
    with pytest.raises(ValueError, match="weights are for arrays"):
        pt.OnlineCSC(**SMALL).fit(iter(signals), weights=signals)


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


@pytest.mark.parametrize(
    ("setting", "how", "message"),
    [
        ({"batch_size": 0}, {}, "batch_size must be a positive integer"),
        ({"n_epochs": 0}, {}, "n_epochs must be None or a positive integer"),
        ({}, {"on_error": "stop"}, 'on_error must be "raise" or "skip"'),
        ({}, {"validation_every": 2}, "validation_every needs validation"),
        ({}, {"resume": True}, "resume needs checkpoint"),
    ],
)
def test_bad_settings_are_named(signals, setting, how, message):
    with pytest.raises(ValueError, match=message):
        pt.OnlineCSC(**{**SMALL, **setting}).fit(signals, **how)


@pytest.mark.parametrize("forgetting", [1.0, 2.0, None])
def test_weights_of_images_are_increments_of_a_power(forgetting):
    update = pt.FilterUpdate(forgetting=forgetting)
    power = 4 if forgetting is None else forgetting
    np.testing.assert_allclose(signal_counts(update, 2, 3), np.diff(np.arange(2.0, 6.0) ** power))
    np.testing.assert_allclose(signal_counts(update, 0, 7).sum(), 7**power)


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


def test_threads_that_share_every_part_of_a_step_do_not_change_a_bit(monkeypatch):
    # By themselves threads share scans, pairs and sweeps of large problems only.
    for module, numbers in (
        (coordinate_descent, {"thread_products_with_ridge": 0}),
        (scanning, {"chunk_positions": 100}),
        (statistics, {"shared_pairs": 0, "shared_products": 0, "group": 5}),
    ):
        monkeypatch.setattr(module, "TUNING", dataclasses.replace(module.TUNING, **numbers))
    pictures = np.cumsum(np.random.default_rng(0).standard_normal((6, 31, 24)), axis=1).astype(np.float32)
    found = [
        pt.OnlineCSC(n_filters=12, filter_size=7, penalty=0.5, n_jobs=n, n_epochs=1, random_state=0).fit(pictures)
        for n in (1, 2, 5)
    ]
    assert found[0].history_[-1]["nnz"] > 50
    for other in found[1:]:
        np.testing.assert_array_equal(other.filters_, found[0].filters_)
        assert [one["gap"] for one in other.history_] == [one["gap"] for one in found[0].history_]
