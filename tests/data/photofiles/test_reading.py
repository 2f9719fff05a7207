"""Reading: every kind of file as pixels in their own type, upright, and clear words for what cannot be read."""

import sys
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

import pointillist as pt
from pointillist.data.photofiles import photograph_size
from pointillist.data.photofiles.tiff import turned_exif
from pointillist.errors import UnreadableFileError


def _saved(path, pixels, **options):
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.mark.parametrize("code", range(1, 9))
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif"])
def test_every_orientation_is_upright_and_stays_so(tmp_path, colour, code, suffix, make_exif):
    path = tmp_path / f"a{suffix}"
    options = {"lossless": True} if suffix == ".webp" else {}
    if suffix == ".tif":
        tifffile.imwrite(path, colour, photometric="rgb", extratags=[(274, 3, 1, code, True)])
    else:
        _saved(path, colour, exif=b"Exif\0\0" + make_exif(code), **options)
    with Image.open(path) as image:
        seen = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    photo = pt.read_photograph(path)
    np.testing.assert_array_equal(photo.pixels, seen)
    assert photograph_size(path) == photo.shape
    pt.write_photograph(photo, tmp_path / f"b{suffix}")
    with Image.open(tmp_path / f"b{suffix}") as image:
        np.testing.assert_array_equal(np.asarray(ImageOps.exif_transpose(image).convert("RGB")), seen)
    # Elsewhere than in a JPEG that keeps its blocks, pixels are stored as they are seen.
    pt.write_photograph(photo, tmp_path / "c.png")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "c.png")), seen)
    assert turned_exif(pt.read_photograph(tmp_path / "c.png").metadata.exif)[1] == 1


def test_files_of_every_kind_become_pixels(tmp_path, colour):
    grey = np.ascontiguousarray(colour[..., 0])
    bilevel = pt.read_photograph(_saved(tmp_path / "bilevel.png", grey > 100)).pixels
    np.testing.assert_array_equal(bilevel, np.where(grey > 100, 255, 0))
    np.testing.assert_array_equal(pt.read_photograph(_saved(tmp_path / "grey.png", grey)).pixels, grey)
    np.testing.assert_array_equal(pt.read_photograph(_saved(tmp_path / "colour.bmp", colour)).pixels, colour)
    alike = np.stack([grey] * 3, axis=-1)
    np.testing.assert_array_equal(pt.read_photograph(_saved(tmp_path / "alike.png", alike)).pixels, alike)
    palette = Image.fromarray(colour).convert("P")
    palette.save(tmp_path / "clear.png", transparency=3)
    clear = pt.read_photograph(tmp_path / "clear.png")
    np.testing.assert_array_equal(clear.pixels, np.asarray(palette.convert("RGB")))
    np.testing.assert_array_equal(clear.alpha, np.where(np.asarray(palette) == 3, 0, 255))
    deep = grey.astype(np.uint16) * 257 + 1
    np.testing.assert_array_equal(pt.read_photograph(_saved(tmp_path / "deep.png", deep)).pixels, deep)
    tifffile.imwrite(tmp_path / "white.tif", deep, photometric="miniswhite")
    np.testing.assert_array_equal(pt.read_photograph(tmp_path / "white.tif").pixels, 65535 - deep)
    half = (deep / 65535).astype(np.float16)
    tifffile.imwrite(tmp_path / "half.tif", half)
    np.testing.assert_array_equal(pt.read_photograph(tmp_path / "half.tif").pixels, half.astype(np.float32))
    np.save(tmp_path / "half.npy", colour)
    assert photograph_size(tmp_path / "half.tif") == photograph_size(tmp_path / "half.npy") == grey.shape


def test_one_transparent_colour_of_a_deep_png_is_alpha(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 2, (6, 7, 3)).astype(np.uint16)
    pt.write_photograph(pt.Photograph(pixels), tmp_path / "plain.png")
    data, chunk = (tmp_path / "plain.png").read_bytes(), b"tRNS" + b"\0\1" * 3
    at = data.index(b"IDAT") - 4
    (tmp_path / "key.png").write_bytes(data[:at] + (6).to_bytes(4) + chunk + zlib.crc32(chunk).to_bytes(4) + data[at:])
    alpha = pt.read_photograph(tmp_path / "key.png").alpha
    np.testing.assert_array_equal(alpha == 0, np.all(pixels == 1, axis=-1))
    assert alpha.any()
    assert not alpha.all()


def test_cmyk_is_converted_and_said(tmp_path, colour):
    Image.fromarray(colour).convert("CMYK").save(tmp_path / "cmyk.jpg")
    photo = pt.read_photograph(tmp_path / "cmyk.jpg")
    assert photo.pixels.shape == colour.shape
    assert photo.notes == ("its CMYK colours are converted to sRGB",)
    assert pt.write_photograph(photo, tmp_path / "out.jpg") == ()


@pytest.mark.parametrize("name", ["moving.gif", "moving.webp", "moving.png", "stack.tif"])
def test_only_the_first_frame_is_read_and_said(tmp_path, colour, name):
    frames = [Image.fromarray(colour), Image.fromarray(255 - colour), Image.fromarray(colour // 2)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    photo = pt.read_photograph(tmp_path / name)
    assert photo.notes == ("only the first of its 3 frames is read",)
    assert photo.shape == colour.shape[:2]


@pytest.mark.parametrize("name", ["a.png", "deep.png", "a.jpg", "a.tif", "a.webp", "a.bmp"])
def test_what_is_cut_short_is_refused(tmp_path, colour, name):
    path = tmp_path / name
    pt.write_photograph(pt.Photograph(colour.astype(np.uint16) * 257 if name == "deep.png" else colour), path)
    whole = path.read_bytes()
    for part in (0, 2, 30, len(whole) // 2):
        path.write_bytes(whole[:part])
        with pytest.raises(UnreadableFileError, match=name):
            pt.read_photograph(path)


@pytest.mark.parametrize(("name", "package", "extra"), [("a.nef", "rawpy", "raw"), ("a.heic", "pillow_heif", "heif")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"anything")
    for read in (pt.read_photograph, photograph_size):
        with pytest.raises(UnreadableFileError, match=rf"{name}.*pip install 'pointillist\[{extra}\]'"):
            read(tmp_path / name)


def test_a_real_raw_file_is_developed(tmp_path, colour):
    pytest.importorskip("rawpy")
    mosaic = colour[..., 1].astype(np.uint16) * 64
    matrix = (1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1)
    tags = [  # what makes a DNG of a TIFF: pattern of colours, version, camera, white level, colour matrix, neutral, light
        (33421, 3, 2, (2, 2), True), (33422, 1, 4, bytes((0, 1, 1, 2)), True), (50706, 1, 4, bytes((1, 4, 0, 0)), True),
        (50708, 2, 5, b"Test\0", True), (50717, 4, 1, 16383, True), (50721, 10, 9, matrix, True),
        (50728, 5, 3, (1, 1, 1, 1, 1, 1), True), (50778, 3, 1, 21, True), (271, 2, 6, b"Maker\0", True),
    ]  # fmt: skip
    tifffile.imwrite(tmp_path / "a.dng", mosaic, photometric=32803, metadata=None, extratags=tags)
    photo = pt.read_photograph(tmp_path / "a.dng")
    assert photo.pixels.dtype == np.uint16
    assert photo.pixels.shape == (*mosaic.shape, 3)
    assert "white balance" in photo.notes[0]
    assert b"Maker" in photo.metadata.exif
    assert photograph_size(tmp_path / "a.dng") == mosaic.shape
    (tmp_path / "text.dng").write_text("no picture")
    with pytest.raises(UnreadableFileError, match=r"text\.dng"):
        pt.read_photograph(tmp_path / "text.dng")


def test_deep_heic_has_16_bits(tmp_path, colour):
    heif = pytest.importorskip("pillow_heif")
    deep = colour.astype(np.uint16) * 257
    heif.from_bytes("RGB;16", (deep.shape[1], deep.shape[0]), deep.tobytes()).save(tmp_path / "a.heic", quality=95)
    photo = pt.read_photograph(tmp_path / "a.heic")
    assert photo.pixels.dtype == np.uint16
    assert np.abs(photo.pixels.astype(int) - deep).mean() < 4 * 257


def test_heic_is_read_upright_with_its_metadata(tmp_path, colour, icc, make_exif):
    heif = pytest.importorskip("pillow_heif")
    image = heif.from_pillow(Image.fromarray(colour))
    image.save(tmp_path / "a.heic", quality=95, exif=b"Exif\0\0" + make_exif(1), icc_profile=icc)
    photo = pt.read_photograph(tmp_path / "a.heic")
    assert photo.shape == colour.shape[:2] == photograph_size(tmp_path / "a.heic")
    assert np.abs(photo.pixels.astype(int) - colour).mean() < 4
    pt.write_photograph(photo, tmp_path / "b.tif")
    assert b"Model 7" in (tmp_path / "b.tif").read_bytes()
