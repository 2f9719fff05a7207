"""JPEG in, JPEG out without jpeglib: the source's tables and subsampling, and nearly the same pixels where none changed."""

import logging
import sys

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

import pointillist as pt
from pointillist.data.photofiles import jpeg, reencoding


@pytest.fixture(autouse=True)
def _without_jpeglib(monkeypatch):
    monkeypatch.setitem(sys.modules, "jpeglib", None)
    jpeg._say_what_is_missing.cache_clear()


@pytest.fixture(scope="module")
def photograph():
    """235×351 pixels, uint8: no multiple of a block in either direction."""
    picture = pt.photographs("test", grey=False)["coffee"]
    return np.ascontiguousarray(np.round(255 * picture).astype(np.uint8)[:235, :351])


def _patched(photo):
    pixels = photo.pixels.copy()
    pixels[40:60, 64:90] = 255 - pixels[40:60, 64:90]
    away = np.ones(pixels.shape[:2], bool)
    away[28:76, 44:112] = False  # blocks of 16 pixels and one pixel around, whichever way the file is turned
    return pixels, away


@pytest.mark.parametrize("quality", [75, 92])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_untouched_pixels_stay_within_a_level(tmp_path, photograph, subsampling, quality):
    given = {"quality": quality, "subsampling": subsampling, "progressive": quality == 92}
    Image.fromarray(photograph).save(tmp_path / "a.jpg", **given)
    photo = pt.read_photograph(tmp_path / "a.jpg")
    pixels, away = _patched(photo)
    assert pt.write_photograph(photo.with_pixels(pixels), tmp_path / "b.jpg") == ()
    with Image.open(tmp_path / "a.jpg") as a, Image.open(tmp_path / "b.jpg") as b:
        assert a.quantization == b.quantization
        assert a.layer == b.layer
        assert bool(b.info.get("progressive")) == given["progressive"]
    read = pt.read_photograph(tmp_path / "b.jpg").pixels
    errors = np.abs(read.astype(int) - photo.pixels)
    assert np.mean(errors[away] <= 1) > 0.98
    # Decoders cut off what rings beyond the range, and what lay beyond the border, so that a few pixels come out otherwise.
    away[224:], away[:, 336:] = False, False
    assert np.mean(errors[away] <= 1) > 0.99
    assert np.mean(errors[away]) < 0.05
    assert np.abs(read.astype(int) - pixels)[~away].mean() < 12


def test_interpolated_chroma_would_be_blurred_again(tmp_path, photograph):
    Image.fromarray(photograph).save(tmp_path / "a.jpg", quality=92, subsampling=2)
    photo = pt.read_photograph(tmp_path / "a.jpg")
    Image.fromarray(photo.pixels).save(tmp_path / "plain.jpg", quality=92, subsampling=2)
    again = pt.read_photograph(tmp_path / "plain.jpg").pixels
    assert np.mean(np.abs(again.astype(int) - photo.pixels) <= 1) < 0.95


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_samples_that_decoders_interpolate_from(n):
    count = (n + 1) // 2
    samples = np.random.default_rng(n).uniform(0, 255, (count, 4)).astype(np.float32)
    padded = np.concatenate([samples[:1], samples, samples[-1:]])
    pairs = np.stack([0.75 * samples + 0.25 * padded[:-2], 0.75 * samples + 0.25 * padded[2:]], axis=1)
    plane = pairs.reshape(-1, 4)[:n]
    np.testing.assert_allclose(reencoding._samples(plane, 0), samples, rtol=1e-4)
    np.testing.assert_allclose(reencoding._samples(plane.T, 1), samples.T, rtol=1e-4)


@pytest.mark.parametrize("code", range(1, 9))
def test_turned_files_become_upright(tmp_path, photograph, code, make_exif):
    stored = np.ascontiguousarray(photograph[:192, :256])
    Image.fromarray(stored).save(tmp_path / "a.jpg", quality=90, subsampling=0, exif=b"Exif\0\0" + make_exif(code))
    photo = pt.read_photograph(tmp_path / "a.jpg")
    pixels = photo.pixels.copy()
    pixels[:8, :8] = 128
    pt.write_photograph(photo.with_pixels(pixels), tmp_path / "b.jpg")
    with Image.open(tmp_path / "b.jpg") as image:
        assert image.getexif()[274] == 1
        assert image.size == (pixels.shape[1], pixels.shape[0])
        assert np.abs(np.asarray(image).astype(int) - pixels).mean() < 1.5


def test_metadata_survive(tmp_path, photograph, icc, make_exif, xmp):
    given = {"exif": b"Exif\0\0" + make_exif(), "icc_profile": icc, "xmp": xmp, "dpi": (240, 240)}
    Image.fromarray(photograph).save(tmp_path / "a.jpg", **given)
    photo = pt.read_photograph(tmp_path / "a.jpg")
    pt.write_photograph(photo.with_pixels(_patched(photo)[0]), tmp_path / "b.jpg")
    with Image.open(tmp_path / "b.jpg") as image:
        assert image.info["icc_profile"] == icc
        assert b"tiff:Orientation" in image.info["xmp"]
        assert image.info["dpi"] == (240, 240)
        assert image.getexif()[271] == "Maker"


@pytest.mark.parametrize("mode", ["L", "keep_rgb"])
def test_grey_and_rgb_files(tmp_path, photograph, mode):
    given = {"keep_rgb": True} if mode == "keep_rgb" else {}
    image = Image.fromarray(photograph if given else photograph[..., 0].copy())
    image.save(tmp_path / "a.jpg", quality=85, subsampling=0, **given)
    photo = pt.read_photograph(tmp_path / "a.jpg")
    pixels, away = _patched(photo)
    pt.write_photograph(photo.with_pixels(pixels), tmp_path / "b.jpg")
    with Image.open(tmp_path / "a.jpg") as a, Image.open(tmp_path / "b.jpg") as b:
        assert a.quantization[0] == b.quantization[0]
        assert JpegImagePlugin.get_sampling(b) == JpegImagePlugin.get_sampling(a)
    read = pt.read_photograph(tmp_path / "b.jpg").pixels
    assert np.mean(np.abs(read.astype(int) - photo.pixels)[away] <= 1) > 0.99


def test_a_photograph_that_nobody_changed_is_the_same_file(tmp_path, photograph):
    Image.fromarray(photograph).save(tmp_path / "a.jpg", quality=60)
    pt.write_photograph(pt.read_photograph(tmp_path / "a.jpg"), tmp_path / "b.jpg")
    assert (tmp_path / "b.jpg").read_bytes() == (tmp_path / "a.jpg").read_bytes()


def test_the_extra_is_named_once(tmp_path, photograph, caplog):
    caplog.set_level(logging.INFO, logger="pointillist")
    Image.fromarray(photograph).save(tmp_path / "a.jpg")
    photo = pt.read_photograph(tmp_path / "a.jpg")
    changed = photo.with_pixels(_patched(photo)[0])
    for _ in range(2):
        pt.write_photograph(changed, tmp_path / "b.jpg")
    hints = [record for record in caplog.records if "pip install jpeglib" in record.getMessage()]
    assert [record.levelname for record in hints] == ["INFO"]
