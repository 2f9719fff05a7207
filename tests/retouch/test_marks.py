"""Pixels marked by a colour are found, with their soft edges and what JPEG made of them."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy import ndimage

import pointillist as pt
from pointillist.retouch.marks import find_key, grey_beside, grown, parse_colour


@pytest.fixture(scope="module")
def photograph():
    """(256, 320, 3) uint8."""
    coffee = pt.photographs("test", grey=False)["coffee"]
    image = Image.fromarray(np.rint(255 * coffee).astype(np.uint8))
    return np.asarray(image.resize((320, 256), Image.Resampling.LANCZOS))


def painted(picture, colour, soft=True):
    """A broken line and a dot over the picture, anti-aliased or not."""
    fine = 4 if soft else 1
    layer = Image.new("L", (picture.shape[1] * fine, picture.shape[0] * fine))
    draw = ImageDraw.Draw(layer)
    draw.line([(20 * fine, 30 * fine), (200 * fine, 90 * fine), (300 * fine, 240 * fine)], fill=255, width=5 * fine)
    draw.ellipse([60 * fine, 150 * fine, 90 * fine, 180 * fine], fill=255)
    layer = layer.resize(picture.shape[1::-1], Image.Resampling.BOX)
    return np.asarray(Image.composite(Image.new("RGB", layer.size, colour), Image.fromarray(picture), layer))


def jpeg(picture, quality):
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=quality, subsampling=2)
    return np.asarray(Image.open(buffer))


def altered(before, after, levels=8):
    return np.abs(before.astype(int) - after).max(axis=-1) > levels


@pytest.mark.parametrize("colour", ["magenta", "#0f0", "white", (0, 0, 255)])
def test_soft_marks_are_found_with_their_fringe(photograph, colour):
    marked = painted(photograph, colour)
    truth = altered(photograph, marked)
    mask = pt.find_marks(marked, colour)
    assert np.mean(mask[truth]) > (0.97 if colour == "white" else 0.99)
    assert mask.sum() < 1.3 * truth.sum()


@pytest.mark.parametrize("quality", [75, 85, 95])
def test_jpeg_is_allowed_for(photograph, quality):
    marked = jpeg(painted(photograph, "magenta"), quality)
    strongly, clearly = (altered(jpeg(photograph, quality), marked, levels) for levels in (24, 12))
    mask = pt.find_marks(marked, "magenta")
    assert np.mean(mask[strongly]) > 0.98
    assert mask.sum() < 2 * clearly.sum()


def test_other_types_find_the_same(photograph):
    marked = painted(photograph, "magenta")
    expected = pt.find_marks(marked, "magenta")
    np.testing.assert_array_equal(pt.find_marks(marked.astype(np.uint16) * 257, "magenta"), expected)
    np.testing.assert_array_equal(pt.find_marks(marked / 255, "magenta"), expected)
    alpha = np.full((*marked.shape[:2], 1), 255, np.uint8)
    np.testing.assert_array_equal(pt.find_marks(np.concatenate([marked, alpha], axis=-1), "magenta"), expected)


def test_the_key_is_found_by_itself(photograph):
    assert find_key(photograph) is None
    assert find_key(painted(photograph, "magenta")) == "#ff00ff"
    assert find_key(jpeg(painted(photograph, "#00ff00"), 85)) == "#00ff00"
    both = painted(photograph, "magenta").copy()
    both[:10, :10] = 0, 255, 0
    with pytest.raises(ValueError, match=r"#ff00ff and #00ff00.*colour="):
        pt.find_marks(both)
    with pytest.raises(ValueError, match="paint what is missing in magenta"):
        pt.find_marks(photograph)


def test_grey_pictures():
    grey = np.full((40, 40), 90, np.uint8)
    grey[10:14, 5:30] = 255
    assert not pt.find_marks(grey, "magenta").any()
    assert pt.find_marks(grey, "white").sum() == 100
    colour = np.stack([grey] * 3, axis=-1)
    colour[20:24, 5:30] = 255, 0, 255
    mask = pt.find_marks(colour, "magenta")
    np.testing.assert_array_equal(grey_beside(colour, mask)[~mask], grey[~mask])
    assert grey_beside(colour, np.zeros_like(mask)) is colour


def test_grow_and_tolerance():
    picture = np.full((30, 30, 3), 100, np.uint8)
    picture[10:20, 10:20] = 235, 10, 240
    assert pt.find_marks(picture, "magenta", tolerance=0.02).sum() == 0
    assert pt.find_marks(picture, "magenta", tolerance=0.1, fringe=False).sum() == 100
    assert pt.find_marks(picture, "magenta", tolerance=0.1, fringe=False, grow=2).sum() == 14 * 14


@pytest.mark.parametrize("pixels", [0, 1, 2, 3, 7, 10])
def test_grown_is_a_square_dilation(pixels):
    mask = np.random.default_rng(pixels).random((40, 33)) < 0.01
    side = 2 * pixels + 1
    np.testing.assert_array_equal(grown(mask, pixels), ndimage.maximum_filter(mask, side, mode="constant"))


@pytest.mark.parametrize("colour", ["#ff00ff", "#f0f", "Magenta", "rgb(255, 0, 255)", (255, 0, 255)])
def test_colours_are_understood(colour):
    assert parse_colour(colour) == (255, 0, 255)


def test_painted_masks():
    picture = np.full((2, 3), 0.5)
    mask = np.array([[True, False, False], [False, False, True]])
    marked = pt.mark_damage(picture, mask, "#ff0000", opacity=0.5)
    assert marked.dtype == np.float64
    np.testing.assert_allclose(marked[mask], [[0.75, 0.25, 0.25]] * 2)
    np.testing.assert_allclose(marked[~mask], 0.5)
    assert picture[0, 0] == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "octarine"}, "'octarine' is not known"),
        ({"colour": (1, 2)}, "three numbers"),
        ({"colour": (1, 2, 300)}, "three numbers"),
        ({"tolerance": 2}, "tolerance must be"),
        ({"tolerance": "wide"}, "tolerance must be"),
        ({"grow": -1}, "grow"),
        ({"image": np.zeros((4, 4, 5))}, "image must be"),
        ({"image": np.zeros((0, 4))}, "image must be"),
        ({"image": np.zeros((4, 4), int)}, "image must hold"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        pt.find_marks(**{"image": np.zeros((8, 8, 3), np.uint8), "colour": "magenta", **change})


def test_mark_damage_names_bad_input():
    with pytest.raises(ValueError, match="mask has shape"):
        pt.mark_damage(np.zeros((4, 4)), np.zeros((4, 5), bool))
    with pytest.raises(ValueError, match="opacity"):
        pt.mark_damage(np.zeros((4, 4)), np.zeros((4, 4), bool), opacity=2)
