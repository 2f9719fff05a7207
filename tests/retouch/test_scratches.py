"""The network of plain arrays answers as slow convolutions do, wherever a tile begins; opaque lines are found."""

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy import ndimage

import pointillist as pt
from pointillist.retouch.scratches import GRID, Layer, lines_in, load_network, log_odds, scratches_of


def convolved(layer, planes):
    """Planes (channels, height, width) convolved one pair of channels after the other, with zeros around them."""
    side = round(np.sqrt(len(layer.taps)))
    kernels = layer.taps.reshape(side, side, *layer.taps.shape[1:])
    return np.stack(
        [
            bias + sum(ndimage.correlate(plane, kernels[..., i, o], mode="constant") for i, plane in enumerate(planes))
            for o, bias in enumerate(layer.biases)
        ]
    )


def answered(layers, picture):
    """What a network answers, step by step: two by two pixels are channels, colours first."""
    planes = np.stack([picture[dy::2, dx::2, c] for c in range(3) for dy in (0, 1) for dx in (0, 1)])
    kept = []
    for level in range(4):
        if level:
            planes = planes.reshape(len(planes), planes.shape[1] // 2, 2, -1, 2).max(axis=(2, 4))
        planes = np.maximum(convolved(layers[f"down.{level}"], planes), 0)
        planes = np.maximum(planes + convolved(layers[f"keep.{level}"], planes), 0)
        kept.append(planes)
    planes = np.maximum(planes + convolved(layers["last"], planes), 0)
    for level in (2, 1, 0):
        up = convolved(layers[f"lift.{level}"], planes).repeat(2, axis=1).repeat(2, axis=2)
        planes = np.maximum(convolved(layers[f"join.{level}"], np.maximum(kept[level] + up, 0)), 0)
        planes = np.maximum(planes + convolved(layers[f"end.{level}"], planes), 0)
    head = convolved(layers["head"], planes)
    answer = np.zeros((len(head) // 4, *picture.shape[:2]))
    for i, (dy, dx) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        answer[:, dy::2, dx::2] = head[i::4]
    return answer


@pytest.mark.parametrize("side", [1, 3])
def test_a_layer_is_a_convolution(side):
    rng = np.random.default_rng(0)
    layer = Layer(*(rng.normal(size=n).astype(np.float32) for n in ((side**2, 5, 7), (7,))))
    values = rng.normal(size=(9, 6, 5)).astype(np.float32)
    expected = np.moveaxis(convolved(layer, np.moveaxis(values, -1, 0)), 0, -1)
    np.testing.assert_allclose(layer(values), expected, rtol=1e-4, atol=1e-4)


def test_the_answer_is_that_of_slow_convolutions():
    loaded = load_network()
    picture = np.random.default_rng(2).random((160, 144, 3)).astype(np.float32)
    expected = answered(loaded, picture - 0.5)
    got = log_odds(loaded, picture)
    assert got.shape == (2, 160, 144)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (17, 33), (40, 7)])
def test_any_size_is_answered(shape):
    assert log_odds(load_network(), np.zeros((*shape, 3), np.float32)).shape[-2:] == shape


def test_pictures_may_begin_anywhere_on_the_grid():
    picture = np.random.default_rng(3).random((176, 176, 3)).astype(np.float32)
    whole, part = (log_odds(load_network(), one) for one in (picture, picture[2 * GRID :, GRID:]))
    np.testing.assert_allclose(part[..., 120:, 120:], whole[..., 2 * GRID + 120 :, GRID + 120 :], atol=1e-4)


def test_islands_need_enough_sure_pixels():
    odds = np.full((20, 80), -9.0, np.float32)
    odds[5, :55], odds[5, 55:70] = 3.0, 1.5  # enough that are sure, and a fainter end
    odds[15, :40] = 3.0  # too few
    expected = np.zeros(odds.shape, bool)
    expected[5, :70] = True
    np.testing.assert_array_equal(scratches_of(odds, 2.5), expected)


ENDS = ((30, 112), (170, 86))


def lines(values, **how):
    return lines_in(values, **how) | lines_in(1 - values, **how)


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
    found = lines(scratched) if side == "both" else lines_in(scratched if side == "bright" else 1 - scratched)
    assert np.mean(found[hidden]) > 0.7  # it is lost where it crosses what has its colour
    assert np.count_nonzero(found & ~hidden) < 20


def test_whoever_looks_for_scratches_finds_it(photograph):
    scratched, hidden = ruled(photograph, (255, 255, 255), 3)
    assert np.mean(pt.find_damage(scratched, "scratches")[hidden]) > 0.8


@pytest.mark.parametrize("ends", [((90, 20), (90, 200)), ((20, 60), (300, 60)), ((60, 200), (220, 40))])
def test_along_the_axes_and_across(photograph, ends):
    scratched, hidden = ruled(photograph, (255, 0, 255), 2, ends)
    assert np.mean(lines(scratched)[hidden]) > 0.95


def test_the_other_polarity_has_none(photograph):
    dark = ruled(np.full_like(photograph, 120), (10, 10, 10), 3)[0]
    assert not lines_in(dark).any()
    assert lines_in(1 - dark).any()


def test_short_lines_need_sensitivity(photograph):
    short = ruled(np.full_like(photograph, 120), (10, 10, 10), 2, ((100, 100), (114, 100)))[0]
    assert not lines(short).any()
    assert lines(short, sensitivity=1.0).any()


def test_photographs_edges_and_wide_bars_have_none(photograph):
    for grey in pt.photographs("test").values():
        assert lines(grey[..., None].astype(np.float32)).mean() < 1e-3  # a leg of the tripod
    assert lines(photograph / np.float32(255)).mean() < 2e-4
    steps = np.zeros((64, 96, 1), np.float32)
    steps[:, 40:] = 0.5
    steps[20:40, :] += 0.4  # twenty pixels wide
    assert not lines(steps).any()


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 40, 1), (40, 1, 3), (0, 5, 3)])
def test_tiny_pictures(shape):
    assert not lines(np.zeros(shape, np.float32)).any()


@pytest.mark.parametrize(
    "picture", [np.full((50, 60), 7, np.uint8), np.full((40, 40), np.nan), np.ones((30, 30, 4), np.uint16)]
)
def test_pictures_without_any_line(picture):
    assert not pt.find_damage(picture, "scratches").any()
