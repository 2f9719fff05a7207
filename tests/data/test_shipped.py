"""Tests of the shipped photographs: complete, documented, small and fit for learning."""

from importlib.resources import files

import numpy as np
import pytest

from pointillist.data import contrast_normalise, photographs

FOLDER = files("pointillist.data").joinpath("photographs")


def shipped_files() -> list[str]:
    return sorted(entry.name for entry in FOLDER.iterdir() if entry.name.endswith((".jpg", ".png")))


def test_splits_cover_all_files_without_overlap():
    train, test = photographs("train"), photographs("test")
    assert set(train).isdisjoint(test)
    assert set(photographs()) == set(train) | set(test) == {name.split(".")[0] for name in shipped_files()}
    assert len(train) >= 2 * len(test)


def test_every_file_is_documented_with_its_split():
    rows = [line.split("|") for line in FOLDER.joinpath("SOURCES.md").read_text("utf-8").splitlines()]
    documented = {row[1].strip(" `"): row[2].strip() for row in rows if len(row) > 5 and ".jpg" in row[1]}
    splits = {f"{name}.jpg": split for split in ("train", "test") for name in photographs(split)}
    assert documented == splits


def test_pictures_are_small_and_have_contrast():
    assert sum(len(FOLDER.joinpath(name).read_bytes()) for name in shipped_files()) < 400_000
    for picture in photographs().values():
        assert picture.ndim == 2
        assert picture.dtype == np.float32
        assert picture.min() >= 0
        assert picture.max() <= 1
        assert 200 <= max(picture.shape) <= 384
        assert np.isfinite(contrast_normalise(picture)).all()


def test_colour():
    assert all(picture.shape[-1] == 3 for picture in photographs("test", grey=False).values())


def test_unknown_split():
    with pytest.raises(ValueError, match="split must be"):
        photographs("validation")
