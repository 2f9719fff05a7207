"""Tests of signals from pictures and from many files: order, folders, arrays and what happens to unreadable ones."""

import logging
import pickle

import numpy as np
import pytest
import scipy.sparse
import tifffile
from PIL import Image

from pointillist.arrays import is_mapped
from pointillist.data import as_signals, load_images, load_signals
from pointillist.errors import UnreadableFileError


def write_png(path, value=0, shape=(4, 5)):
    Image.fromarray(np.full(shape, value, dtype=np.uint8)).save(path)
    return path


def test_folder_is_read_in_natural_order_and_one_level_deep(tmp_path):
    for number in (10, 9, 2, 1):
        write_png(tmp_path / f"frame{number}.PNG", number)
    (tmp_path / "notes.txt").write_text("not a picture")
    (tmp_path / ".hidden.png").write_bytes(b"")
    (tmp_path / "deeper").mkdir()
    write_png(tmp_path / "deeper" / "frame5.png", 5)
    images = load_images(tmp_path)
    np.testing.assert_allclose([image[0, 0] * 255 for image in images], [1, 2, 9, 10], rtol=1e-6)


def test_explicit_order_is_kept_and_sizes_may_differ(tmp_path):
    paths = [write_png(tmp_path / "b.png", shape=(3, 4)), str(write_png(tmp_path / "a.png", shape=(6, 2)))]
    assert [image.shape for image in load_images(paths)] == [(3, 4), (6, 2)]
    assert load_images(paths[0], grey=False)[0].shape == (3, 4, 3)


def test_missing_and_empty(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_images([tmp_path / "nowhere"], on_error="skip")
    with pytest.raises(ValueError, match="holds no files to read"):
        load_images(tmp_path)
    with pytest.raises(ValueError, match="paths is empty"):
        load_images([])
    with pytest.raises(ValueError, match="on_error must be"):
        load_images(write_png(tmp_path / "a.png"), on_error="ignore")


def test_unreadable_file_raises_or_is_skipped_with_a_warning(tmp_path, caplog):
    write_png(tmp_path / "1.png")
    (tmp_path / "2.png").write_bytes(b"damaged")
    with pytest.raises(UnreadableFileError, match=r"2\.png"):
        load_images(tmp_path)
    with caplog.at_level(logging.WARNING, "pointillist.data"):
        assert len(load_images(tmp_path, on_error="skip")) == len(load_signals(tmp_path, on_error="skip")) == 1
    assert caplog.text.count("2.png") == 2
    (tmp_path / "1.png").unlink()
    with pytest.raises(ValueError, match="none of the 1 items can be used"):
        load_images(tmp_path, on_error="skip")


def test_signals_mix_images_single_arrays_and_stacks(tmp_path):
    generator = np.random.default_rng(0)
    stack = generator.random((3, 6, 7))
    np.save(tmp_path / "2.npy", stack)
    np.save(tmp_path / "3.npy", generator.integers(0, 256, (5, 5), dtype=np.uint8))
    write_png(tmp_path / "1.png", 51)
    signals = load_signals(tmp_path)
    assert len(signals) == 5
    np.testing.assert_allclose(signals[0], 0.2, rtol=1e-6)
    np.testing.assert_array_equal(np.stack(signals[1:4]), stack)
    assert signals[4].dtype == np.float32
    assert signals[4].max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_large_signals_stay_in_files(tmp_path, monkeypatch, dtype):
    for module in ("base", "opening", "stacks"):
        monkeypatch.setattr(f"pointillist.data.sources.{module}.LARGE", 100)
    raw = np.random.default_rng(5).integers(0, 256, (30, 20)).astype(dtype)
    np.save(tmp_path / "1.npy", raw)
    tifffile.imwrite(tmp_path / "2.tif", raw, photometric="minisblack")
    scale = 255 if dtype == np.uint8 else 1
    for signal in load_signals(tmp_path):
        assert is_mapped(signal)
        np.testing.assert_allclose(signal, raw / scale, rtol=1e-6)


def test_pictures_become_signals():
    rng = np.random.default_rng(6)
    colour, grey = rng.random((5, 4, 3)), rng.random((5, 4))
    np.testing.assert_array_equal(as_signals(colour), np.moveaxis(colour, -1, 0)[None])
    np.testing.assert_array_equal(as_signals(np.moveaxis(colour, -1, 0), channel_axis=0), as_signals(colour))
    np.testing.assert_array_equal(as_signals(grey), grey[None])
    assert as_signals({"a": colour, "b": colour}.values()).shape == (2, 3, 5, 4)
    assert [signal.shape for signal in as_signals([grey, grey[1:]])] == [(5, 4), (4, 4)]
    assert as_signals(rng.random((6, 5, 4)), channel_axis=None).shape == (1, 6, 5, 4)
    assert as_signals(np.full((2, 2), 255, np.uint8)).max() == 1
    for wrong, reason in (([grey, colour], "all grey or all colour"), ([], "empty"), (colour[None], "must be")):
        with pytest.raises(ValueError, match=reason):
            as_signals(wrong)


def test_float_stack_is_mapped_rather_than_read(tmp_path):
    np.save(tmp_path / "s.npy", np.zeros((2, 4, 4), dtype=np.float32))
    signal = load_signals(tmp_path / "s.npy")[0]
    assert not signal.flags.owndata
    assert not signal.flags.writeable


@pytest.mark.parametrize("dtype", [np.uint16, ">u2", ">f8", np.float16, bool])
def test_types_become_native_floats(tmp_path, dtype):
    raw = np.random.default_rng(1).integers(0, 2, (4, 5)).astype(dtype)
    np.save(tmp_path / "a.npy", raw)
    (signal,) = load_signals(tmp_path / "a.npy")
    assert signal.dtype == (np.float64 if raw.dtype.itemsize == 8 else np.float32)
    assert signal.dtype.isnative
    scale = 65535 if raw.dtype.kind == "u" else 1
    np.testing.assert_allclose(signal, raw / scale, rtol=1e-6)


@pytest.mark.parametrize(("ndim", "shape", "count"), [(1, (9,), 1), (1, (4, 9), 4), (3, (2, 3, 4, 5), 2)])
def test_series_and_volumes(tmp_path, ndim, shape, count):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    signals = load_signals(tmp_path / "a.npy", ndim=ndim)
    assert len(signals) == count
    assert signals[0].ndim == ndim


def test_wrong_number_of_axes_and_images_as_series(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(4))
    with pytest.raises(UnreadableFileError, match=r"a\.npy.*must have 2 or 3 axes"):
        load_signals(tmp_path / "a.npy")
    with pytest.raises(UnreadableFileError, match="with ndim=1 only"):
        load_signals(write_png(tmp_path / "a.png"), ndim=1)


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


def test_sparse_pictures_are_refused_by_name():
    with pytest.raises(TypeError, match=r"pictures\[0\] is sparse"):
        as_signals(scipy.sparse.coo_matrix(np.eye(4)))
