"""Opaque lines with hard edges are found in photographs, and edges, gradients and soft things are not."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

import pointillist as pt
from pointillist.retouch.lines import lines_in

ENDS = ((30, 112), (170, 86))


@pytest.fixture(scope="module")
def photograph():
    return np.rint(255 * pt.photographs("test", grey=False)["coffee"]).astype(np.uint8)


def ruled(picture, colour, width, ends=ENDS):
    """A picture with a line, and the pixels that it hides."""
    sheet, cover = Image.fromarray(picture), Image.new("L", picture.shape[1::-1])
    ImageDraw.Draw(sheet).line(ends, fill=colour, width=width)
    ImageDraw.Draw(cover).line(ends, fill=1, width=width)
    return np.asarray(sheet) / np.float32(255), np.asarray(cover) > 0


@pytest.mark.parametrize("width", [1, 3, 7])
@pytest.mark.parametrize(("colour", "side"), [((255, 255, 255), "bright"), ((0, 0, 0), "dark"), ((0, 90, 255), "both")])
def test_a_line_over_everything(photograph, colour, side, width):
    scratched, hidden = ruled(photograph, colour, width)
    found = lines_in(scratched, side)
    assert np.mean(found[hidden]) > 0.7  # it is lost where it crosses what has its colour
    assert np.count_nonzero(found & ~hidden) < 20


def test_whoever_looks_for_scratches_finds_it(photograph):
    scratched, hidden = ruled(photograph, (255, 255, 255), 3)
    assert np.mean(pt.find_damage(scratched, "scratches")[hidden]) > 0.8


@pytest.mark.parametrize("ends", [((90, 20), (90, 200)), ((20, 60), (300, 60)), ((60, 200), (220, 40))])
def test_along_the_axes_and_across(photograph, ends):
    scratched, hidden = ruled(photograph, (255, 0, 255), 2, ends)
    assert np.mean(lines_in(scratched)[hidden]) > 0.95


def test_the_other_polarity_has_none(photograph):
    dark = ruled(np.full_like(photograph, 120), (10, 10, 10), 3)[0]
    assert not lines_in(dark, "bright").any()
    assert lines_in(dark, "dark").any()


def test_short_lines_need_sensitivity(photograph):
    short = ruled(np.full_like(photograph, 120), (10, 10, 10), 2, ((100, 100), (114, 100)))[0]
    assert not lines_in(short).any()
    assert lines_in(short, sensitivity=1.0).any()


def test_photographs_edges_and_wide_bars_have_none(photograph):
    for grey in pt.photographs("test").values():
        assert lines_in(grey[..., None].astype(np.float32)).mean() < 1e-3  # a leg of the tripod
    assert lines_in(photograph / np.float32(255)).mean() < 2e-4
    steps = np.zeros((64, 96, 1), np.float32)
    steps[:, 40:] = 0.5
    steps[20:40, :] += 0.4  # twenty pixels wide
    assert not lines_in(steps).any()


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 40, 1), (40, 1, 3), (0, 5, 3)])
def test_tiny_pictures(shape):
    assert not lines_in(np.zeros(shape, np.float32)).any()


@pytest.mark.parametrize(
    "picture", [np.full((50, 60), 7, np.uint8), np.full((40, 40), np.nan), np.ones((30, 30, 4), np.uint16)]
)
def test_pictures_without_any_line(picture):
    assert not pt.find_damage(picture, "scratches").any()
