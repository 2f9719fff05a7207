"""Tests of the mosaic: every filter in its place, on its own symmetric grey scale, whatever its dimensions."""

import numpy as np
import pytest
from PIL import Image

from pointillist.plot import mosaic, save_mosaic


@pytest.fixture
def filters():
    return np.random.default_rng(0).standard_normal((6, 5, 7)).astype(np.float32)


def test_each_filter_has_its_place_and_its_own_scale(filters):
    filters[1] *= 100
    picture = mosaic(filters, columns=3)
    assert picture.dtype == np.uint8
    assert picture.shape == (2 * 6 + 1, 3 * 8 + 1)
    for i, one in enumerate(filters):
        top, left = 1 + i // 3 * 6, 1 + i % 3 * 8
        tile = picture[top : top + 5, left : left + 7]
        np.testing.assert_allclose(tile, 127.5 + 127.5 * one / np.abs(one).max(), atol=0.51)
    assert (picture[0] == 255).all()
    assert (picture[:, 8] == 255).all()


def test_colour_volumes_and_series():
    rng = np.random.default_rng(0)
    assert mosaic(rng.standard_normal((4, 3, 5, 5)), channels=True, columns=2).shape == (13, 13, 3)
    assert mosaic(rng.standard_normal((4, 2, 5, 5)), channels=True, columns=2).shape == (13, 13)
    assert mosaic(rng.standard_normal((2, 5, 5, 5)), columns=1).shape == (13, 19)
    lines = mosaic(rng.standard_normal((5, 20)))
    assert lines.shape[2] == 3
    assert min(lines.shape[:2]) >= 300
    assert len(np.unique(lines)) > 10


@pytest.mark.parametrize(("channels", "colour"), [(3, "green"), (12, "orange")])
def test_waveforms_of_channels(tmp_path, channels, colour):
    filters = np.random.default_rng(0).standard_normal((5, channels, 40))
    save_mosaic(tmp_path / "m.png", filters, channels=True)
    pixels = np.asarray(Image.open(tmp_path / "m.png").convert("RGB")).astype(int)
    green = (pixels[..., 1] > pixels[..., 0] + 40) & (pixels[..., 1] > pixels[..., 2])
    orange = (pixels[..., 0] > 200) & (pixels[..., 2] < 120)
    assert min(pixels.shape[:2]) >= 600
    # The third of three channels is green; positive samples of heat maps are orange.
    assert (green if colour == "green" else orange).any()


def test_layout_is_nearly_square():
    assert [mosaic(np.ones((count, 11, 11))).shape[1] for count in (1, 64, 100)] == [13, 97, 121]
    assert mosaic(np.ones((12, 5, 15))).shape == (6 * 6 + 1, 2 * 16 + 1)


def test_saved_picture_is_large_enough_and_the_same(tmp_path, filters):
    save_mosaic(tmp_path / "m.png", filters)
    assert 500 <= min(Image.open(tmp_path / "m.png").size) < 900
    save_mosaic(tmp_path / "m.png", filters, scale=2, columns=2)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "m.png")), mosaic(filters, scale=2, columns=2))
    assert [path.name for path in tmp_path.iterdir()] == ["m.png"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.zeros(3), "shape"),
        (np.zeros((0, 3, 3)), "shape"),
        (np.zeros((1,) * 6), "shape"),
        (np.full((1, 2, 2), np.nan), "NaN"),
    ],
)
def test_wrong_filters_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        mosaic(wrong)


def test_wrong_arguments_are_refused(tmp_path, filters):
    for word in ("scale", "columns"):
        with pytest.raises(ValueError, match=word):
            mosaic(filters, **{word: 0})
    with pytest.raises(ValueError, match=r"end it in \.png"):
        save_mosaic(tmp_path / "m.docx", filters)
