"""Tests of what makes a signal useless."""

import numpy as np
import pytest

from pointillist.validation import is_constant, why_unusable

SIGNAL = np.random.default_rng(0).standard_normal((9, 8))


def test_what_varies_is_usable():
    assert why_unusable(SIGNAL, (5, 5)) is None
    assert why_unusable(SIGNAL[None], (5, 5)) is None
    assert why_unusable(np.arange(6, dtype=np.uint8)) is None


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
    assert why_unusable(gaps) is None
    assert why_unusable(gaps, gaps=False) == "holds NaN: replace those samples first"
    assert why_unusable(np.ones((9, 8)), constant=True) is None


def test_large_signals_are_looked_at_in_bands(monkeypatch):
    monkeypatch.setattr("pointillist.large._BAND_SAMPLES", 8)
    last = np.zeros((9, 8))
    assert why_unusable(last).startswith("is constant")
    last[-1, -1] = 1
    assert why_unusable(last) is None
    assert not is_constant(last)
