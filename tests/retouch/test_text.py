"""Writing over photographs is found, with its soft edges and rims, and little else."""

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy import ndimage

import pointillist as pt
from pointillist.retouch.text import text_in

PLACE = (20, 60)


def lettering(shape, words="Lake 1987, noon", size=22, stroke=0):
    sheet = Image.new("L", shape[::-1])
    ImageDraw.Draw(sheet).text(PLACE, words, fill=255, font_size=size, stroke_width=stroke)
    return np.asarray(sheet, np.float32)[..., None] / 255


def inscribed(picture, colour, rim=None, **how):
    """A picture with writing, and which of its pixels have changed visibly."""
    written = picture.astype(np.float32)
    for paint, stroke in ((rim, 2), (colour, 0)):
        if paint is not None:
            cover = lettering(picture.shape[:2], stroke=stroke, **how)
            written = written + cover * (np.array(paint, np.float32) - written)
    return written, np.max(np.abs(written - picture), axis=-1) > 0.05


@pytest.fixture(scope="module")
def photograph():
    grey = pt.photographs("test")["camera"][:200, :260]
    return np.repeat(grey[..., None], 3, axis=-1).astype(np.float32)


def shares(found, truth):
    """Share of what is found that is writing, within a pixel, and of the writing that is found."""
    near = ndimage.binary_dilation(truth, np.ones((3, 3), bool))
    return np.mean(near[found]) if found.any() else 0.0, np.mean(found[truth])


@pytest.mark.parametrize("colour", [(1.0, 0.9, 0.1), (0.9, 0.1, 0.1), (0.1, 0.3, 0.9)])
def test_a_caption(photograph, colour):
    written, truth = inscribed(photograph, colour)
    for picture in (written, np.rint(255 * written).astype(np.uint8)):
        precision, recall = shares(pt.find_damage(picture, "text"), truth)
        assert precision > 0.85
        assert recall > 0.9
    if colour == (1.0, 0.9, 0.1):
        assert shares(pt.find_damage(written[..., 0], "text"), truth)[1] > 0.8


def test_a_rim_of_a_second_colour_belongs_to_it(photograph):
    written, truth = inscribed(photograph, (1.0, 0.9, 0.1), rim=(0.0, 0.0, 0.6))
    precision, recall = shares(pt.find_damage(written, "text"), truth)
    assert precision > 0.8
    assert recall > 0.85


def test_polarity(photograph):
    written = inscribed(0.3 + 0.2 * photograph, (0.95, 0.95, 0.95))[0]
    assert text_in(written, "bright").any()
    assert not text_in(written, "dark").any()


def test_a_few_letters_need_more_sensitivity(photograph):
    written, truth = inscribed(photograph, (1.0, 0.9, 0.1), words="ABC")
    assert not text_in(written).any()
    assert shares(text_in(written, sensitivity=0.8), truth)[1] > 0.8


@pytest.mark.parametrize("name", ["camera", "coffee"])
def test_nothing_is_found_in_clean_photographs(name):
    assert not pt.find_damage(pt.photographs("test")[name], "text").any()


def test_windows_and_posts_are_no_writing():
    wall = np.full((120, 200, 3), 0.7, np.float32)
    for i in range(9):
        wall[40:60, 12 + 20 * i : 22 + 20 * i] = 0.2
    assert not pt.find_damage(wall, "text").any()
