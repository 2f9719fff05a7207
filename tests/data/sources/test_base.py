"""Tests of sources of arrays and image files, and of those made of others: crops, signals normalised or kept."""

import pickle

import numpy as np
import pytest
from PIL import Image

import pointillist as pt
from pointillist.data import as_signals, contrast_normalise, load_image
from pointillist.data.sources import ArraySource, CropSource, ImageSource, NormalisedSource
from pointillist.errors import UnreadableFileError

STACK = np.random.default_rng(0).random((5, 9, 11)).astype(np.float32)


def write_images(folder, sizes):
    rng = np.random.default_rng(1)
    for i, size in enumerate(sizes):
        Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(folder / f"i{i}.png")
    return [folder / f"i{i}.png" for i in range(len(sizes))]


def test_images_of_mixed_sizes(tmp_path):
    files = write_images(tmp_path, [(8, 9), (20, 10), (9, 9, 3)])
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4)).save(tmp_path / "turned.png", exif=exif)
    files.append(tmp_path / "turned.png")
    grey, colour = ImageSource(files), ImageSource(files, grey=False)
    assert [grey.shape(i) for i in range(4)] == [(8, 9), (20, 10), (9, 9), (4, 3)]
    for i, file in enumerate(files):
        np.testing.assert_array_equal(grey.read(i), load_image(file))
        np.testing.assert_array_equal(colour.read(i), as_signals(load_image(file, grey=False))[0])
        assert colour.shape(i) == (3, *grey.shape(i))
    files[1].unlink()
    with pytest.raises(UnreadableFileError, match=r"i1\.png"):
        grey.read(1)


def test_arrays_are_told_apart_by_their_samples():
    one, other = ArraySource(STACK), ArraySource(np.where(STACK.max() == STACK, 0, STACK))
    assert one.describe() == ArraySource(STACK.copy()).describe() != other.describe()


def test_normalised_signals_are_those_of_contrast_normalise(tmp_path):
    source = NormalisedSource(ArraySource(STACK))
    np.testing.assert_array_equal(source.read(2), contrast_normalise(STACK[2]))
    colour = NormalisedSource(ArraySource(STACK[None]))
    np.testing.assert_array_equal(colour.read(0), contrast_normalise(list(STACK)))
    assert source.describe()["normalise"] == "contrast"
    with pytest.raises(UnreadableFileError, match=r"X\[0\] is constant"):
        NormalisedSource(ArraySource(np.ones((1, 5, 5)))).read(0)
    crop = CropSource(source, 3, (4, 4)).read(1)
    assert any(
        np.array_equal(crop, source.window(i, (a, b), (4, 4))) for i in range(5) for a in range(6) for b in range(8)
    )


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


def test_crops_of_nothing_say_why(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(pt.UnreadableFileError, match=r"cannot read .*a\.png"):
        pt.sources.CropSource(pt.open_source(tmp_path / "a.png"), 2, (4, 4)).shape(0)


def test_the_cache_holds_no_more_than_it_may(tmp_path):
    files = write_images(tmp_path, [(20, 20)] * 6)
    source = CropSource(ImageSource(files), 60, (5, 5), cache=2 * 20 * 20 * 4)
    for i in range(60):
        source.read(i)
        assert source.cache.held <= source.cache.limit
    assert source.cache.held == source.cache.limit
    assert pickle.loads(pickle.dumps(source)).cache.held == 0
