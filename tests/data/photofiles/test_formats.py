"""Names of answers: the input's own format where that keeps what the input has."""

import numpy as np
import pytest
from PIL import Image

from pointillist.data.photofiles import answer_suffix, check_format


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.png", ".png"),
        ("a.TIF", ".TIF"),
        ("a.webp", ".webp"),
        ("a.npy", ".npy"),
        ("a.gif", ".png"),
        ("a.pgm", ".png"),
        ("a.nef", ".tif"),
        ("a.HEIC", ".tif"),
        ("a", ".png"),
    ],
)
def test_answers_end_as_their_questions_did(name, suffix):
    assert answer_suffix(name) == suffix


@pytest.mark.parametrize(("name", "suffix"), [("a.jpg", ".jpg"), ("a.JPEG", ".JPEG"), ("a.jfif", ".jpg")])
def test_only_what_is_jpeg_becomes_jpeg(tmp_path, name, suffix):
    Image.new("RGB", (8, 8)).save(tmp_path / name, "JPEG")
    assert answer_suffix(tmp_path / name) == suffix
    Image.new("RGB", (8, 8)).save(tmp_path / name, "PNG")
    assert answer_suffix(tmp_path / name) == ".png"


def test_formats_know_their_samples():
    assert check_format("a.png", np.dtype(np.uint16)).name == "PNG"
    with pytest.raises(ValueError, match=r"end it in \.tif or \.npy"):
        check_format("a.png", np.dtype(np.float32))
