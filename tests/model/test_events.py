"""Tests of codes as events: every code once, in order, at its place in the signal."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pointillist as pt


def _codes(grid, n_filters=3, n_signals=2):
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
    dense, codes = _codes(grid)
    events = codes.events()
    time = ["time"] if len(grid) == 1 else []
    assert list(events.dtype.names) == ["signal", *names, *time, "filter", "amplitude"]
    again = np.zeros_like(dense)
    again[(events["signal"], events["filter"], *(events[name] for name in names))] = events["amplitude"]
    np.testing.assert_array_equal(again, dense)
    keys = [tuple(event[name] for name in ("signal", *names, "filter")) for event in events]
    assert len(keys) == codes.nnz
    assert keys == sorted(keys)


def test_times_follow_the_sampling_rate():
    _, codes = _codes((40,))
    events = codes.events(sampling_rate=250)
    np.testing.assert_array_equal(events["time"], events["sample"] / 250)
    assert events["amplitude"].dtype == codes.dtype


@pytest.mark.parametrize(("boundary", "lies"), [("same", 2), ("circular", 2), ("valid", 0), ("full", 5)])
def test_what_a_sample_means_for_each_boundary(boundary, lies):
    """The sample of the filter that lies on an event's sample is its centre, its first or its last one."""
    filters = np.array([[0.0, 1.0, 3.0, -2.0, 1.0, 0.5]])
    signal = np.zeros((1, 60))
    signal[0, 30 : 30 + filters.shape[1]] = filters[0]
    events = pt.encode(signal, filters, penalty=0.1, boundary=boundary).codes.events()
    strongest = events[np.argmax(np.abs(events["amplitude"]))]
    assert strongest["sample"] == 30 + lies


def test_nothing_gives_an_empty_table():
    assert len(pt.SparseCodes([], [], [], 3).events()) == 0
    assert len(pt.SparseCodes.from_dense(np.zeros((1, 2, 5))).events()) == 0


def test_refusals():
    _, images = _codes((6, 7))
    with pytest.raises(ValueError, match="sampling_rate is for signals in time"):
        images.events(sampling_rate=100)
    with pytest.raises(ValueError, match="sampling_rate must be a positive"):
        _codes((40,))[1].events(sampling_rate=0)
    mixed = pt.SparseCodes([np.array([0])] * 2, [np.ones(1)] * 2, [(5,), (5, 5)], 1)
    with pytest.raises(ValueError, match="one number of dimensions"):
        mixed.events()


def test_data_frames(monkeypatch):
    _, codes = _codes((40,))
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    frame = codes.events(as_frame=True)
    np.testing.assert_array_equal(frame["sample"], codes.events()["sample"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'pointillist\[pandas\]'"):
        codes.events(as_frame=True)
