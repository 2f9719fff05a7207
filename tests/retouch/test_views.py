"""What the page is shown is the photograph."""

import io

import numpy as np
import pytest
from PIL import Image

from pointillist.data.photofiles import Metadata, Photograph
from pointillist.retouch.views import View, mask_view, picture_view


def _opened(answer):
    image = Image.open(io.BytesIO(answer[0]))
    assert answer[1] == f"image/{image.format.lower()}"
    return image


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_at_full_scale_pixels_are_exact(kind):
    shown = np.random.default_rng(0).integers(0, 256, (30, 40, 3))
    factor = {np.uint8: 1, np.uint16: 257, np.float32: 1 / 255}[kind]
    photograph = Photograph((shown * factor).astype(kind))
    part = np.asarray(_opened(picture_view(photograph, View(5, 7, 100, 10, 1.0))))
    assert np.array_equal(part, shown[7:17, 5:])


def test_smaller_views_keep_profile_and_transparency():
    pixels, alpha = np.full((300, 400), 100, np.uint8), np.zeros((300, 400), np.uint8)
    plain = Photograph(pixels, metadata=Metadata(icc=b"a profile"))
    image = _opened(picture_view(plain, View(0, 0, 400, 300, 0.25)))
    assert (image.format, image.size, image.info["icc_profile"]) == ("JPEG", (100, 75), b"a profile")
    clear = _opened(picture_view(Photograph(pixels, alpha), View(0, 0, 400, 300, 0.25)))
    assert clear.mode == "LA"
    assert np.asarray(clear.getchannel("A")).max() == 0


def test_a_thin_scratch_stays_visible_in_a_small_view():
    mask = np.zeros((400, 400), bool)
    mask[:, 201] = True
    shown = np.asarray(_opened(mask_view(mask, View(0, 0, 400, 400, 0.25))).getchannel("A"))
    assert shown.max() > 200
    assert np.count_nonzero(shown.any(axis=0)) == 1


@pytest.mark.parametrize(
    "query", [{}, {"x": "a"}, {"x": "-1"}, {"w": "0"}, {"scale": "0"}, {"scale": "2"}, {"scale": "nan"}, {"x": "400"}]
)
def test_views_of_nothing_are_refused(query):
    photograph = Photograph(np.zeros((300, 400), np.uint8))
    whole = {"x": "0", "y": "0", "w": "400", "h": "300", "scale": "1"}
    with pytest.raises(ValueError, match=r"view|scale"):
        picture_view(photograph, View.read({**whole, **query} if query else {}))
