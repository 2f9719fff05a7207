"""Tests of recordings with channels in files: one signal with its channels ahead, whichever way it is stored."""

import h5py
import numpy as np
import pytest
import zarr

from pointillist import load_signals, open_source
from pointillist.arrays import is_mapped
from pointillist.data.sources import CropSource, Hdf5Source, NpySource, ZarrSource, stacks
from pointillist.errors import UnreadableFileError

RECORDING = np.random.default_rng(0).standard_normal((3, 400)).astype(np.float32)


def _stored(path, kind, array):
    if kind == "npy":
        np.save(path / "a.npy", array)
        return path / "a.npy"
    if kind == "hdf5":
        with h5py.File(path / "a.h5", "w") as file:
            file.create_dataset("x", data=array, chunks=True)
        return path / "a.h5"
    zarr.save_array(str(path / "a.zarr"), array)
    return path / "a.zarr"


@pytest.mark.parametrize("kind", ["npy", "hdf5", "zarr"])
@pytest.mark.parametrize(
    ("axis", "layout"), [(0, RECORDING), (-1, RECORDING.T), (1, np.ascontiguousarray(RECORDING.T))]
)
def test_a_recording_is_one_signal(tmp_path, monkeypatch, kind, axis, layout):
    source = open_source(_stored(tmp_path, kind, layout), ndim=1, channel_axis=axis)
    assert (len(source), source.shape(0)) == (1, (3, 400))
    np.testing.assert_array_equal(source.read(0), RECORDING)
    np.testing.assert_array_equal(source.window(0, (17,), (50,)), RECORDING[:, 17:67])
    np.testing.assert_array_equal(source.mapped(0), RECORDING)
    monkeypatch.setattr(stacks, "LARGE", 100)
    large = source.mapped(0)
    assert is_mapped(large)
    np.testing.assert_array_equal(large, RECORDING)
    crop = CropSource(source, 5, (64,), seed=1).read(2)
    assert crop.shape == (3, 64)
    assert crop.flags.c_contiguous


@pytest.mark.parametrize("kind", ["npy", "hdf5", "zarr"])
def test_stacks_of_recordings(tmp_path, kind):
    stack = np.stack([RECORDING, 2 * RECORDING])
    path = _stored(tmp_path, kind, np.moveaxis(stack, 1, 2))
    source = open_source(path, ndim=1, channel_axis=-1)
    assert (len(source), source.shape(1)) == (2, (3, 400))
    np.testing.assert_array_equal(source.read(1), stack[1])
    np.testing.assert_array_equal(source.window(1, (3,), (9,)), stack[1, :, 3:12])
    for signal, expected in zip(load_signals(path, ndim=1, channel_axis=-1), stack, strict=True):
        np.testing.assert_array_equal(signal, expected)


def test_large_integers_are_scaled_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "LARGE", 100)
    raw = np.random.default_rng(0).integers(0, 65536, (400, 3)).astype(np.uint16)
    signal = NpySource(_stored(tmp_path, "npy", raw), 1, channel_axis=-1).mapped(0)
    assert is_mapped(signal)
    np.testing.assert_array_equal(signal, raw.T.astype(np.float32) / np.float32(65535))


@pytest.mark.parametrize("opened", [NpySource, Hdf5Source, ZarrSource])
@pytest.mark.parametrize("axis", [2, -3, 0.5, "last"])
def test_odd_axes_are_refused(tmp_path, opened, axis):
    kind = {NpySource: "npy", Hdf5Source: "hdf5", ZarrSource: "zarr"}[opened]
    with pytest.raises(ValueError, match="channel_axis must be"):
        opened(_stored(tmp_path, kind, RECORDING), ndim=1, channel_axis=axis)


def test_wrong_numbers_of_axes_are_refused(tmp_path):
    with pytest.raises(UnreadableFileError, match="2 or 3 axes for ndim=1 and channels"):
        NpySource(_stored(tmp_path, "npy", RECORDING[0]), 1, channel_axis=0)
