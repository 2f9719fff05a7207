"""JPEG in, JPEG out without jpeglib: the source's tables and subsampling, and nearly the same pixels where none changed."""

import logging
import sys

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

import pointillist as pt


@pytest.fixture(autouse=True)
def _without_jpeglib(monkeypatch):
    monkeypatch.setitem(sys.modules, "jpeglib", None)


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
@pytest.mark.parametrize("mode", ["L", "RGB", 0, 1, 2])
def test_tables_and_subsampling_stay_and_pixels_nearly_do(tmp_path, photograph, mode, quality, caplog):
    caplog.set_level(logging.INFO, logger="pointillist")
    image = Image.fromarray(photograph[..., 0].copy() if mode == "L" else photograph)
    given = {"RGB": {"keep_rgb": True, "subsampling": 0}, "L": {}}.get(mode, {"subsampling": mode})
    image.save(tmp_path / "a.jpg", quality=quality, progressive=quality == 92, **given)
    photo = pt.read_photograph(tmp_path / "a.jpg")
    pixels, away = _patched(photo)
    assert pt.write_photograph(photo.with_pixels(pixels), tmp_path / "b.jpg") == ()
    with Image.open(tmp_path / "a.jpg") as a, Image.open(tmp_path / "b.jpg") as b:
        assert a.quantization[0] == b.quantization[0]
        assert JpegImagePlugin.get_sampling(b) == JpegImagePlugin.get_sampling(a)
        assert bool(b.info.get("progressive")) == (quality == 92)
    read = pt.read_photograph(tmp_path / "b.jpg").pixels
    errors = np.abs(read.astype(int) - photo.pixels)
    assert np.mean(errors[away]) < 1
    assert np.mean(errors[away] <= 2) > 0.9
    assert np.abs(read.astype(int) - pixels)[~away].mean() < 12


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
