"""Round trips: what a photograph's file says survives in every format that can hold it, and losses are said."""

import io
from dataclasses import replace

import numpy as np
import pytest
import tifffile
from PIL import Image

import pointillist as pt
from pointillist.data.photofiles import Metadata, Photograph, answer_suffix
from pointillist.data.photofiles.tiff import directories

HOLDS = {
    ".png": {"exif", "icc", "dpi", "xmp", "alpha"},
    ".jpg": {"exif", "icc", "dpi", "xmp"},
    ".tif": {"exif", "icc", "dpi", "xmp", "alpha"},
    ".webp": {"exif", "icc", "xmp", "alpha"},
}


def _said(exif):
    """Texts, camera settings and place of EXIF bytes, comparable."""
    first, inner = directories(io.BytesIO(exif))
    texts = {code: first[code] for code in (271, 272) if code in first}
    numbers = {
        code: {tag: np.asarray(v, float).tolist() if not isinstance(v, str | bytes) else v for tag, v in one.items()}
        for code, one in inner.items()
    }
    return texts, numbers


def _check_metadata(read, wanted, holds):
    metadata = read.metadata
    assert metadata.icc == (wanted.icc if "icc" in holds else None)
    assert _said(metadata.exif) == _said(wanted.exif)
    if "dpi" in holds:
        np.testing.assert_allclose(metadata.dpi, wanted.dpi, rtol=1e-3)
    assert metadata.xmp == wanted.xmp.replace(b'Orientation="6"', b'Orientation="1"')


@pytest.mark.parametrize("suffix", HOLDS)
def test_everything_that_a_format_holds_survives(tmp_path, full, suffix):
    path = tmp_path / f"photo{suffix}"
    notes = pt.write_photograph(full, path)
    read = pt.read_photograph(path)
    _check_metadata(read, full.metadata, HOLDS[suffix])
    if "alpha" in HOLDS[suffix]:
        np.testing.assert_array_equal(read.alpha, full.alpha)
    if suffix == ".jpg":
        assert notes == ("JPEG cannot hold transparency: left out",)
        assert np.abs(read.pixels.astype(int) - full.pixels).mean() < 2
    else:
        np.testing.assert_array_equal(read.pixels, full.pixels)
        assert notes == (() if suffix != ".webp" else ("WEBP cannot hold the resolution: left out",))
    again = tmp_path / f"again{suffix}"
    assert pt.write_photograph(read, again) == ()
    twice = pt.read_photograph(again)
    np.testing.assert_array_equal(twice.pixels, read.pixels)
    for name in ("icc", "dpi", "xmp", "chunks"):
        assert getattr(twice.metadata, name) == getattr(read.metadata, name), name
    assert _said(twice.metadata.exif) == _said(read.metadata.exif)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_16_bits_survive_in_every_layout(tmp_path, suffix, channels):
    samples = np.random.default_rng(channels).integers(0, 65536, (9, 13, 4), dtype=np.uint16)
    pixels = samples[..., :3] if channels >= 3 else samples[..., 0]
    photo = Photograph(np.ascontiguousarray(pixels), samples[..., 3] if channels % 2 == 0 else None)
    pt.write_photograph(photo, tmp_path / f"deep{suffix}")
    read = pt.read_photograph(tmp_path / f"deep{suffix}")
    assert read.pixels.dtype == np.uint16
    np.testing.assert_array_equal(read.pixels, photo.pixels)
    assert (read.alpha is None) == (photo.alpha is None)
    if photo.alpha is not None:
        np.testing.assert_array_equal(read.alpha, photo.alpha)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("suffix", [".tif", ".npy"])
def test_floating_point_survives(tmp_path, kind, suffix):
    pixels = np.random.default_rng(0).standard_normal((9, 13, 3)).astype(kind)
    pixels[0, 0] = np.nan
    pt.write_photograph(Photograph(pixels), tmp_path / f"photo{suffix}")
    read = pt.read_photograph(tmp_path / f"photo{suffix}").pixels
    assert read.dtype == kind
    np.testing.assert_array_equal(read, pixels)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("a.jpg", "uint16", ["uint16", ".png"]),
        ("a.jpg", "float32", ["float32", ".tif"]),
        ("a.png", "float32", ["float32", ".tif"]),
        ("a.webp", "uint16", ["uint16", ".png"]),
        ("a.xyz", "uint8", [".xyz", ".png"]),
        ("a", "uint8", ["no suffix", ".png"]),
    ],
)
def test_what_a_format_cannot_hold_at_all_is_refused(tmp_path, name, kind, words):
    with pytest.raises(ValueError, match="cannot write") as error:
        pt.write_photograph(Photograph(np.zeros((4, 5), kind)), tmp_path / name)
    assert not [word for word in words if word not in str(error.value)]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.TIF", ".TIF"), ("a.webp", ".webp"), ("a.gif", ".png"), ("a.nef", ".tif"), ("a.HEIC", ".tif"), ("a", ".png")],
)
def test_answers_end_as_their_questions_did(name, suffix):
    assert answer_suffix(name) == suffix


def test_only_what_is_jpeg_becomes_jpeg(tmp_path):
    for name, suffix in (("a.jpg", ".jpg"), ("a.JPEG", ".JPEG"), ("a.jfif", ".jpg")):
        for form, expected in (("JPEG", suffix), ("PNG", ".png")):
            Image.new("RGB", (8, 8)).save(tmp_path / name, form)
            assert answer_suffix(tmp_path / name) == expected


@pytest.mark.parametrize("compression", [None, "lzw", "deflate", "packbits"])
def test_tiff_keeps_its_compression_texts_and_order_of_samples(tmp_path, colour, compression):
    tags = [(315, 2, 0, "A. Artist", True), (33432, 2, 0, "All mine", True)]
    deep = colour.astype(np.uint16) * 257
    said = {"description": "a cup", "metadata": None, "resolution": (118, 118), "resolutionunit": "CENTIMETER"}
    form = {"compression": compression, "predictor": compression in ("lzw", "deflate"), "planarconfig": "separate"}
    planes = np.moveaxis(deep, -1, 0)
    tifffile.imwrite(tmp_path / "a.tif", planes, photometric="rgb", extratags=tags, **said, **form)
    photo = pt.read_photograph(tmp_path / "a.tif")
    np.testing.assert_array_equal(photo.pixels, deep)
    assert photo.metadata.dpi == pytest.approx((299.72, 299.72))
    pt.write_photograph(photo, tmp_path / "b.tif")
    with tifffile.TiffFile(tmp_path / "a.tif") as a, tifffile.TiffFile(tmp_path / "b.tif") as b:
        assert a.pages[0].compression == b.pages[0].compression
        assert [b.pages[0].tags[code].value for code in (270, 315, 33432)] == ["a cup", "A. Artist", "All mine"]
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "b.tif"), deep)


@pytest.mark.parametrize("stored", ["Jürgen Müller".encode(), "Jürgen Müller".encode("cp1252")])
def test_tiff_keeps_texts_of_every_language(tmp_path, colour, stored):
    source = tmp_path / "a.tif"
    tifffile.imwrite(source, colour, photometric="rgb", extratags=[(315, 2, len(stored) + 1, stored + b"\0", True)])
    for name in ("b.tif", "c.tif"):
        pt.write_photograph(pt.read_photograph(source), tmp_path / name)
        source = tmp_path / name
        with tifffile.TiffFile(source) as file:
            assert file.pages[0].tags[315].value == "Jürgen Müller"


@pytest.mark.parametrize("extra", ["unassalpha", "assocalpha"])
def test_tiff_says_what_its_alpha_is(tmp_path, full, extra):
    samples = np.dstack([full.pixels, full.alpha])
    tifffile.imwrite(tmp_path / "a.tif", samples, photometric="rgb", extrasamples=[extra])
    pt.write_photograph(pt.read_photograph(tmp_path / "a.tif"), tmp_path / "b.tif")
    with tifffile.TiffFile(tmp_path / "b.tif") as tiff:
        assert tiff.pages[0].extrasamples[0].name == extra.upper()
        np.testing.assert_array_equal(tiff.pages[0].asarray(), samples)


def test_png_keeps_texts_and_what_it_says_about_colour(tmp_path, colour):
    from PIL import PngImagePlugin

    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "Ä. Author")
    info.add_itxt("Title", "Ein Becher", lang="de")
    info.add(b"gAMA", (45455).to_bytes(4, "big"))
    Image.fromarray(colour).save(tmp_path / "a.png", pnginfo=info)
    pt.write_photograph(pt.read_photograph(tmp_path / "a.png"), tmp_path / "b.png")
    with Image.open(tmp_path / "b.png") as image:
        image.load()
        assert image.text == {"Author": "Ä. Author", "Title": "Ein Becher"}
        assert image.info["gamma"] == pytest.approx(0.45455)


def test_a_profile_for_grey_is_left_out_of_colour(tmp_path, full, icc):
    grey = replace(full, pixels=np.ascontiguousarray(full.pixels[..., 0]), alpha=None)
    assert pt.write_photograph(grey, tmp_path / "grey.png") == ()
    grey = replace(grey, metadata=replace(full.metadata, icc=icc[:16] + b"GRAY" + icc[20:]))
    assert pt.write_photograph(grey, tmp_path / "grey.tif") == ()
    assert pt.read_photograph(tmp_path / "grey.tif").metadata.icc == grey.metadata.icc
    notes = pt.write_photograph(replace(grey, pixels=full.pixels), tmp_path / "colour.tif")
    assert len(notes) == 1
    assert "profile" in notes[0]
    assert pt.read_photograph(tmp_path / "colour.tif").metadata.icc is None


def test_what_is_lost_is_logged_too(tmp_path, full, caplog):
    notes = pt.write_photograph(full, tmp_path / "photo.bmp")
    assert notes == ("BMP cannot hold EXIF and the colour profile and XMP and transparency: left out",)
    assert f"photo.bmp: {notes[0]}" in caplog.text


def test_nothing_is_written_when_writing_fails(tmp_path, full, monkeypatch):
    path = tmp_path / "photo.png"
    path.write_bytes(b"older")

    def full_disk(*_, **how):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("imagecodecs.png_encode", full_disk)
    with pytest.raises(OSError, match="No space left"):
        pt.write_photograph(full, path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_a_photograph_checks_itself():
    byte = np.zeros((3, 4), np.uint8)
    for words, *given in (("uint8, uint16", byte.astype(int)), ("shape", byte[..., None]), ("alpha", byte, byte[:2])):
        with pytest.raises(ValueError, match=words):
            Photograph(*given)
    photo = Photograph(np.zeros((3, 4, 3), np.uint8), np.ones((3, 4), np.uint8), Metadata(dpi=(72.0, 72.0)))
    grey = photo.with_pixels(np.ones((3, 4), np.uint8))
    assert grey.pixels.shape == (3, 4, 3)
    assert grey.alpha is photo.alpha
    part = photo.cropped(1, 2, 2, 1)
    assert (part.shape, part.alpha.shape, part.metadata.dpi) == ((2, 1), (2, 1), (72.0, 72.0))
