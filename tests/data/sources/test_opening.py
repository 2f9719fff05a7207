"""Tests of opening what people type, and of signals from many files: order, types, and what happens to unreadable ones."""

import pickle
import sys

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image

import pointillist as pt
from pointillist.arrays import is_mapped
from pointillist.data import load_signals
from pointillist.data.sources import Hdf5Source, open_source
from pointillist.errors import UnreadableFileError

STACK = np.random.default_rng(0).random((5, 9, 11)).astype(np.float32)


def test_opening_what_people_type(tmp_path):
    for i in range(11):
        Image.new("L", (8, 8)).save(tmp_path / f"i{i}.png")
    np.save(tmp_path / "a.npy", STACK)
    tifffile.imwrite(tmp_path / "a.tif", STACK, photometric="minisblack")
    source = open_source(tmp_path)
    assert len(source) == 11 + 5 + 5
    assert [source.name(i).rsplit("/", 1)[1] for i in (0, 5, 12)] == ["a.npy[0]", "a.tif[0]", "i2.png"]
    assert len(open_source([str(tmp_path / "i1*.png"), tmp_path / "a.npy"])) == 2 + 5
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["group/images"] = STACK
    zarr.save_array(str(tmp_path / "a.zarr"), STACK)
    for path in (f"{tmp_path}/a.h5::group/images", tmp_path / "a.zarr"):
        np.testing.assert_array_equal(open_source(path).read(1), STACK[1])
    for missing in ("nowhere", "nowhere/*.png", "nowhere.h5::a"):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            open_source(tmp_path / missing)
    with pytest.raises(UnreadableFileError, match=r"i0\.png is no array: with ndim=1 only \.npy"):
        open_source(tmp_path / "i0.png", ndim=1)


def test_files_that_do_not_open_stand_for_one_unreadable_signal(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"no array")
    with pytest.raises(UnreadableFileError, match=r"a\.npy"):
        open_source(tmp_path)
    source = open_source(tmp_path, on_error="skip")
    assert len(source) == 1
    with pytest.raises(UnreadableFileError, match=r"a\.npy"):
        source.read(0)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "a.h5").write_bytes(b"")
    with pytest.raises(ImportError, match=r"pointillist\[hdf5\]"):
        Hdf5Source(tmp_path / "a.h5")


def test_signals_mix_images_single_arrays_and_stacks(tmp_path):
    np.save(tmp_path / "2.npy", STACK)
    np.save(tmp_path / "3.npy", np.full((5, 5), 51, np.uint8))
    Image.new("L", (5, 4), 51).save(tmp_path / "1.png")
    signals = load_signals(tmp_path)
    np.testing.assert_array_equal(np.stack(signals[1:6]), STACK)
    assert not signals[1].flags.owndata  # mapped rather than read
    assert not signals[1].flags.writeable
    for signal in (signals[0], signals[6]):
        np.testing.assert_allclose(signal, 0.2, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_large_signals_stay_in_files(tmp_path, monkeypatch, dtype):
    for module in ("", "base.", "stacks."):
        monkeypatch.setattr(f"pointillist.data.sources.{module}LARGE", 100)
    raw = np.random.default_rng(5).integers(0, 256, (30, 20)).astype(dtype)
    np.save(tmp_path / "1.npy", raw)
    tifffile.imwrite(tmp_path / "2.tif", raw, photometric="minisblack")
    scale = 255 if dtype == np.uint8 else 1
    for signal in load_signals(tmp_path):
        assert is_mapped(signal)
        np.testing.assert_allclose(signal, raw / scale, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint16, ">u2", ">f8", np.float16, bool])
def test_types_become_native_floats(tmp_path, dtype):
    raw = np.random.default_rng(1).integers(0, 2, (4, 5)).astype(dtype)
    np.save(tmp_path / "a.npy", raw)
    (signal,) = load_signals(tmp_path / "a.npy")
    assert signal.dtype == (np.float64 if raw.dtype.itemsize == 8 else np.float32)
    assert signal.dtype.isnative
    scale = 65535 if raw.dtype.kind == "u" else 1
    np.testing.assert_allclose(signal, raw / scale, rtol=1e-6)


class Trap:
    """Unpickling this would call `pytest.fail`."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_pickles_are_never_loaded(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UnreadableFileError):
        load_signals(path)
    np.save(path, np.array([[Trap()]], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFileError):
        load_signals(path)


@pytest.mark.parametrize("array", [np.zeros((0, 4, 4)), np.zeros((3, 3), dtype=np.int64), np.zeros((3, 3), "c8")])
def test_empty_arrays_and_other_types_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UnreadableFileError, match=r"a\.npy"):
        load_signals(tmp_path / "a.npy")


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8 there")
def test_names_that_are_not_utf8_are_read(tmp_path):
    path = tmp_path / "a\udcff.npy"
    np.save(path, STACK)
    assert pt.open_source(path).describe()["signals"] == len(STACK)
