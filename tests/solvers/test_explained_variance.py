"""Tests of explained variance: what leaving out a filter costs, computed by leaving it out."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.solvers import explained_variance as module


def _energy(signals, weights, fits):
    return sum(float(np.sum(w * (x - f) ** 2)) for x, w, f in zip(signals, weights, fits, strict=True))


@pytest.mark.parametrize("boundary", ["same", "valid", "full", "circular"])
@pytest.mark.parametrize(("shape", "size", "channels"), [((90,), (7,), 0), ((80,), (6,), 3), ((20, 17), (4, 5), 0)])
def test_shares_are_those_of_leaving_out(monkeypatch, boundary, shape, size, channels):
    monkeypatch.setattr(module, "BAND_SAMPLES", 64)
    rng = np.random.default_rng(0)
    own = (channels,) if channels else ()
    signals = [rng.standard_normal((*own, *shape)), rng.standard_normal((*own, *[n - 3 for n in shape]))]
    weights = [rng.random(x.shape) for x in signals]
    filters = rng.standard_normal((4, *own, *size)) / 3
    how = {"boundary": boundary, "channels": channels > 0}
    codes = pt.encode(signals, filters, 0.4, weights=weights, tol=1e-8, **how).codes
    found = pt.explained_variance(signals, filters, codes, weights=weights, **how)
    whole = _energy(signals, weights, [0 * x for x in signals])
    left = _energy(signals, weights, pt.decode(codes, filters, **how))
    assert found.total == pytest.approx(1 - left / whole)
    for k in range(4):
        silent = filters.copy()
        silent[k] = 0
        without = _energy(signals, weights, pt.decode(codes, silent, **how))
        assert found.shares[k] == pytest.approx((without - left) / whole, abs=1e-12)
        assert found.shares[k] >= 0
    assert found.order.tolist() == np.argsort(-found.shares).tolist()


def test_through_a_model_with_gaps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 80))
    X[0, 10:20] = np.nan
    model = pt.BatchCSC(3, 7, 0.5, max_iter=2, random_state=0).fit(X)
    found = model.explained_variance(X)
    seen = np.isfinite(X).astype(float)
    expected = pt.explained_variance(X, model.filters_, model.transform(X), weights=seen)
    np.testing.assert_array_equal(found.shares, expected.shares)
    assert 0 < found.total < 1


def test_refusals():
    signals, filters = np.ones((1, 30)), np.ones((2, 5))
    codes = pt.encode(signals, filters, 1.0).codes
    with pytest.raises(ValueError, match="codes must be those"):
        pt.explained_variance(signals[:, :29], filters, codes)
    with pytest.raises(ValueError, match="codes must be SparseCodes"):
        pt.explained_variance(signals, filters, signals)
    with pytest.raises(ValueError, match="signals are zero"):
        pt.explained_variance(0 * signals, filters, codes)


def test_signals_whose_energy_hardly_is_a_number_are_refused():
    signals = 1e-161 * np.random.default_rng(0).standard_normal((2, 30))
    codes = pt.SparseCodes([np.array([3]), np.array([4])], [np.ones(1), np.ones(1)], [(30,), (30,)], 1)
    with pytest.raises(ValueError, match="no energy to explain"):
        pt.explained_variance(signals, np.ones((1, 3)), codes)
