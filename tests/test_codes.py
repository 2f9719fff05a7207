"""Tests of sparse codes: what they hold, as tables of events, as features."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pointillist as pt
from pointillist.codes import SparseCodes


@pytest.fixture
def dense():
    rng = np.random.default_rng(0)
    return np.where(rng.random((3, 4, 5, 6)) < 0.2, rng.standard_normal((3, 4, 5, 6)), 0).astype(np.float32)


@pytest.fixture
def mixed():
    rng = np.random.default_rng(1)
    return [rng.standard_normal((2, 4)), rng.standard_normal((2, 7)) * (rng.random((2, 7)) < 0.5)]


def test_dense_round_trip(dense):
    codes = SparseCodes.from_dense(dense)
    np.testing.assert_array_equal(codes.to_dense(), dense)
    assert codes.to_dense().dtype == np.float32
    assert codes.shape == dense.shape
    assert codes.nnz == np.count_nonzero(dense)
    assert repr(codes) == f"SparseCodes(3 signals, on 5×6, 4 filters, {codes.nnz} non-zeros)"
    np.testing.assert_array_equal(codes.to_scipy().toarray(), dense.reshape(3, -1))
    parts = list(codes)
    assert [len(part) for part in parts] == [1, 1, 1]
    np.testing.assert_array_equal(SparseCodes.concatenate(parts).to_dense(), dense)


def test_no_codes_at_all():
    codes = SparseCodes.from_dense(np.zeros((2, 3, 4), np.float32))
    assert (codes.nnz, codes.to_scipy().nnz, len(codes.events())) == (0, 0, 0)
    np.testing.assert_array_equal(codes.to_dense(), np.zeros((2, 3, 4)))
    np.testing.assert_array_equal(codes.usage(), np.zeros(3))
    assert codes[[]].pool().shape == (0, 3)
    pooled = codes.pool("max", regions=2)
    assert pooled.dtype == np.float32
    np.testing.assert_array_equal(pooled, np.zeros((2, 6)))


@pytest.mark.parametrize(
    "item",
    [0, -1, slice(1, None), slice(None, None, -1), [2, 0], [1], np.array([0, 0, 2]), np.array([True, False, True]), []],
)
def test_selection_follows_numpy(dense, item):
    chosen = SparseCodes.from_dense(dense)[item]
    expected = dense[item] if not isinstance(item, int) else dense[item][None]
    assert len(chosen) == len(expected)
    if len(chosen):
        np.testing.assert_array_equal(chosen.to_dense(), expected)


@pytest.mark.parametrize("item", [3, -4, [0, 5], np.array([True, False])])
def test_selection_outside_is_an_index_error(dense, item):
    with pytest.raises(IndexError, match=r"of 3|for 3 signals"):
        SparseCodes.from_dense(dense)[item]


def test_count_and_usage(dense):
    codes = SparseCodes.from_dense(dense)
    np.testing.assert_array_equal(codes.count(0.5), np.sum(np.abs(dense) >= 0.5, axis=(1, 2, 3)))
    np.testing.assert_array_equal(codes.count(), np.sum(np.abs(dense) >= np.float32(0.1), axis=(1, 2, 3)))
    np.testing.assert_allclose(codes.usage(), np.abs(dense).astype(np.float64).sum(axis=(0, 2, 3)), rtol=1e-12)


def test_grids_of_different_shapes(mixed):
    codes = SparseCodes.from_dense(mixed)
    assert codes.grids == [(4,), (7,)]
    for part, one in zip(codes, mixed, strict=True):
        np.testing.assert_array_equal(part.to_dense()[0], one)
    np.testing.assert_allclose(codes.usage(), sum(np.abs(one).sum(axis=1) for one in mixed))
    for one, expected in zip(codes.to_dense(), mixed, strict=True):
        np.testing.assert_array_equal(one, expected)
    for operation in (codes.to_scipy, lambda: np.asarray(codes)):
        with pytest.raises(ValueError, match=r"one shape, these have 2; pool\(\) gives features of one length"):
            operation()
    assert not hasattr(codes, "shape")
    assert repr(codes) == f"SparseCodes(2 signals, on 2 sizes of grids, 2 filters, {codes.nnz} non-zeros)"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SparseCodes([], [np.ones(1)], [(3,)], 1), "one entry for each signal"),
        (lambda: SparseCodes([np.arange(2)], [np.ones(3)], [(3,)], 1), "signal 0 must be 1-D and equally long"),
        (lambda: SparseCodes([np.array([1])], [np.ones(1)], [("5",)], 2), "a tuple of integers for each signal"),
        (lambda: SparseCodes.from_dense([]), "at least one signal"),
        (lambda: SparseCodes.from_dense([np.ones((2, 4)), np.ones((3, 4))]), "filters"),
        (lambda: SparseCodes.concatenate([SparseCodes.from_dense(np.ones((1, k, 4))) for k in (2, 3)]), "filters"),
        (lambda: SparseCodes.concatenate([]), "at least one"),
    ],
)
def test_bad_codes_say_why(build, message):
    with pytest.raises(ValueError, match=message):
        build()


class Tensor:
    """What torch's tensors have and NumPy's arrays have not: a type without a letter."""

    def __init__(self, *, real):
        self.ndim, self.shape = 1, (3,)
        self.dtype = SimpleNamespace(is_complex=False, is_floating_point=real)


def test_tensors_are_taken_by_what_torch_says_of_their_numbers():
    assert len(SparseCodes([Tensor(real=False)], [Tensor(real=True)], [(9,)], 1)) == 1
    with pytest.raises(ValueError, match="indices must be integers"):
        SparseCodes([Tensor(real=True)], [Tensor(real=True)], [(9,)], 1)


def _events_of(grid, n_filters=3, n_signals=2):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((n_signals, n_filters, *grid)) < 0.2, rng.standard_normal((n_filters, *grid)), 0)
    return dense, pt.SparseCodes.from_dense(dense)


@pytest.mark.parametrize(
    ("grid", "names"),
    [
        ((40,), ["sample"]),
        ((6, 7), ["row", "column"]),
        ((4, 5, 3), ["depth", "row", "column"]),
        ((2, 3, 2, 3), ["axis0", "axis1", "axis2", "axis3"]),
    ],
)
def test_every_code_once_and_in_order(grid, names):
    dense, codes = _events_of(grid)
    events = codes.events()
    time = ["time"] if len(grid) == 1 else []
    assert list(events.dtype.names) == ["signal", *names, *time, "filter", "amplitude"]
    again = np.zeros_like(dense)
    again[(events["signal"], events["filter"], *(events[name] for name in names))] = events["amplitude"]
    np.testing.assert_array_equal(again, dense)
    keys = [tuple(event[name] for name in ("signal", *names, "filter")) for event in events]
    assert len(keys) == codes.nnz
    assert keys == sorted(keys)


@pytest.mark.parametrize(("boundary", "lies"), [("same", 2), ("circular", 2), ("valid", 0), ("full", 5)])
def test_what_a_sample_means_for_each_boundary(boundary, lies):
    """The sample of the filter that lies on an event's sample is its centre, its first or its last one."""
    filters = np.array([[0.0, 1.0, 3.0, -2.0, 1.0, 0.5]])
    signal = np.zeros((1, 60))
    signal[0, 30 : 30 + filters.shape[1]] = filters[0]
    events = pt.encode(signal, filters, penalty=0.1, boundary=boundary).codes.events()
    strongest = events[np.argmax(np.abs(events["amplitude"]))]
    assert strongest["sample"] == 30 + lies


def test_refusals():
    _, images = _events_of((6, 7))
    with pytest.raises(ValueError, match="sampling_rate is for signals in time"):
        images.events(sampling_rate=100)
    with pytest.raises(ValueError, match="sampling_rate must be a positive"):
        _events_of((40,))[1].events(sampling_rate=0)
    mixed = pt.SparseCodes([np.array([0])] * 2, [np.ones(1)] * 2, [(5,), (5, 5)], 1)
    for table in (mixed.events, mixed.pool):
        with pytest.raises(ValueError, match="one number of dimensions"):
            table()


def test_data_frames(monkeypatch):
    _, codes = _events_of((40,))
    timed = codes.events(sampling_rate=250)
    np.testing.assert_array_equal(timed["time"], timed["sample"] / 250)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    frame = codes.events(as_frame=True)
    np.testing.assert_array_equal(frame["sample"], codes.events()["sample"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'pointillist\[pandas\]'"):
        codes.events(as_frame=True)


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
