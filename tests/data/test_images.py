"""Tests of pictures: every kind of pixel and of damage in single files, pictures as signals, and what ships."""

from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse
import tifffile
from PIL import Image

from pointillist.data import as_signals, load_filters, load_image, load_images, load_signals, photographs
from pointillist.data.photofiles import photograph_size
from pointillist.errors import UnreadableFileError
from pointillist.solvers.encoding import encode
from pointillist.storage import load_model

WEIGHTS = np.array([0.2989, 0.5870, 0.1140])
SHAPES = {"natural-400": (400, 11, 11), "natural-100": (100, 11, 11), "natural-colour-100": (100, 3, 11, 11)}


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


@pytest.mark.parametrize("suffix", ["png", "tif", "pgm"])
def test_sixteen_bit_grey(tmp_path, suffix):
    raw = np.random.default_rng(1).integers(0, 65536, (6, 9), dtype=np.uint16)
    if suffix == "pgm":
        (tmp_path / "deep.pgm").write_bytes(b"P5 9 6 65535\n" + raw.astype(">u2").tobytes())
    else:
        Image.fromarray(raw).save(tmp_path / f"deep.{suffix}")
    grey = load_image(tmp_path / f"deep.{suffix}")
    np.testing.assert_allclose(grey, raw / 65535, atol=1e-7)
    np.testing.assert_array_equal(load_image(tmp_path / f"deep.{suffix}", grey=False), np.stack([grey] * 3, axis=-1))


def test_deep_tiff_keeps_its_precision(tmp_path):
    raw = np.random.default_rng(2).integers(0, 65536, (6, 9, 3), dtype=np.uint16)
    for options in ({}, {"planarconfig": "separate"}, {"compression": "zlib"}):
        stored = np.moveaxis(raw, -1, 0) if "planarconfig" in options else raw
        tifffile.imwrite(tmp_path / "deep.tif", stored, photometric="rgb", **options)
        np.testing.assert_allclose(load_image(tmp_path / "deep.tif", grey=False), raw / 65535, atol=1e-7)
    for dtype in ("float32", "float64", "float16"):
        stored = (raw[..., 0] / 6553.7).astype(dtype)
        tifffile.imwrite(tmp_path / "float.tif", stored)
        np.testing.assert_array_equal(load_image(tmp_path / "float.tif"), stored.astype(np.float32))


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


def test_many_images_or_none(tmp_path, caplog):
    for name in ("1.png", "2.png"):
        Image.new("L", (5, 4)).save(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_images([tmp_path / "nowhere"], on_error="skip")
    with pytest.raises(ValueError, match="paths is empty"):
        load_images([])
    with pytest.raises(ValueError, match="on_error must be"):
        load_images(tmp_path, on_error="ignore")
    (tmp_path / "2.png").write_bytes(b"damaged")
    with pytest.raises(UnreadableFileError, match=r"2\.png"):
        load_images(tmp_path)
    assert len(load_images(tmp_path, on_error="skip")) == len(load_signals(tmp_path, on_error="skip")) == 1
    assert caplog.text.count("2.png") == 2
    (tmp_path / "1.png").unlink()
    with pytest.raises(ValueError, match="none of the 1 items can be used"):
        load_images(tmp_path, on_error="skip")


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
    with pytest.raises(TypeError, match=r"pictures\[0\] is sparse"):
        as_signals(scipy.sparse.coo_matrix(np.eye(4)))


def shipped(folder, ends):
    return sorted(
        entry.name for entry in files("pointillist.data").joinpath(folder).iterdir() if entry.name.endswith(ends)
    )


def test_photographs_are_complete_documented_and_small():
    train, test = photographs("train"), photographs("test")
    assert len(train) >= 2 * len(test)
    assert set(train).isdisjoint(test)
    names = shipped("photographs", ".jpg")
    assert {f"{name}.jpg" for name in photographs()} == {f"{name}.jpg" for name in (*train, *test)} == set(names)
    folder = files("pointillist.data").joinpath("photographs")
    rows = [line.split("|") for line in folder.joinpath("SOURCES.md").read_text("utf-8").splitlines()]
    documented = {row[1].strip(" `"): row[2].strip() for row in rows if len(row) > 5 and ".jpg" in row[1]}
    assert documented == {f"{name}.jpg": split for split in ("train", "test") for name in photographs(split)}
    assert sum(len(folder.joinpath(name).read_bytes()) for name in names) < 400_000
    for picture in photographs().values():
        assert (picture.ndim, picture.dtype) == (2, np.float32)
        assert 0 <= picture.min() < picture.max() <= 1
        assert 200 <= max(picture.shape) <= 384
    assert all(picture.shape[-1] == 3 for picture in photographs("test", grey=False).values())
    with pytest.raises(ValueError, match="split must be"):
        photographs("validation")


@pytest.mark.parametrize("name", SHAPES)
def test_dictionaries_are_small_models_that_say_how_they_were_learned(name):
    filters = load_filters(name)
    assert (filters.shape, filters.dtype) == (SHAPES[name], np.float32)
    norms = np.linalg.norm(filters.reshape(len(filters), -1), axis=1)
    assert np.all(norms <= 1.001)
    assert np.median(norms) > 0.99
    path = files("pointillist.data").joinpath("dictionaries", f"{name}.safetensors")
    assert path.stat().st_size < 150_000
    model = load_model(path)
    assert model.arrays["filters"].dtype == np.float16
    assert not set(model.metadata["training"]) & set(model.metadata["held_out"])
    assert {"camera", "coffee"} <= set(model.metadata["held_out"])
    filters[:] = 0
    assert load_filters(name).any()
    with pytest.raises(ValueError, match=r"no dictionary 'natural-7'.*natural-400, natural-100, natural-colour-100"):
        load_filters("natural-7")


def test_learned_filters_beat_random_ones_on_a_held_out_photograph():
    crop = photographs("test")["camera"][80:144, 100:164]
    signal = crop - crop.mean()
    filters = load_filters("natural-100")
    noise = np.random.default_rng(0).standard_normal(filters.shape).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=(1, 2), keepdims=True)
    learned, random = (encode([signal], bank, 0.1, tol=1e-2).objective[0] for bank in (filters, noise))
    assert learned < 0.7 * random
