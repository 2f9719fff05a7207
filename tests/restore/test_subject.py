"""Large pictures restored tile by tile look like pictures that were restored whole."""

import numpy as np
import pytest

from pointillist.restore import deblur, demosaic, denoise, denoising, subject, super_resolve
from pointillist.restore.subject import Tuning


@pytest.fixture
def small_tiles(monkeypatch):
    """Pictures count as large from 4000 pixels on, and tiles have sides of 48, or so many."""

    def begin(large=4000, side=48):
        tuning = Tuning(large=large, side=side, smallest=side, crop=48)
        monkeypatch.setattr(subject, "TUNING", tuning)
        monkeypatch.setattr(denoising, "SUBJECT", tuning)

    return begin


@pytest.fixture(scope="module")
def scene(picture):
    """A picture (100, 131) with smooth parts and edges, in [0, 1]."""
    tiled = np.block([[picture, picture[:, ::-1]], [picture[::-1], picture[::-1, ::-1]]])
    return np.tile(tiled, (3, 3))[:100, :131]


def both(task, small_tiles, *arguments, **options):
    whole = task(*arguments, **options)
    small_tiles()
    return whole, task(*arguments, **options)


@pytest.mark.parametrize("noise", ["salt_pepper", "outliers"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_odd_samples(scene, filters, small_tiles, noise, dtype):
    clean = np.stack([scene, 0.9 * scene, 0.2 + 0.7 * scene], axis=-1)
    clean = np.rint(255 * clean).astype(np.uint8) if dtype == np.uint8 else 0.1 + 0.8 * clean
    top = 255 if dtype == np.uint8 else 1
    chance = np.random.default_rng(0).random(scene.shape)
    noisy = clean.copy()
    noisy[chance < 0.03], noisy[chance > 0.97] = 0, top
    told = []
    options = {"filters": filters, "noise": noise, "return_details": True, "n_jobs": 2, "data_range": top}
    (whole, first), (parts, second) = both(denoise, small_tiles, noisy, progress=told.append, **options)
    assert parts.dtype == dtype
    assert np.mean(first.missing != second.missing) < 0.005
    assert np.mean(np.abs(parts.astype(float) - whole)) < 0.002 * top
    assert np.mean(np.abs(parts.astype(float) - clean)) < 0.2 * np.mean(np.abs(noisy.astype(float) - clean))
    kept = ~second.missing
    np.testing.assert_array_equal(parts[kept], noisy[kept])
    assert told[-1] == pytest.approx(1)


@pytest.mark.parametrize(("penalty", "apart"), [("auto", 0.3), (0.2, 0.3), ("20%", 1.0)])
def test_counts(scene, filters, small_tiles, penalty, apart):
    counts = np.random.default_rng(0).poisson(40 * scene).astype(np.uint16)
    options = {"filters": filters, "penalty": penalty, "noise": "poisson", "tol": 0.01}
    whole, parts = (x.astype(float) for x in both(denoise, small_tiles, counts, **options))
    assert np.mean(np.abs(parts - whole)) < apart
    assert np.std(parts - 40 * scene) < 0.9 * np.std(counts - 40 * scene)


def test_gaussian_noise_and_blur(scene, filters, small_tiles):
    noisy = scene + 0.05 * np.random.default_rng(0).standard_normal(scene.shape)
    small_tiles()
    cleaner = denoise(noisy, 0.05, filters, data_range=1.0)
    assert np.std(cleaner - scene) < 0.9 * np.std(noisy - scene)
    told = []
    sharper = deblur(scene, np.ones((1, 1)), filters, force=True, progress=told.append)
    assert np.mean(np.abs(sharper - scene)) < 0.02
    assert told == sorted(told)


@pytest.mark.parametrize("factor", [2, 3])
def test_enlarging(scene, filters, small_tiles, factor):
    coarse = np.rint(255 * np.stack([scene, 1 - scene, scene, np.ones(scene.shape)], axis=-1)).astype(np.uint8)
    whole, parts = both(super_resolve, small_tiles, coarse[:60, :77], factor, filters, penalty=0.02, tol=0.01)
    assert parts.shape == whole.shape == (60 * factor, 77 * factor, 4)
    np.testing.assert_array_equal(parts[..., 3], 255)
    errors = np.abs(parts.astype(int) - whole)
    assert np.mean(errors) < 0.3
    assert np.mean(errors > 4) < 0.005


@pytest.mark.parametrize("penalty", ["auto", "1%"])
def test_enlarging_chooses_its_penalty_on_a_montage(scene, filters, small_tiles, penalty):
    whole, parts = both(super_resolve, small_tiles, scene[:60, :77], 2, filters, penalty=penalty)
    assert np.mean(np.abs(parts - whole)) < 0.01


@pytest.mark.parametrize("pattern", ["RGGB", "GBRG"])
def test_mosaics(scene, small_tiles, pattern):
    colour = np.stack([scene, 0.8 * scene, 0.1 + 0.6 * scene], axis=-1)
    mosaic = np.empty(scene.shape)
    for i, letter in enumerate(pattern):
        mosaic[i // 2 :: 2, i % 2 :: 2] = colour[i // 2 :: 2, i % 2 :: 2, "RGB".index(letter)]
    mosaic[50, 60] = np.nan
    bank = np.random.default_rng(0).standard_normal((4, 3, 5, 5)) / 9
    whole, parts = both(demosaic, small_tiles, mosaic, pattern, bank, penalty=0.02, tol=0.01, data_range=1.0)
    assert np.mean(np.abs(parts - whole)) < 1e-3
    for i, letter in enumerate(pattern):
        seen = mosaic[i // 2 :: 2, i % 2 :: 2]
        kept = parts[i // 2 :: 2, i % 2 :: 2, "RGB".index(letter)]
        np.testing.assert_array_equal(kept[~np.isnan(seen)], seen[~np.isnan(seen)])
    assert np.all(np.isfinite(parts))


def test_holes_as_large_as_a_tile_are_left_to_the_whole_picture(scene, small_tiles):
    small_tiles()
    holed = scene.copy()
    assert subject.open_subject(holed, None, None).tiled
    holed[40:100, 40:100] = np.nan
    assert not subject.open_subject(holed, None, None).tiled


@pytest.mark.parametrize(
    "restore", [lambda p, **o: denoise(p, **o), lambda p, **o: deblur(p, np.ones((3, 3)), force=True, **o)]
)
def test_progress_counts_the_tiles_and_nothing_inside_of_them(restore, picture, filters, small_tiles):
    small_tiles(64, 32)
    wide, told = np.tile(picture, (2, 2))[:64, :96], []
    restore(wide, filters=filters, sigma=0.05, n_jobs=2, progress=told.append)
    assert told == pytest.approx(np.arange(1, 7) / 6)
