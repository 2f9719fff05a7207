"""Tests of local contrast normalisation, against a direct double loop and against published arrays."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from pointillist.data import contrast_normalise, load_images

DATA = os.environ.get("POINTILLIST_DATA")


def direct(image: np.ndarray) -> np.ndarray:
    """Normalise by explicit windows over a mirrored copy, pixel by pixel."""
    offsets = np.arange(-6, 7)
    row = np.exp(-(offsets**2) / (2 * (3 * 1.591) ** 2))
    window = np.outer(row, row) / row.sum() ** 2
    padded = np.pad(image, 6, mode="reflect")
    mean, deviation = np.empty_like(image), np.empty_like(image)
    for i, j in np.ndindex(image.shape):
        patch = padded[i : i + 13, j : j + 13]
        mean[i, j] = (window * patch).sum()
        deviation[i, j] = np.sqrt((window * (patch - mean[i, j]) ** 2).sum())
    threshold = np.sort(deviation, axis=None)[(deviation.size - 1) // 2]
    result = (image - mean) / np.maximum(deviation, threshold)
    return result - result.mean()


@pytest.mark.parametrize("shape", [(20, 31), (13, 13), (5, 9), (1, 40)])
def test_agrees_with_a_double_loop_also_below_the_window_size(shape):
    image = np.random.default_rng(1).random(shape)
    np.testing.assert_allclose(contrast_normalise(image), direct(image), atol=1e-10)


@pytest.mark.parametrize("name", ["fruit", "city"])
@pytest.mark.skipif(DATA is None, reason="POINTILLIST_DATA does not name the folder of benchmark data")
def test_reproduces_the_published_arrays(name):
    folder = Path(str(DATA))
    numbers = [1, 10, *range(2, 10)]
    expected = np.load(folder / f"{name}_normalised.npz")["images"]
    ours = np.stack(contrast_normalise(load_images([folder / name / f"{n}.jpg" for n in numbers])))
    assert np.abs(ours - expected).mean() < 1e-5
    assert np.abs(ours - expected).mean(axis=(1, 2)).max() < 1e-5


def test_returns_the_kind_it_was_given():
    stack = np.random.default_rng(2).random((3, 16, 18))
    whole = contrast_normalise(stack)
    assert isinstance(whole, np.ndarray)
    assert whole.shape == stack.shape
    pieces = contrast_normalise([stack[0], stack[1, :, :9]])
    assert isinstance(pieces, list)
    assert [piece.shape for piece in pieces] == [(16, 18), (16, 9)]
    np.testing.assert_array_equal(pieces[0], whole[0])
    np.testing.assert_array_equal(contrast_normalise(stack[0]), whole[0])


@pytest.mark.parametrize(
    ("given", "returned"),
    [("u1", "f4"), ("u2", "f4"), ("f2", "f4"), ("f4", "f4"), ("f8", "f8"), (">f4", "f4"), (">u2", "f4")],
)
def test_types(given, returned):
    image = np.random.default_rng(3).integers(0, 200, (20, 20)).astype(given)
    assert contrast_normalise(image).dtype == np.dtype(returned)


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 255.0, 1e200])
def test_scale_and_offset_do_not_matter(factor):
    image = np.random.default_rng(4).random((24, 24))
    np.testing.assert_allclose(contrast_normalise(factor * (image + 3)), contrast_normalise(image), atol=1e-9)


def test_mostly_flat_image_stays_finite_and_moderate():
    image = np.full((100, 100), 0.3)
    image[40:50, 40:50] = 0.9
    result = contrast_normalise(image)
    assert np.isfinite(result).all()
    assert np.abs(result).max() < 20


@pytest.mark.parametrize(("ndim", "shape"), [(1, (50,)), (1, (3, 50)), (3, (9, 10, 11)), (3, (2, 9, 10, 11))])
def test_other_numbers_of_axes(ndim, shape):
    signals = np.random.default_rng(6).random(shape)
    result = contrast_normalise(signals, ndim=ndim)
    assert result.shape == shape
    axes = tuple(range(-ndim, 0))
    np.testing.assert_allclose(result.mean(axis=axes), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([np.eye(15), np.full((15, 15), 0.1)], r"images\[1\] is constant"),
        (np.full((15, 15), 7, dtype=np.uint8), "images is constant"),
        (np.stack([np.eye(15), np.full((15, 15), np.nan)]), r"images\[1\] holds NaN or infinity"),
        ([np.eye(15), np.diag([-np.inf] * 15)], r"images\[1\] holds NaN or infinity"),
        ([], "images is empty"),
        (np.zeros((0, 4, 4)), "images is empty"),
        (np.zeros((4, 0)), "images is empty"),
        (np.zeros(9), "must have 2 or 3 axes"),
        ([np.zeros((2, 3, 4))], r"images\[0\] must have 2 axes"),
        (np.eye(9, dtype=np.int64), "images has samples of type int64"),
        (np.eye(9, dtype=complex), "images must hold real numbers: Complex data not supported, got complex128"),
    ],
)
def test_unusable_input_is_named(images, message):
    with pytest.raises(ValueError, match=message) as caught:
        contrast_normalise(images)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_images_in_files_are_normalised_in_bands(tmp_path, monkeypatch, kind):
    image = np.random.default_rng(5).random((60, 31))
    image[:40] = 0.5  # mostly flat
    image = np.round(255 * image).astype(kind) if kind == np.uint8 else image
    whole = contrast_normalise(image)
    np.save(tmp_path / "image.npy", image)
    monkeypatch.setattr("pointillist.arrays.BAND_SAMPLES", 150)
    in_bands = contrast_normalise(np.load(tmp_path / "image.npy", mmap_mode="r"))
    assert isinstance(in_bands, np.memmap)
    np.testing.assert_allclose(in_bands, whole, atol=1e-6)


def test_signalling_nans_are_refused_without_a_warning():
    image = np.zeros((8, 8), np.float32)
    image.view(np.uint32)[2, 3] = 0x7FA00000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="holds NaN or infinity"):
            contrast_normalise(image)
