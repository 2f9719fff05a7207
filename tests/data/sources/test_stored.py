"""Tests of the sources that read: what they give is what is stored, by index, also in another process."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import tifffile
from PIL import Image

from pointillist.data import as_signals, contrast_normalise, load_image
from pointillist.data.sources import (
    ArraySource,
    CropSource,
    Hdf5Source,
    ImageSource,
    JoinedSource,
    NormalisedSource,
    NpySource,
    Source,
    TiffSource,
    ZarrSource,
    open_source,
)
from pointillist.data.sources.chunked import ChunkedArray
from pointillist.errors import UnreadableFileError

STACK = np.random.default_rng(0).random((5, 9, 11)).astype(np.float32)


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


EVERY = [as_npy, as_tiff, as_compressed_tiff, as_hdf5, as_zarr, as_arrays, as_joined]


@pytest.mark.parametrize("make", EVERY)
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


def test_arrays_are_told_apart_by_their_samples():
    one, other = ArraySource(STACK), ArraySource(np.where(STACK.max() == STACK, 0, STACK))
    assert one.describe() == ArraySource(STACK.copy()).describe() != other.describe()


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


def test_unsigned_samples_are_scaled_and_other_types_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 3, 3), 255, np.uint8))
    np.testing.assert_array_equal(NpySource(tmp_path / "a.npy").read(1), np.ones((3, 3), np.float32))
    np.save(tmp_path / "b.npy", np.zeros((2, 3, 3), complex))
    with pytest.raises(ValueError, match=r"b\.npy.*complex128"):
        NpySource(tmp_path / "b.npy")


def test_series_volumes_and_wrong_axes(tmp_path):
    np.save(tmp_path / "a.npy", STACK)
    assert len(NpySource(tmp_path / "a.npy", ndim=3)) == 1
    np.testing.assert_array_equal(NpySource(tmp_path / "a.npy", ndim=3).read(0), STACK)
    with pytest.raises(UnreadableFileError, match="must have 1 or 2 axes"):
        NpySource(tmp_path / "a.npy", ndim=1)


def test_containers_name_their_arrays(tmp_path):
    source = as_hdf5(tmp_path)
    with pytest.raises(UnreadableFileError, match="group/images, other"):
        Hdf5Source(source.path)
    with pytest.raises(UnreadableFileError, match=r"no array 'images' in it; it holds group/images, other"):
        Hdf5Source(source.path, "images")


def write_images(folder, sizes):
    rng = np.random.default_rng(1)
    for i, size in enumerate(sizes):
        Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(folder / f"i{i}.png")
    return [folder / f"i{i}.png" for i in range(len(sizes))]


def test_images_of_mixed_sizes(tmp_path):
    files = write_images(tmp_path, [(8, 9), (20, 10), (9, 9, 3)])
    source = ImageSource(files)
    assert [source.shape(i) for i in range(3)] == [(8, 9), (20, 10), (9, 9)]
    for i, file in enumerate(files):
        np.testing.assert_array_equal(source.read(i), load_image(file))
    colour = ImageSource(files, grey=False)
    assert colour.read(0).shape == colour.shape(0) == (3, 8, 9)
    files[1].unlink()
    with pytest.raises(UnreadableFileError, match=r"i1\.png"):
        source.read(1)


def test_turned_images_have_their_size_as_read(tmp_path):
    picture = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4))
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "turned.png", exif=exif)
    source = ImageSource([tmp_path / "turned.png"])
    assert source.shape(0) == source.read(0).shape == (4, 3)


def test_colour_comes_as_signals(tmp_path):
    pixels = np.random.default_rng(3).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "c.png")
    source = ImageSource([tmp_path / "c.png"], grey=False)
    assert source.shape(0) == (3, 5, 4)
    np.testing.assert_array_equal(source.read(0), as_signals(load_image(tmp_path / "c.png", grey=False))[0])


def test_normalised_signals_are_those_of_contrast_normalise(tmp_path):
    source = NormalisedSource(ArraySource(STACK))
    np.testing.assert_array_equal(source.read(2), contrast_normalise(STACK[2]))
    colour = NormalisedSource(ArraySource(STACK[None]))
    np.testing.assert_array_equal(colour.read(0), contrast_normalise(list(STACK)))
    assert source.describe()["normalise"] == "contrast"
    with pytest.raises(UnreadableFileError, match=r"X\[0\] is constant"):
        NormalisedSource(ArraySource(np.ones((1, 5, 5)))).read(0)


def test_crops_depend_on_seed_epoch_and_number_alone(tmp_path):
    files = write_images(tmp_path, [(30, 40), (25, 25), (60, 20)])
    source = CropSource(ImageSource(files), 50, (7, 5), seed=4)
    crops = [source.read(i, epoch=1) for i in range(50)]
    assert {crop.shape for crop in crops} == {(7, 5)} == {source.shape(0)}
    uncached = CropSource(ImageSource(files), 50, (7, 5), seed=4, cache=0)
    for i in reversed(range(50)):
        np.testing.assert_array_equal(uncached.read(i, epoch=1), crops[i])
    assert not np.array_equal(source.read(0, epoch=0), crops[0])
    assert not np.array_equal(CropSource(ImageSource(files), 50, (7, 5), seed=5).read(0, epoch=1), crops[0])
    assert len({crop.tobytes() for crop in crops}) == 50
    assert source.describe()["seed"] == 4


def test_crops_come_from_all_places_of_all_signals():
    numbered = ArraySource(np.arange(2 * 5 * 6, dtype=np.float32).reshape(2, 5, 6))
    corners = {float(CropSource(numbered, 400, (3, 4)).read(i)[0, 0]) for i in range(400)}
    assert corners == {30.0 * k + 6.0 * i + j for k in range(2) for i in range(3) for j in range(3)}


def test_flat_places_are_drawn_again_and_small_or_flat_signals_refused():
    half = np.zeros((1, 8, 40), np.float32)
    half[0, :, 20:] = STACK[0, :8, :10].repeat(2, axis=1)
    source = CropSource(ArraySource(half), 30, (4, 4))
    assert all(np.ptp(source.read(i)) > 0 for i in range(30))
    with pytest.raises(UnreadableFileError, match=r"X\[0\] is smaller than a crop"):
        CropSource(ArraySource(half), 1, (9, 4)).read(0)
    with pytest.raises(UnreadableFileError, match=r"X\[0\] is constant wherever"):
        CropSource(ArraySource(np.ones((1, 9, 9))), 1, (4, 4)).read(0)


def test_the_cache_holds_no_more_than_it_may(tmp_path):
    files = write_images(tmp_path, [(20, 20)] * 6)
    source = CropSource(ImageSource(files), 60, (5, 5), cache=2 * 20 * 20 * 4)
    for i in range(60):
        source.read(i)
        assert source.cache.held <= source.cache.limit
    assert source.cache.held == source.cache.limit
    assert pickle.loads(pickle.dumps(source)).cache.held == 0


def test_opening_what_people_type(tmp_path):
    write_images(tmp_path, [(8, 8)] * 11)
    as_npy(tmp_path)
    as_tiff(tmp_path)
    source = open_source(tmp_path)
    assert len(source) == 11 + 5 + 5
    assert [source.name(i).rsplit("/", 1)[1] for i in (0, 5, 12)] == ["a.npy[0]", "a.tif[0]", "i2.png"]
    assert len(open_source([str(tmp_path / "i1*.png"), tmp_path / "a.npy"])) == 2 + 5
    hdf5 = as_hdf5(tmp_path)
    np.testing.assert_array_equal(open_source(f"{hdf5.path}::group/images").read(1), STACK[1])
    zarr = as_zarr(tmp_path)
    np.testing.assert_array_equal(open_source(zarr.path).read(1), STACK[1])
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


def test_unpacked_chunks_are_kept_for_the_windows_beside():
    """Each of many windows once unpacked its chunks again."""
    loads = []

    def load(number):
        loads.append(number)
        return None if number[0] == 3 else np.full((64, 2**14), 2.0 * number[0] + number[1], np.float32)

    array = ChunkedArray((256, 2**15), (64, 2**14), np.dtype(np.float32), 7, load)  # chunks of 4 MB
    for first in range(0, 64, 8):
        for row in (first, first + 64):
            np.testing.assert_array_equal(
                array[row : row + 8, 2**14 - 1 : 2**14 + 1], [[row // 64 * 2, row // 64 * 2 + 1]] * 8
            )
    assert loads == [(0, 0), (0, 1), (1, 0), (1, 1)]
    # A fifth one: that used longest ago goes, which is not the one just used.
    assert [array[row : row + 1, :1].item() for row in (0, 128)] == [0, 4]
    loads.clear()
    np.testing.assert_array_equal(array[:1, :][:, [0, -1]], [[0, 1]])
    assert loads == [(0, 1)]
    assert array[200:201, :1] == 7
