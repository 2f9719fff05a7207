"""Mosaics of all four patterns become colour."""

import numpy as np
import pytest

from pointillist.restore import demosaic
from pointillist.restore.demosaicing import PATTERNS, _pattern


@pytest.mark.parametrize("pattern", PATTERNS)
def test_colour_comes_back(colour_picture, colour_filters, error, pattern):
    seen = np.moveaxis(_pattern(colour_picture.shape[:2], pattern), 0, -1)
    mosaic = np.rint(255 * np.sum(colour_picture * seen, axis=2)).astype(np.uint8)
    mended, details = demosaic(mosaic, pattern.lower(), colour_filters, 0.02, return_details=True)
    assert mended.shape == colour_picture.shape
    assert mended.dtype == np.uint8
    np.testing.assert_array_equal(mended[seen > 0], mosaic.ravel())
    assert error(mended / 255, colour_picture) < 0.04
    assert len(details.codes) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pattern": "RGBG"}, "pattern must be one of"),
        ({"mosaic": np.zeros((20, 20, 3))}, "mosaic must be"),
        ({"mosaic": np.zeros((1, 1))}, "image must have at least"),
        ({"filters": np.ones((2, 3, 3))}, "filters must be colour filters"),
    ],
)
def test_bad_input_is_named(colour_filters, change, message):
    arguments = {"mosaic": np.zeros((20, 20)), "filters": colour_filters, **change}
    with pytest.raises(ValueError, match=message):
        demosaic(**arguments)


def test_an_unseen_channel_is_named(colour_filters):
    mosaic = np.ones((20, 20))
    mosaic[::2, ::2] = np.nan
    with pytest.raises(ValueError, match="no seen pixel"):
        demosaic(mosaic, "RGGB", colour_filters)
