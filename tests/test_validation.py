"""Tests of what users may pass as signals, weights and filters, and of what makes a signal useless."""

import numpy as np
import pytest

from pointillist.validation import as_filters, as_weights, checked_signals, is_constant, take_seen, why_unusable


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float16, np.float32),
        (np.uint8, np.float32),
        (bool, np.float32),
    ],
)
def test_precision(given, kept):
    arrays = checked_signals(np.ones((2, 5)).astype(given), 1, channels=False)
    assert [a.shape for a in arrays] == [(1, 5), (1, 5)]
    assert {a.dtype for a in arrays} == {np.dtype(kept)}


def test_lists_of_any_size_and_channels():
    signals = checked_signals([np.ones((3, 4, 5)), np.ones((3, 6, 7))], 2, channels=True)
    assert [a.shape for a in signals] == [(3, 4, 5), (3, 6, 7)]
    assert checked_signals([[1, 2, 3]], 1, channels=False)[0].shape == (1, 3)


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        (np.ones((4, 5)), r"signals must have 3 axes \(n_signals, height, width\).*signals\[None\]"),
        (np.ones((1, 2, 3, 4, 5)), "signals must have 3 axes"),
        ([], "signals is empty"),
        (np.ones((0, 4, 4)), "signals is empty"),
        ([np.ones((4, 4)), np.ones(4)], r"signals\[1\] must have 2 axes"),
        ([np.ones((4, 0))], r"signals\[0\] is empty"),
        ([np.ones((4, 4)) * 1j], r"signals\[0\] must hold real numbers"),
        ([[["a", "b"], ["c", "d"]]], r"signals\[0\] must hold real numbers"),
    ],
)
def test_bad_signals_are_named(signals, message):
    with pytest.raises(ValueError, match=message):
        checked_signals(signals, 2, channels=False)


def test_unseen_samples_may_be_anything_and_become_zero():
    signals = [np.array([[1, np.nan, 2, np.inf]])]
    weights = [np.array([[1.0, 0, 0.5, 0]])]
    seen, kept = take_seen(signals, weights)
    np.testing.assert_array_equal(seen[0], [[1, 0, 2, 0]])
    assert kept is weights
    assert np.isnan(signals[0][0, 1])
    with pytest.raises(ValueError, match=r"signals\[0\] holds NaN or infinite samples that count; give weights"):
        take_seen(signals, None)
    with pytest.raises(ValueError, match="holds NaN"):
        take_seen(signals, [np.array([[1.0, 0, 0.5, 1]])])


def test_without_weights_nan_marks_what_was_not_seen():
    seen, weights = take_seen([np.array([[1, np.nan, 2.0]]), np.array([[1, 3, 2.0]])], None)
    np.testing.assert_array_equal(seen[0], [[1, 0, 2]])
    np.testing.assert_array_equal(weights, [[[1, 0, 1]], [[1, 1, 1]]])
    assert take_seen([np.ones((1, 3))], None)[1] is None
    with pytest.raises(ValueError, match=r"signals\[0\] is NaN everywhere"):
        take_seen([np.full((1, 3), np.nan)], None)


def test_weights_are_shared_or_one_for_each():
    signals = checked_signals(np.ones((3, 2, 4, 5)), 2, channels=True)
    rng = np.random.default_rng(0)
    shared, full, own = rng.random((4, 5)), rng.random((2, 4, 5)), rng.random((3, 2, 4, 5))
    assert as_weights(None, signals, channels=True) is None
    for given, expected in (
        (shared, np.broadcast_to(shared, own.shape)),
        (full, np.broadcast_to(full, own.shape)),
        (own, own),
        (list(own), own),
        ([shared] * 3, np.broadcast_to(shared, own.shape)),
    ):
        np.testing.assert_array_equal(np.stack(as_weights(given, signals, channels=True)), expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((2, 5)), "one array for each of the 3 signals, got 2"),
        ([np.ones(5), np.ones(4), np.ones(5)], r"weights\[1\] has shape \(4,\)"),
        (-np.ones(5), r"weights\[0\] must be finite and not negative"),
        (np.full(5, np.nan), r"weights\[0\] must be finite"),
        ([np.ones(5), np.ones(5), np.zeros(5)], r"weights\[2\] is zero everywhere"),
    ],
)
def test_bad_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        as_weights(weights, checked_signals(np.ones((3, 5)), 1, channels=False), channels=False)


def test_filters():
    assert as_filters(np.ones((2, 5), np.float32), channels=False).shape == (2, 1, 5)
    assert as_filters(np.ones((2, 3, 5)), channels=True).dtype == np.float64
    assert as_filters(np.ones((2, 5), int), channels=False).dtype == np.float32
    for bad in (np.ones(5), np.ones((2, 0)), np.full((2, 3), np.nan), np.ones((2, 3)) * 1j):
        with pytest.raises(ValueError, match="filters must"):
            as_filters(bad, channels=False)


def test_weights_that_are_none_or_could_be_two_things_are_refused():
    signals = [np.ones((2, 5)), np.ones((2, 5))]
    with pytest.raises(ValueError, match="could be one for each signal or one for each channel"):
        as_weights(np.ones((2, 5)), signals, channels=True)
    with pytest.raises(ValueError, match="weights must be an array or a list of arrays"):
        as_weights(3.0, signals, channels=True)


SIGNAL = np.random.default_rng(0).standard_normal((9, 8))


@pytest.mark.parametrize(
    ("signal", "reason"),
    [
        (np.zeros((0, 4)), "is empty"),
        (SIGNAL[:4], "is 4×8, smaller than the filters, 5×5"),
        (np.where(SIGNAL > 1, np.inf, SIGNAL), "holds infinite samples"),
        (np.full((9, 8), np.nan), "is NaN everywhere"),
        (np.full((9, 8), 7.0) + 1e-16 * SIGNAL, "is constant"),
        (np.where(SIGNAL > 1, np.nan, 2.0), "is constant"),
        (np.ones((9, 8), np.uint8), "is constant"),
    ],
)
def test_what_is_useless_and_why(signal, reason):
    assert why_unusable(signal, (5, 5)).startswith(reason)


def test_gaps_and_constants_may_be_welcome():
    gaps = np.where(SIGNAL > 1, np.nan, SIGNAL)
    assert why_unusable(SIGNAL, (5, 5)) is why_unusable(SIGNAL[None], (5, 5)) is why_unusable(gaps) is None
    assert why_unusable(gaps, gaps=False) == "holds NaN: replace those samples first"
    assert why_unusable(np.ones((9, 8)), constant=True) is None


def test_large_signals_are_looked_at_in_bands():
    last = np.zeros((1500, 1500), np.float32)  # more than two bands
    assert why_unusable(last).startswith("is constant")
    last[-1, -1] = 1
    assert why_unusable(last) is None
    assert not is_constant(last)
