"""EXIF bytes: changed in place, found wherever it is, and no obstacle when it is damaged."""

import io

import numpy as np
import pytest

import pointillist as pt
from pointillist.data.photofiles import Metadata, Photograph
from pointillist.data.photofiles.exif import (
    directories,
    from_tiff_structure,
    orientation,
    with_orientation,
    without_prefix,
    without_thumbnail,
)


@pytest.mark.parametrize("code", range(1, 9))
def test_orientation_is_the_only_thing_that_changes(make_exif, code):
    exif = make_exif(code)
    assert orientation(exif) == code
    upright = with_orientation(exif, 1)
    assert orientation(upright) == 1
    assert len(upright) == len(exif)
    assert sum(a != b for a, b in zip(exif, upright, strict=True)) <= 1
    assert without_thumbnail(upright) == upright


def test_directories_are_found_in_any_tiff_structure(make_exif):
    exif = make_exif(6)
    again = from_tiff_structure(io.BytesIO(exif))
    assert directories(io.BytesIO(again))[1] == directories(io.BytesIO(exif))[1]
    assert orientation(again) == 1  # such pixels are turned by whoever reads them


@pytest.mark.parametrize(
    "exif", [b"II*\0", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\x09\x01\x12", b"MM\0*" + b"\xff" * 40]
)
@pytest.mark.filterwarnings("ignore:.*EXIF data")
def test_damaged_exif_is_no_obstacle(tmp_path, exif):
    assert orientation(exif) == 1
    assert with_orientation(exif, 3) == without_thumbnail(exif) == exif
    photo = Photograph(np.zeros((5, 6, 3), np.uint8), metadata=Metadata(exif=exif))
    for suffix in (".png", ".jpg", ".tif", ".webp"):
        pt.write_photograph(photo, tmp_path / f"a{suffix}")
        assert pt.read_photograph(tmp_path / f"a{suffix}").shape == (5, 6)


def test_bytes_that_are_no_exif_are_not_taken_for_it():
    assert without_prefix(b"Exif\0\0nonsense") is None
    assert without_prefix(None) is None
    assert orientation(None) == 1
