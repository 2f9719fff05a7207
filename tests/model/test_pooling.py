"""Tests of pooled features: against dense codes that are cut up and summed, for signals of one size and of several."""

import numpy as np
import pytest

from pointillist.codes import SparseCodes

RNG = np.random.default_rng(0)
POOLED = {
    "sum": lambda part: np.abs(part).sum(),
    "mean": lambda part: np.abs(part).mean(),
    "max": lambda part: np.abs(part).max(),
    "count": np.count_nonzero,
}


def _codes(*grids):
    return [np.where(RNG.random((3, *grid)) < 0.3, RNG.standard_normal((3, *grid)), 0) for grid in grids]


def _by_hand(dense, how, regions, signs):
    """Features of one signal, region by region."""
    parts = [np.maximum(dense, 0), np.minimum(dense, 0)] if signs else [dense]
    features = []
    for k in range(len(dense)):
        for part in parts:
            bounds = [[-(-n * i // m) for i in range(m + 1)] for n, m in zip(dense.shape[1:], regions, strict=True)]
            for place in np.ndindex(*regions):
                box = tuple(slice(ends[i], ends[i + 1]) for ends, i in zip(bounds, place, strict=True))
                features.append(POOLED[how](part[k][box]))
    return features


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("how", POOLED)
@pytest.mark.parametrize(
    ("grids", "regions"),
    [([(12,), (12,)], (1,)), ([(11,), (7,)], (3,)), ([(6, 9), (5, 8)], (2, 3)), ([(4, 5, 3)], (2, 2, 3))],
)
def test_pooling_is_what_regions_of_dense_codes_give(grids, regions, how, signs):
    dense = _codes(*grids)
    expected = [_by_hand(one, how, regions, signs) for one in dense]
    found = SparseCodes.from_dense(dense).pool(how, regions=regions, signs=signs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.dtype == np.float64


def test_one_number_of_regions_serves_all_axes_and_the_mean_does_not_grow_with_the_signal():
    codes = SparseCodes.from_dense(_codes((6, 8)))
    np.testing.assert_array_equal(codes.pool(regions=2), codes.pool(regions=(2, 2)))
    flat = SparseCodes.from_dense([np.ones((2, 5)), np.ones((2, 9))])
    np.testing.assert_array_equal(flat.pool("mean"), np.ones((2, 2)))


def test_precision_is_that_of_the_codes_and_no_codes_are_zeros():
    codes = SparseCodes.from_dense(np.zeros((2, 3, 4), np.float32))
    assert codes.pool("max", regions=2).dtype == np.float32
    np.testing.assert_array_equal(codes.pool("max", regions=2), np.zeros((2, 6)))
    assert codes[[]].pool().shape == (0, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"how": "median"}, "how must be one of"),
        ({"regions": 0}, "regions must be a positive integer, or one for each of the 1 axes"),
        ({"regions": (2, 2)}, "regions must be"),
        ({"regions": True}, "regions must be"),
        ({"regions": 5}, r"regions=5 are more than there are positions, on a grid of shape \(4,\)"),
        ({"signs": 2}, "signs must be True or False"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        SparseCodes.from_dense(np.ones((2, 3, 4))).pool(**settings)


def test_signals_must_have_one_number_of_axes():
    with pytest.raises(ValueError, match="one number of axes, got 1 and 2"):
        SparseCodes.from_dense([np.ones((2, 4)), np.ones((2, 4, 4))]).pool()
