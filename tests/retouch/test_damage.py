"""Dust and scratches painted into photographs are found, and little else."""

import numpy as np
import pytest
from scipy import ndimage

import pointillist as pt
from pointillist.retouch import damage


@pytest.fixture(scope="module")
def sky():
    """A smooth ramp with a little grain, (240, 320, 3) uint8."""
    rows, columns = np.mgrid[:240, :320]
    grain = np.random.default_rng(0).normal(0, 1.5, (240, 320, 1))
    ramp = np.stack([110 + 0.1 * rows, 130 + 0.1 * columns, 180 + 0 * rows], axis=-1)
    return np.rint(ramp + grain).astype(np.uint8)


SPECKS = ((40, 50, 3), (90, 200, 5), (150, 80, 7), (200, 290, 2))


def dusty(picture, value):
    """Soft discs of a neutral tone, and where they are."""
    rows, columns = np.mgrid[: picture.shape[0], : picture.shape[1]]
    cover = np.zeros(picture.shape[:2])
    for y, x, size in SPECKS:
        cover = np.maximum(cover, np.clip(size / 2 + 0.5 - np.hypot(rows - y, columns - x), 0, 1))
    return np.rint(picture + cover[..., None] * (value - picture.astype(float))).astype(np.uint8), cover > 0.3


def scratched(picture, value):
    """A curve three pixels wide across the picture, and where it is."""
    columns = np.arange(30, 290)
    middle = np.zeros(picture.shape[:2], bool)
    middle[np.rint(120 + 50 * np.sin(columns / 70)).astype(int), columns] = True
    truth = ndimage.binary_dilation(middle, np.ones((3, 3)))
    return np.where(truth[..., None], (0.7 * value + 0.3 * picture).astype(np.uint8), picture), truth


@pytest.mark.parametrize(("value", "name"), [(240, "bright"), (30, "dark")])
def test_dust(sky, value, name):
    damaged, truth = dusty(sky, value)
    mask = pt.find_damage(damaged, "dust")
    assert np.mean(mask[truth]) > 0.95
    assert not np.any(mask & ~ndimage.binary_dilation(truth, np.ones((5, 5))))
    np.testing.assert_array_equal(pt.find_damage(damaged, "dust", polarity=name), mask)
    other = {"bright": "dark", "dark": "bright"}[name]
    assert not pt.find_damage(damaged, "dust", polarity=other).any()


@pytest.mark.parametrize(("value", "name", "other"), [(240, "bright", "dark"), (30, "dark", "bright")])
def test_scratches(sky, value, name, other):
    damaged, truth = scratched(sky, value)
    mask = pt.find_damage(damaged, "scratches")
    assert np.mean(mask[truth]) > 0.9
    assert np.mean(ndimage.binary_dilation(truth, np.ones((5, 5)))[mask]) > 0.95
    np.testing.assert_array_equal(pt.find_damage(damaged, "scratches", polarity=name), mask)
    assert not pt.find_damage(damaged, "scratches", polarity=other).any()


def test_scratches_in_grey_pictures_and_across_tiles(sky, monkeypatch):
    damaged, truth = scratched(sky, 240)
    for picture in (damaged[..., 1], damaged[..., :1]):
        assert np.mean(pt.find_damage(picture, "scratches")[truth]) > 0.9
    monkeypatch.setattr(damage, "SIDE", 120)
    assert np.mean(pt.find_damage(damaged, "scratches")[truth]) > 0.9


def test_a_clean_sky_and_edges_have_no_damage(sky):
    assert not pt.find_damage(sky).any()
    step = sky.copy()
    step[:, 160:] = step[:, 160:] // 2
    assert not pt.find_damage(step).any()


def test_types_and_grey_agree(sky):
    damaged, truth = dusty(sky, 240)
    expected = pt.find_damage(damaged, "dust")
    np.testing.assert_array_equal(pt.find_damage(damaged.astype(np.uint16) * 257, "dust"), expected)
    np.testing.assert_array_equal(pt.find_damage(damaged / 255, "dust"), expected)
    np.testing.assert_array_equal(pt.find_damage(damaged.astype(float), "dust", data_range=255), expected)
    assert np.mean(pt.find_damage(damaged[..., 1], "dust")[truth]) > 0.9


def test_sensitivity_and_grow(sky):
    damaged, _ = dusty(sky, 155)
    counts = [int(pt.find_damage(damaged, "dust", sensitivity=s).sum()) for s in (0.0, 0.5, 1.0)]
    assert counts[0] <= counts[1] <= counts[2]
    bare = pt.find_damage(damaged, "dust", grow=0)
    np.testing.assert_array_equal(
        pt.find_damage(damaged, "dust", grow=2), ndimage.binary_dilation(bare, np.ones((5, 5)))
    )


def test_both_kinds_in_tiles_and_threads_with_progress(sky, monkeypatch):
    damaged, specks = dusty(sky, 240)
    damaged, line = scratched(damaged, 240)
    assert np.mean(pt.find_damage(damaged)[specks | line]) > 0.9
    dust = pt.find_damage(damaged, "dust")
    monkeypatch.setattr(damage, "SIDE", 100)
    np.testing.assert_array_equal(pt.find_damage(damaged, "dust"), dust)  # tiles cover the picture, and do not show
    damaged = damaged[:160, :200]
    told = []
    alone = pt.find_damage(damaged, n_jobs=1, progress=told.append)
    assert told == sorted(told)
    assert len(told) == 4
    assert told[-1] == 1
    for n_jobs in (3, None):
        np.testing.assert_array_equal(pt.find_damage(damaged, n_jobs=n_jobs), alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_jobs": 0}, "n_jobs"),
        ({"kind": "stains"}, "kind must be one or several of dust, scratches, text, got 'stains'"),
        ({"kind": ()}, "kind must be"),
        ({"polarity": "grey"}, "polarity must be"),
        ({"sensitivity": 3}, "sensitivity must be a number between"),
        ({"grow": -1}, "grow"),
        ({"data_range": 0}, "data_range"),
        ({"image": np.zeros(5)}, "image must be"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        pt.find_damage(**{"image": np.zeros((40, 40)), **change})


@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (9, 9)])
def test_tiny_pictures(shape):
    assert not pt.find_damage(np.full(shape, 0.5)).any()
