"""Tests of what ships: photographs that are complete, documented and small, and dictionaries that fit others."""

from importlib.resources import files

import numpy as np
import pytest

from pointillist.data import contrast_normalise, load_filters, photographs
from pointillist.solvers.encoding import encode
from pointillist.storage import load_model

SHAPES = {"natural-400": (400, 11, 11), "natural-100": (100, 11, 11), "natural-colour-100": (100, 3, 11, 11)}
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


@pytest.mark.parametrize("name", SHAPES)
def test_filters_have_their_shape_and_norm_one_at_most(name):
    filters = load_filters(name)
    assert (filters.shape, filters.dtype) == (SHAPES[name], np.float32)
    norms = np.sqrt(np.sum(filters.reshape(len(filters), -1) ** 2, axis=1))
    assert np.all(norms <= 1.001)
    assert np.median(norms) > 0.99


@pytest.mark.parametrize("name", SHAPES)
def test_files_are_small_models_that_say_how_they_were_learned(name):
    path = files("pointillist.data").joinpath("dictionaries", f"{name}.safetensors")
    assert path.stat().st_size < 150_000
    model = load_model(path)
    assert model.arrays["filters"].dtype == np.float16
    np.testing.assert_array_equal(model.arrays["filters"].astype(np.float32), load_filters(name))
    assert not set(model.metadata["training"]) & set(model.metadata["held_out"])
    assert {"camera", "coffee"} <= set(model.metadata["held_out"])


def test_each_call_gives_its_own_copy():
    load_filters("natural-100")[:] = 0
    assert load_filters("natural-100").any()


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no dictionary 'natural-7'.*natural-400, natural-100, natural-colour-100"):
        load_filters("natural-7")


def test_learned_filters_beat_random_ones_on_a_held_out_photograph():
    crop = photographs("test")["camera"][80:144, 100:164]
    signal = crop - crop.mean()
    filters = load_filters("natural-100")
    noise = np.random.default_rng(0).standard_normal(filters.shape).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=(1, 2), keepdims=True)
    learned, random = (encode([signal], bank, 0.1, tol=1e-2).objective[0] for bank in (filters, noise))
    assert learned < 0.7 * random
