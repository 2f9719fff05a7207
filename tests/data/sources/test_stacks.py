"""Tests of stacks of signals in one file: what is stored is given by index, with channels ahead, also in other processes."""

import pickle
import warnings

import h5py
import numpy as np
import pytest
import tifffile
import zarr

from pointillist.arrays import is_mapped
from pointillist.data import load_signals
from pointillist.data.sources import (
    ArraySource,
    CropSource,
    Hdf5Source,
    JoinedSource,
    NpySource,
    Source,
    TiffSource,
    ZarrSource,
    open_source,
    stacks,
)
from pointillist.errors import UnreadableFileError

STACK = np.random.default_rng(0).random((5, 9, 11)).astype(np.float32)
RECORDING = np.random.default_rng(0).standard_normal((3, 400)).astype(np.float32)


def as_npy(path, stack=STACK):
    np.save(path / "a.npy", stack)
    return NpySource(path / "a.npy")


def as_tiff(path, stack=STACK):
    tifffile.imwrite(path / "a.tif", stack, photometric="minisblack")
    return TiffSource(path / "a.tif")


def as_compressed_tiff(path, stack=STACK):
    tifffile.imwrite(path / "a.tif", stack, photometric="minisblack", compression="zlib")
    return TiffSource(path / "a.tif")


def as_hdf5(path, stack=STACK):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "a.h5", "w") as file:
        file["group/images"] = stack
        file["other"] = np.zeros(3)
    return Hdf5Source(path / "a.h5", "group/images")


def as_zarr(path, stack=STACK):
    zarr = pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.save(str(path / "a.zarr"), stack)
    return ZarrSource(path / "a.zarr")


def as_arrays(path, stack=STACK):
    return ArraySource(stack)


def as_joined(path, stack=STACK):
    np.save(path / "b.npy", stack[:2])
    return JoinedSource([NpySource(path / "b.npy"), ArraySource(list(stack[2:]))])


@pytest.mark.parametrize("make", [as_npy, as_tiff, as_compressed_tiff, as_hdf5, as_zarr, as_arrays, as_joined])
def test_gives_what_is_stored_by_index_here_and_elsewhere(make, tmp_path):
    source = make(tmp_path)
    assert isinstance(source, Source)
    for one in (source, pickle.loads(pickle.dumps(source))):
        assert len(one) == len(STACK)
        for index in (3, 0, 4, 3):
            np.testing.assert_array_equal(one.read(index), STACK[index])
            np.testing.assert_array_equal(one.window(index, (2, 5), (4, 3)), STACK[index, 2:6, 5:8])
            assert one.shape(index) == STACK.shape[1:]
        assert one.describe() == source.describe()
    assert source.name(3).endswith("[3]") or make is as_joined


@pytest.mark.parametrize("make", [as_npy, as_tiff, as_hdf5])
def test_other_content_is_another_identity(make, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert make(tmp_path / "one").describe() != make(tmp_path / "two", STACK + 1).describe()


@pytest.mark.parametrize("make", [as_npy, as_tiff, as_compressed_tiff, as_hdf5])
def test_a_container_cut_short_is_unreadable(make, tmp_path):
    file = make(tmp_path).path
    content = file.read_bytes()
    # Half of an uncompressed TIFF has its first page whole, which is then all that there is.
    for kept in (0, 7) if make is as_tiff else (0, 7, len(content) // 2):
        file.write_bytes(content[:kept])
        with pytest.raises(UnreadableFileError, match=file.name):
            _read_all(f"{file}::group/images" if file.suffix == ".h5" else file)


def _read_all(path):
    source = open_source(path)
    return [source.read(index) for index in range(len(source))]


@pytest.mark.parametrize(("ndim", "axis", "shape", "count"), [
    (1, None, (9,), 1), (1, None, (4, 9), 4), (3, None, (2, 3, 4, 5), 2), (3, None, (3, 4, 5), 1), (1, 0, (4, 9), 1),
])  # fmt: skip
def test_series_volumes_and_wrong_axes(tmp_path, ndim, axis, shape, count):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    source = NpySource(tmp_path / "a.npy", ndim, channel_axis=axis)
    assert (len(source), source.shape(0)) == (count, shape[-ndim - (axis is not None) :])
    with pytest.raises(UnreadableFileError, match=r"a\.npy.*it must have . or . axes for ndim="):
        NpySource(tmp_path / "a.npy", ndim + 3)


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
