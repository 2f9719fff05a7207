"""Tests of arrays that may live in files: bands cover them, and what is computed in bands is exact."""

import numpy as np
import pytest

from pointillist import large


@pytest.fixture
def narrow(monkeypatch):
    """Bands so small that small arrays have many."""
    monkeypatch.setattr(large, "BAND_SAMPLES", 64)


@pytest.mark.parametrize("shape", [(1, 1000), (2, 7, 13), (1, 3, 400), (3, 5, 4, 6), (1, 1)])
def test_bands_cover_every_sample_once(narrow, shape):
    seen = np.zeros(shape, int)
    for band in large.bands(shape):
        seen[band] += 1
    assert np.all(seen == 1)


def test_companions_of_files_are_in_files(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for view in (mapped, np.asarray(mapped)[None], mapped[1:].T):
        assert large.is_mapped(view)
        assert isinstance(large.scratch(view, (2, 2), np.float32), np.memmap)
    assert not large.is_mapped(mapped + 1)
    held = large.scratch(mapped, (5,), np.float64)
    held[:] = 3
    np.testing.assert_array_equal(held, 3)
    assert type(large.scratch(np.zeros(3), (5,), np.float64)) is np.ndarray


def test_conversion_copies_only_what_differs(narrow):
    array = np.arange(300, dtype=np.int16).reshape(1, 10, 30)
    np.testing.assert_array_equal(large.converted(array, np.float32), array.astype(np.float32))
    assert large.converted(array, np.int16) is array
    turned = large.converted(array.swapaxes(1, 2), np.int16)
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, array.swapaxes(1, 2))


def test_extent(narrow):
    array = np.random.default_rng(0).standard_normal((2, 20, 30))
    assert large.extent(array) == (array.min(), array.max())
    array[1, 7, 7] = np.nan
    assert np.isnan(large.extent(array)).all()


@pytest.mark.parametrize("kind", ["even", "skewed", "ties", "constant"])
def test_ranks_are_exact(narrow, kind):
    rng = np.random.default_rng(1)
    values = {
        "even": rng.random((40, 50)),
        "skewed": np.exp(20 * rng.standard_normal((40, 50))),
        "ties": np.where(rng.random((40, 50)) < 0.7, 0.0, rng.random((40, 50))),
        "constant": np.full((40, 50), 0.25),
    }[kind]
    ordered = np.sort(values, axis=None)
    for rank in (0, 1, 700, 999, 1000, 1500, 1998, 1999):
        assert large.ranked(values, rank) == ordered[rank]


def test_pages_are_let_go_of_but_nothing_is_lost(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3 * 10**5, dtype=np.float32).reshape(3, -1))
    for mode in ("r", "r+", "c"):
        array = np.load(tmp_path / "a.npy", mmap_mode=mode)
        if mode != "r":
            array[1, 5] = -7
        before = array.copy()
        large.release(array, array[1:, ::2], np.zeros(3))
        np.testing.assert_array_equal(array, before)
    file = large.scratch_file((2, 10**5), np.float32)
    for band in large.walked(file):
        file[band] = 5
    assert (file == 5).all()
