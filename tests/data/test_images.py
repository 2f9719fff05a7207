"""Tests of decoding single image files: every kind of pixel, and every kind of damage."""

import logging

import numpy as np
import pytest
import tifffile
from PIL import Image

from pointillist.data import load_image
from pointillist.data.photofiles import photograph_size
from pointillist.errors import UnreadableFileError

WEIGHTS = np.array([0.2989, 0.5870, 0.1140])


@pytest.fixture
def rgb():
    return np.random.default_rng(0).integers(0, 256, (7, 11, 3), dtype=np.uint8)


def grey_of(rgb: np.ndarray) -> np.ndarray:
    return (rgb / 255) @ WEIGHTS


@pytest.mark.parametrize("suffix", ["png", "tif", "bmp"])
def test_colour_and_its_grey(tmp_path, rgb, suffix):
    path = tmp_path / f"picture.{suffix}"
    Image.fromarray(rgb).save(path)
    grey = load_image(path)
    assert grey.dtype == np.float32
    np.testing.assert_allclose(grey, grey_of(rgb), atol=1e-6)
    colour = load_image(str(path), grey=False)
    assert colour.dtype == np.float32
    np.testing.assert_allclose(colour, rgb / 255, atol=1e-6)


def test_grey_file_read_as_colour_has_three_equal_channels(tmp_path, rgb):
    Image.fromarray(rgb[..., 0]).save(tmp_path / "g.png")
    colour = load_image(tmp_path / "g.png", grey=False)
    assert colour.shape == (7, 11, 3)
    np.testing.assert_array_equal(colour, np.stack([load_image(tmp_path / "g.png")] * 3, axis=-1))


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_sixteen_bit_grey(tmp_path, suffix):
    raw = np.random.default_rng(1).integers(0, 65536, (6, 9), dtype=np.uint16)
    Image.fromarray(raw).save(tmp_path / f"deep.{suffix}")
    np.testing.assert_allclose(load_image(tmp_path / f"deep.{suffix}"), raw / 65535, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"planarconfig": "separate"}, {"compression": "zlib"}])
def test_sixteen_bit_colour_tiff_keeps_its_precision(tmp_path, options):
    raw = np.random.default_rng(2).integers(0, 65536, (6, 9, 3), dtype=np.uint16)
    stored = np.moveaxis(raw, -1, 0) if "planarconfig" in options else raw
    tifffile.imwrite(tmp_path / "deep.tif", stored, photometric="rgb", **options)
    np.testing.assert_allclose(load_image(tmp_path / "deep.tif", grey=False), raw / 65535, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_float_tiff_is_kept_as_it_is(tmp_path, dtype):
    raw = (10 * np.random.default_rng(3).standard_normal((6, 9))).astype(dtype)
    tifffile.imwrite(tmp_path / "float.tif", raw)
    np.testing.assert_array_equal(load_image(tmp_path / "float.tif"), raw.astype(np.float32))


def test_one_bit_palette_alpha_and_cmyk(tmp_path, rgb):
    bits = rgb[..., 0] > 127
    Image.fromarray(bits).save(tmp_path / "bits.png")
    np.testing.assert_array_equal(load_image(tmp_path / "bits.png"), bits)

    palette = Image.fromarray(rgb).quantize(8)
    palette.save(tmp_path / "palette.png")
    expected = grey_of(np.asarray(palette.convert("RGB")))
    np.testing.assert_allclose(load_image(tmp_path / "palette.png"), expected, atol=1e-6)

    alpha = np.concatenate([rgb, rgb[..., :1]], axis=-1)
    Image.fromarray(alpha).save(tmp_path / "alpha.png")
    np.testing.assert_allclose(load_image(tmp_path / "alpha.png"), grey_of(rgb), atol=1e-6)

    Image.fromarray(alpha[..., 2:]).save(tmp_path / "la.png")
    np.testing.assert_allclose(load_image(tmp_path / "la.png"), rgb[..., 2] / 255, atol=1e-6)

    Image.fromarray(rgb).convert("CMYK").save(tmp_path / "cmyk.tif")
    np.testing.assert_allclose(load_image(tmp_path / "cmyk.tif"), grey_of(rgb), atol=0.01)


def test_animation_gives_its_first_frame_and_says_so(tmp_path, caplog):
    frames = [Image.fromarray(np.full((5, 6), value, dtype=np.uint8)) for value in (0, 255)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    with caplog.at_level(logging.INFO, "pointillist.data"):
        assert load_image(tmp_path / "a.gif").max() == 0
    assert "2 frames" in caplog.text


@pytest.mark.parametrize("code", range(1, 9))
def test_orientation_is_applied_alike_by_both_decoders(tmp_path, code):
    raw = np.random.default_rng(4).integers(0, 256, (5, 8), dtype=np.uint8)
    exif = Image.Exif()
    exif[274] = code
    Image.fromarray(raw).save(tmp_path / "o.png", exif=exif)
    tifffile.imwrite(
        tmp_path / "o.tif", raw.astype(np.uint16) * 257, extratags=[(274, "H", 1, code, True)], metadata=None
    )
    turned = load_image(tmp_path / "o.png")
    assert turned.shape == ((8, 5) if code >= 5 else (5, 8))
    np.testing.assert_allclose(load_image(tmp_path / "o.tif"), turned, atol=1e-6)


def unreadable(path) -> str:
    with pytest.raises(UnreadableFileError, match=path.name) as caught:
        load_image(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint32"])
def test_integers_of_unknown_range_are_refused_rather_than_guessed(tmp_path, dtype):
    path = tmp_path / "counts.tif"
    tifffile.imwrite(path, np.arange(20, dtype=dtype).reshape(4, 5))
    assert "samples" in unreadable(path)


def test_sixteen_bit_pgm(tmp_path):
    raw = np.random.default_rng(8).integers(0, 65536, (4, 5), dtype=np.uint16)
    (tmp_path / "deep.pgm").write_bytes(b"P5 5 4 65535\n" + raw.astype(">u2").tobytes())
    np.testing.assert_allclose(load_image(tmp_path / "deep.pgm"), raw / 65535, atol=1e-7)


def test_empty_random_and_text(tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(b"")
    assert "empty" in unreadable(path)
    path.write_text("not a picture")
    assert "no known image format" in unreadable(path)
    generator = np.random.default_rng(7)
    for magic in (b"", b"II*\0", b"MM\0*", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"BM"):
        for _ in range(10):
            path.write_bytes(magic + generator.bytes(300))
            unreadable(path)


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_decompression_bomb(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"bomb.{suffix}"
    Image.fromarray(np.zeros((30, 30), dtype=np.uint16)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert "too many pixels, the limit is 0.0002 megapixels" in unreadable(path)
    with pytest.raises(UnreadableFileError, match="too many pixels"):
        photograph_size(path)


def test_jpeg_files_that_claim_more_than_they_hold(tmp_path):
    """A few hundred bytes that claim a hundred megapixels take Pillow more than ten seconds."""
    path = tmp_path / "small.jpg"
    Image.new("CMYK", (64, 64)).save(path)
    data = path.read_bytes()
    frame = data.index(b"\xff\xc0") + 5
    path.write_bytes(data[:frame] + (9_000).to_bytes(2) * 2 + data[frame + 4 :])
    assert "claims 81,000,000 pixels" in unreadable(path)
    path.write_bytes(data + b"\xff\xda" * 500)
    assert "501 scans" in unreadable(path)


@pytest.mark.parametrize("progressive", [False, True])
def test_empty_jpeg_files_are_read(tmp_path, progressive):
    """Nothing takes fewer bytes a pixel than an empty picture."""
    path = tmp_path / "empty.jpg"
    Image.new("L", (3000, 2000)).save(path, quality=1, optimize=True, progressive=progressive)
    assert load_image(path).shape == (2000, 3000)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.png"):
        load_image(tmp_path / "nowhere.png")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load_image(tmp_path)
