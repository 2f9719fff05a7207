"""Impulses and outliers are told from what belongs to a picture."""

import numpy as np
import pytest

from pointillist.restore import large, outliers
from pointillist.restore.engine import Settings
from pointillist.restore.outliers import find_impulses, find_outliers
from pointillist.restore.pictures import open_canvas


@pytest.mark.parametrize("tiled", [False, True])
def test_pepper_in_a_white_sky_is_found_and_the_sky_kept(picture, filters, monkeypatch, tiled):
    if tiled:
        monkeypatch.setattr(large, "LARGE", 1000)
        monkeypatch.setattr(outliers, "SIDE", 24)
    noisy = np.rint(40 + 160 * picture).astype(np.uint8)
    noisy[:, :60] = 255
    noisy[20, 20] = 0
    odd = find_impulses(open_canvas(noisy), filters[:, None], Settings())[0]
    assert odd[20, 20]
    assert np.sum(odd[:, :55]) == 1


def test_what_is_missing_is_not_odd(picture, filters):
    holed = picture.copy()
    holed[10:14, 10:14] = np.nan
    holed[40, 40] = 1 - np.round(holed[40, 40])
    for find in (find_impulses, find_outliers):
        odd = find(open_canvas(holed), filters[:, None], Settings())
        assert odd.shape == (1, *picture.shape)
        assert not np.any(odd[0, 10:14, 10:14])
        assert odd[0, 40, 40]
