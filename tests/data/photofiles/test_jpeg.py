"""JPEG in, JPEG out: untouched blocks keep their coefficients, the tables stay, the other segments too."""

import io

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

import pointillist as pt
from pointillist.data.photofiles.jpeg import segments
from pointillist.data.photofiles.tiff import directories

jpeglib = pytest.importorskip("jpeglib")


def _jpeg(path, pixels, **options):
    Image.fromarray(pixels).save(path, "JPEG", **options)
    return pt.read_photograph(path)


def _patched(photo, top=20, left=33, size=10):
    pixels = photo.pixels.copy()
    pixels[top : top + size, left : left + size] = pixels[top - size : top, left : left + size]
    changed = pixels != photo.pixels
    return pixels, changed if changed.ndim == 2 else changed.any(axis=-1)


def _mended(folder, photo):
    """What is read of the file after a patch, the patched pixels, where they are, and what was noted."""
    pixels, changed = _patched(photo)
    notes = pt.write_photograph(photo.with_pixels(pixels), folder / "b.jpg")
    return pt.read_photograph(folder / "b.jpg").pixels, pixels, changed, notes


def _untouched(changed, unit, fringe):
    """Pixels outside the blocks of changed pixels; decoders mix coarser chroma over one pixel more."""
    height, width = changed.shape
    rows, columns = -(-height // unit[0]), -(-width // unit[1])
    padded = np.zeros((rows * unit[0], columns * unit[1]), bool)
    padded[:height, :width] = changed
    blocks = padded.reshape(rows, unit[0], columns, unit[1]).any(axis=(1, 3))
    touched = blocks.repeat(unit[0], 0).repeat(unit[1], 1)
    if fringe:
        grown = np.pad(touched, 1)
        touched = np.any([grown[i : i + len(touched), j : j + touched.shape[1]] for i in range(3) for j in range(3)], 0)
    return ~touched[:height, :width]


UNITS = {0: (8, 8), 1: (8, 16), 2: (16, 16)}


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("quality", [30, 75, 95])
@pytest.mark.parametrize("subsampling", UNITS)
def test_untouched_blocks_stay_as_they_were(tmp_path, colour, subsampling, quality, progressive):
    given = {"quality": quality, "subsampling": subsampling, "progressive": progressive}
    photo = _jpeg(tmp_path / "a.jpg", colour, **given)
    read, pixels, changed, notes = _mended(tmp_path, photo)
    assert notes == ()
    with Image.open(tmp_path / "a.jpg") as a, Image.open(tmp_path / "b.jpg") as b:
        assert a.quantization == b.quantization
        assert a.layer == b.layer  # names, sampling and tables of the components
        assert bool(b.info.get("progressive")) == progressive
    untouched = _untouched(changed, UNITS[subsampling], fringe=subsampling > 0)
    np.testing.assert_array_equal(read[untouched], photo.pixels[untouched])
    error = np.abs(read.astype(int) - pixels)[changed].mean()
    encoded = _jpeg(tmp_path / "c.jpg", pixels, **given).pixels
    assert error < 1.3 * np.abs(encoded.astype(int) - pixels)[changed].mean() + 1


def test_saturated_blocks_stay_too(tmp_path):
    # Ringing beyond the range is cut off by decoders, so that encoding the same pixels again gives others.
    rng = np.random.default_rng(0)
    picture = np.where(rng.random((64, 64, 3)) < 0.5, 0, 255).astype(np.uint8)
    photo = _jpeg(tmp_path / "a.jpg", picture, quality=30, subsampling=0)
    read, _, changed, _ = _mended(tmp_path, photo)
    untouched = _untouched(changed, (8, 8), fringe=False)
    np.testing.assert_array_equal(read[untouched], photo.pixels[untouched])


@pytest.mark.parametrize(("sampling", "unit"), [("4:4:0", (16, 8)), ("4:1:1", (8, 32)), ("4:1:0", (16, 32))])
def test_unusual_subsampling_is_kept(tmp_path, colour, sampling, unit):
    image = jpeglib.from_spatial(colour)
    image.samp_factor = sampling
    image.write_spatial(str(tmp_path / "a.jpg"), qt=90)
    photo = pt.read_photograph(tmp_path / "a.jpg")
    read, pixels, changed, notes = _mended(tmp_path, photo)
    assert notes == ()
    with Image.open(tmp_path / "a.jpg") as a, Image.open(tmp_path / "b.jpg") as b:
        assert a.layer == b.layer
    untouched = _untouched(changed, unit, fringe=True)
    np.testing.assert_array_equal(read[untouched], photo.pixels[untouched])
    assert np.abs(read.astype(int) - pixels)[changed].mean() < 8


def test_grey_and_rgb_files_keep_their_blocks(tmp_path, colour):
    for name, pixels, options in (("grey", colour[..., 0], {}), ("rgb", colour, {"keep_rgb": True})):
        photo = _jpeg(tmp_path / f"{name}.jpg", np.ascontiguousarray(pixels), quality=80, **options)
        read, patched, changed, _ = _mended(tmp_path, photo)
        untouched = _untouched(changed, (8, 8), fringe=False)
        np.testing.assert_array_equal(read[untouched], photo.pixels[untouched])
        assert np.abs(read.astype(int) - patched)[changed].mean() < 12


def test_a_photograph_that_nobody_changed_is_the_same_file(tmp_path, colour, make_exif):
    photo = _jpeg(tmp_path / "a.jpg", colour, quality=60, exif=b"Exif\0\0" + make_exif(6))
    pt.write_photograph(photo, tmp_path / "b.jpg")
    assert (tmp_path / "b.jpg").read_bytes() == (tmp_path / "a.jpg").read_bytes()


@pytest.mark.parametrize("code", range(1, 9))
def test_turned_files_keep_their_blocks_and_their_orientation(tmp_path, colour, code, make_exif):
    photo = _jpeg(tmp_path / "a.jpg", colour, quality=75, subsampling=0, exif=b"Exif\0\0" + make_exif(code))
    read, *_ = _mended(tmp_path, photo)
    assert np.mean(read == photo.pixels) > 0.9
    with Image.open(tmp_path / "b.jpg") as image:
        assert image.getexif()[274] == code
        assert image.size == (colour.shape[1], colour.shape[0])


def test_all_segments_survive(tmp_path, colour, icc, make_exif, xmp):
    long = icc + bytes(range(256)) * 600  # needs several segments
    given = {"icc_profile": long, "xmp": xmp, "comment": b"a cup", "dpi": (240, 240)}
    _mended(tmp_path, _jpeg(tmp_path / "a.jpg", colour, exif=b"Exif\0\0" + make_exif(), **given))
    with Image.open(tmp_path / "b.jpg") as image:
        assert {name: image.info[name] for name in given} == given
    before, after = (
        directories(io.BytesIO(pt.read_photograph(tmp_path / name).metadata.exif)) for name in ("a.jpg", "b.jpg")
    )
    assert dict(before[0]) == dict(after[0])
    assert before[1] == after[1]
    kinds = [[marker for marker, *_ in segments((tmp_path / name).read_bytes())] for name in ("a.jpg", "b.jpg")]
    assert sorted(m for m in kinds[0] if m >= 0xE0) == sorted(m for m in kinds[1] if m >= 0xE0)


def test_another_size_is_encoded_with_the_same_tables(tmp_path, colour, make_exif):
    photo = _jpeg(tmp_path / "a.jpg", colour, quality=60, subsampling=2, exif=b"Exif\0\0" + make_exif(6))
    pt.write_photograph(photo.cropped(3, 5, 40, 30), tmp_path / "b.jpg")
    with Image.open(tmp_path / "a.jpg") as a, Image.open(tmp_path / "b.jpg") as b:
        assert a.quantization == b.quantization
        assert JpegImagePlugin.get_sampling(b) == 2
        assert b.size == (30, 40)
        assert b.getexif()[274] == 1


def test_the_small_picture_of_how_it_was_is_not_shown_any_more(tmp_path, colour, make_exif):
    blob = bytearray(make_exif())
    order = "little" if blob[:2] == b"II" else "big"
    first = int.from_bytes(blob[4:8], order)
    link = first + 2 + 12 * int.from_bytes(blob[first : first + 2], order)
    blob[link : link + 4] = len(blob).to_bytes(4, order)
    blob += (0).to_bytes(2, order) + bytes(4)
    _mended(tmp_path, _jpeg(tmp_path / "a.jpg", colour, exif=b"Exif\0\0" + bytes(blob)))
    written = pt.read_photograph(tmp_path / "b.jpg").metadata.exif
    assert int.from_bytes(written[link : link + 4], order) == 0
    assert written[:link] == bytes(blob[:link])


def _padded(data):
    """With bytes between two segments, which decoders skip."""
    frame = data.index(b"\xff\xc0")
    return data[:frame] + b"\0\0" + data[frame:]


def _renamed(data):
    """With a channel of another name than usual."""
    for place in (data.index(b"\xff\xc0") + 10, data.index(b"\xff\xda") + 5):
        data = data[:place] + b"\x07" + data[place + 1 :]
    return data


@pytest.mark.parametrize(("odd", "words"), [(_padded, ""), (_renamed, "because its channels have unusual names")])
def test_odd_files_are_mended_too(tmp_path, colour, odd, words):
    _jpeg(tmp_path / "a.jpg", colour)
    (tmp_path / "a.jpg").write_bytes(odd((tmp_path / "a.jpg").read_bytes()))
    read, pixels, changed, notes = _mended(tmp_path, pt.read_photograph(tmp_path / "a.jpg"))
    assert (bool(notes), words in " ".join(notes)) == (bool(words), True)
    assert np.abs(read.astype(int) - pixels)[~changed].mean() < 1
