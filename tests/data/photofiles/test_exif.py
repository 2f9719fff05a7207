"""EXIF bytes: changed in place, found wherever it is, and no obstacle when it is damaged."""

import io

import numpy as np
import pytest

import pointillist as pt
from pointillist.data.photofiles import Metadata, Photograph
from pointillist.data.photofiles.tiff import directories, exif_of_structure, turned_exif


@pytest.mark.parametrize("code", range(1, 9))
def test_orientation_is_the_only_thing_that_changes(make_exif, code):
    exif = make_exif(code)
    upright, before = turned_exif(b"Exif\0\0" + exif)
    assert before == code
    assert turned_exif(upright) == (upright, 1)
    assert turned_exif(upright, code) == (exif, 1)
    assert len(upright) == len(exif)
    assert sum(a != b for a, b in zip(exif, upright, strict=True)) <= 1


def test_directories_are_found_in_any_tiff_structure(make_exif):
    exif = make_exif(6)
    again = exif_of_structure(io.BytesIO(exif))
    assert directories(io.BytesIO(again))[1] == directories(io.BytesIO(exif))[1]
    assert turned_exif(again)[1] == 1  # such pixels are turned by whoever reads them


@pytest.mark.parametrize(
    "exif", [b"II*\0", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\x09\x01\x12", b"MM\0*" + b"\xff" * 40]
)
@pytest.mark.filterwarnings("ignore:.*EXIF data")
def test_damaged_exif_is_no_obstacle(tmp_path, exif):
    assert turned_exif(exif, 3) == (exif, 1)
    photo = Photograph(np.zeros((5, 6, 3), np.uint8), metadata=Metadata(exif=exif))
    for suffix in (".png", ".jpg", ".tif", ".webp"):
        pt.write_photograph(photo, tmp_path / f"a{suffix}")
        assert pt.read_photograph(tmp_path / f"a{suffix}").shape == (5, 6)


def test_bytes_that_are_no_exif_are_not_taken_for_it():
    for given in (b"Exif\0\0nonsense", b"", None):
        assert turned_exif(given) == (None, 1)
