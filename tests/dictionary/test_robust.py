"""Windows, their errors, and batches without outliers, against sums written out sample by sample."""

import numpy as np
import pytest

from pointillist import Robust
from pointillist.codes import SparseCodes
from pointillist.dictionary.robust import Windows, cell_counts, error_limit, window_errors, without_outliers
from pointillist.dictionary.statistics import CodedBatch, DenseStatistics, ToeplitzStatistics
from pointillist.problem import Geometry
from pointillist.validation import BOUNDARIES

SPACES = {"1-D": ((47,), (5,), 9), "2-D": ((23, 19), (4, 3), (8, 7)), "3-D": ((9, 8, 7), (2, 3, 2), 4)}


def coded(reference, shape, boundary, *, channels=2, weights=None, seed=0, n_signals=3):
    """Signals with codes that are not optimal; of the first of them a part was not seen where `weights` is "mask"."""
    space, size, window = SPACES[shape]
    rng = np.random.default_rng(seed)
    filters = reference.filters(rng, 3, channels, size)
    geometry = Geometry(space, size, channels, boundary)
    dense = np.where(rng.random((n_signals, 3, *geometry.grid)) < 0.2, rng.standard_normal((3, *geometry.grid)), 0)
    signals = [rng.standard_normal((channels, *space)) for _ in range(n_signals)]
    seen = None
    if weights is not None:
        seen = [np.ones((channels, *space)) for _ in range(n_signals)]
        seen[0][:, : space[0] // 2] = 0
        seen[1] *= 0.5
    residuals = [
        signal - reference.synthesise(codes, filters, boundary) for signal, codes in zip(signals, dense, strict=True)
    ]
    if seen is not None:
        residuals = [w * r for w, r in zip(seen, residuals, strict=True)]
    return CodedBatch(signals, seen, SparseCodes.from_dense(dense), residuals, boundary), filters, Robust(window=window)


def some_outliers(windows, seed=1):
    """One signal as it is, one without one of its windows, one left out altogether."""
    chosen = [np.zeros(one.errors.shape, bool) for one in windows]
    chosen[1].flat[np.random.default_rng(seed).integers(chosen[1].size)] = True
    chosen[2][...] = True
    return [one.outside(out) for one, out in zip(windows, chosen, strict=True)], chosen


@pytest.mark.parametrize("shape", SPACES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "mask"])
def test_errors_of_windows_are_their_part_of_the_objective(reference, shape, boundary, weights):
    batch, filters, robust = coded(reference, shape, boundary, weights=weights)
    penalty = np.array([0.2, 0.3, 0.5])
    for i, one in enumerate(window_errors(batch, filters, penalty, robust)):
        w = np.ones(batch.signals[i].shape) if batch.weights is None else batch.weights[i]
        codes = batch.codes[i].to_dense()[0]
        losses = 0.5 * np.sum(w * (batch.signals[i] - reference.synthesise(codes, filters, boundary)) ** 2, axis=0)
        paid = np.sum(np.abs(codes) * penalty.reshape(-1, *[1] * (codes.ndim - 1)), axis=0)
        assert one.costs.sum() == pytest.approx(losses.sum() + paid.sum())
        if boundary in ("same", "circular"):  # codes have their centres where they are
            for box, error in zip(one.boxes(np.ones(one.errors.shape, bool)), one.errors.ravel(), strict=True):
                place = tuple(slice(*ends) for ends in box.reshape(2, -1).T)
                seen = np.count_nonzero(w[(slice(None), *place)])
                expected = (losses[place].sum() + paid[place].sum()) / seen if seen else np.nan
                assert error == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("shape", SPACES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", [None, "mask"])
def test_what_is_left_out_is_left_out_exactly(reference, shape, boundary, weights):
    """The dense statistics without outliers are those of all codes with weights of zero; the small ones majorise them."""
    batch, filters, robust = coded(reference, shape, boundary, weights=weights)
    windows = window_errors(batch, filters, 0.3, robust)
    counted, chosen = some_outliers(windows)
    kept = without_outliers(batch, filters, counted, None)
    assert len(kept) == 2
    masks = []
    for signal, one, out in zip(batch.signals, windows, chosen, strict=True):
        mask = np.ones(signal.shape)
        for box in one.boxes(out):
            mask[(slice(None), *[slice(*ends) for ends in box.reshape(2, -1).T])] = 0
        masks.append(mask)
    full = batch.weights or [np.ones(signal.shape) for signal in batch.signals]
    masked = CodedBatch(
        batch.signals, [w * m for w, m in zip(full, masks, strict=True)], batch.codes, batch.residuals, boundary
    )
    exact, trimmed, small = (
        kind(3, 2, filters.shape[2:]) for kind in (DenseStatistics, DenseStatistics, ToeplitzStatistics)
    )
    exact.add(masked, filters, np.array([1.0, 2.0, 3.0]))
    trimmed.add(kept, filters, np.array([1.0, 2.0]))
    small.add(kept, filters, np.array([1.0, 2.0]))
    np.testing.assert_allclose(trimmed.linear, exact.linear, atol=1e-12)
    for other in (filters, reference.filters(np.random.default_rng(4), 3, 2, filters.shape[2:])):
        assert reference.surrogate(trimmed, other) == pytest.approx(reference.surrogate(exact, other))
    assert (
        reference.surrogate(small, other) - reference.surrogate(small, filters)
        >= reference.surrogate(exact, other) - reference.surrogate(exact, filters) - 1e-9
    )


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", SPACES)
def test_codes_that_touch_nothing_that_counts_are_dropped(reference, shape, boundary):
    batch, filters, robust = coded(reference, shape, boundary, channels=1)
    counted, _ = some_outliers(window_errors(batch, filters, 0.3, robust))
    support = np.ones((3, *filters.shape[2:]), bool)
    support[1] = False
    support[1].flat[0] = True
    kept = without_outliers(batch, filters, counted, support)
    weights = kept.weights[1]
    geometry = kept.geometry(filters, 1)
    touching, expected = [], []
    for index in batch.codes.indices[1]:
        alone = np.zeros((3, *geometry.grid))
        alone.flat[index] = 1
        covered = reference.synthesise(alone, support[:, None].astype(float), boundary) > 0.5
        touching += [index] if np.any(covered) else []
        expected += [index] if np.any(covered * weights) else []
    np.testing.assert_array_equal(np.intersect1d(kept.codes.indices[1], touching), expected)
    assert 0 < len(expected) < len(touching)


def test_signals_without_outliers_stay_as_they_are(reference):
    batch, filters, robust = coded(reference, "2-D", "same")
    windows = window_errors(batch, filters, 0.3, robust)
    assert without_outliers(batch, filters, [np.ones(one.costs.shape, bool) for one in windows], None) is batch
    none = [np.zeros(one.costs.shape, bool) for one in windows]
    assert len(without_outliers(batch, filters, none, None)) == 0


def test_windows_cover_a_signal_and_overlap_by_half():
    geometry = Geometry((200, 30), (10, 10))
    cells = cell_counts(Robust(), geometry)
    assert cells == (20, 3)
    assert cell_counts(Robust(), Geometry((29, 29), (10, 10))) == (1, 1)
    assert cell_counts(Robust(), Geometry((59,), (10,))) == (1,)
    assert cell_counts(Robust(), Geometry((60,), (10,))) == (3,)
    assert cell_counts(Robust(window=(50, 100)), geometry) == (8, 1)
    windows = Windows((200, 30), np.ones(cells), np.full(cells, 100.0))
    boxes = windows.boxes(np.ones(windows.errors.shape, bool))
    assert boxes[0].tolist() == [0, 0, 20, 20]
    assert boxes[-1].tolist() == [180, 10, 200, 30]
    alone = np.zeros(windows.errors.shape, bool)
    alone[3, 1] = True
    assert np.argwhere(~windows.outside(alone)).tolist() == [[3, 1], [3, 2], [4, 1], [4, 2]]


def test_limits():
    errors = np.concatenate([np.linspace(1, 2, 99), [50.0]])
    deviation = np.median(np.abs(errors - np.median(errors)))
    assert error_limit(Robust(), errors, 0) == pytest.approx(np.median(errors) + 3.5 * 1.4826 * deviation)
    assert np.sum(errors > error_limit(Robust(fraction=0.1), errors, 0)) == 10
    assert np.sum(errors > error_limit(Robust(fraction=0.001), errors, 0)) == 0
    assert error_limit(Robust(warm_up=3), errors, 2) == np.inf
    assert error_limit(Robust(warm_up=3), errors, 3) < 50
    assert error_limit(Robust(), np.array([1.0, 1.0, 1.0, 9.0]), 0) == np.inf


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fraction": 0.1, "alpha": 3.0}, "fraction and alpha"),
        ({"window": (3, 1.5)}, "window must be None, a positive integer"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Robust(**settings)
