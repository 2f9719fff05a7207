"""Wishes are checked, and each becomes one call of the library."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import pointillist as pt
from pointillist.data.photofiles import Photograph
from pointillist.errors import BlurMisfitWarning
from pointillist.retouch import tasks
from pointillist.retouch.tasks import Wish


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"task": "sing"},
        {"task": "deblur", "blur": "wind"},
        {"task": "deblur", "width": 0},
        {"task": "deblur", "length": 1e6},
        {"task": "deblur", "angle": "steep"},
        {"task": "inpaint", "texture": 1.1},
        {"task": "inpaint", "texture": float("nan")},
        {"task": "denoise", "sigma": -1},
        {"task": "denoise", "sigma": float("nan")},
    ],
)
def test_impossible_wishes_are_refused(given):
    with pytest.raises(ValueError, match=r"task|blur|number|noise|grain"):
        Wish.read(given)


def test_noise_is_told_in_the_photographs_own_scale(monkeypatch):
    asked = []
    monkeypatch.setattr(pt, "denoise", lambda pixels, sigma, progress: asked.append(sigma) or pixels)
    deep = Photograph(np.zeros((8, 8), np.uint16))
    tasks.mend(Wish.read({"task": "denoise", "sigma": 10}), deep, None, print)
    tasks.mend(Wish.read({"task": "denoise", "sigma": None}), deep, None, print)
    assert asked == [2570, None]


def test_enlarging_keeps_transparency():
    photograph = Photograph(np.full((12, 14), 90, np.uint8), np.eye(12, 14, dtype=np.uint8) * 255)
    large = tasks.mend(Wish(task="super_resolve"), photograph, None, lambda fraction: None)
    assert large.shape == (24, 28)
    assert np.array_equal(large.alpha[::2, ::2], photograph.alpha)


def test_erased_holes_become_opaque_where_they_are_filled_in(monkeypatch):
    monkeypatch.setattr(pt, "inpaint", lambda pixels, mask, texture, progress: pixels)
    alpha = np.array([[0, 0, 90, 255]], np.uint8)
    mask = np.array([[True, False, True, True]])
    filled = tasks.mend(Wish(task="inpaint"), Photograph(np.zeros((1, 4), np.uint8), alpha), mask, print)
    assert filled.alpha.tolist() == [[255, 0, 90, 255]]


def test_the_grain_is_handed_on(monkeypatch):
    asked = []
    monkeypatch.setattr(pt, "inpaint", lambda pixels, mask, texture, progress: asked.append(texture) or pixels)
    photograph, mask = Photograph(np.zeros((2, 4), np.uint8)), np.eye(2, 4, dtype=bool)
    for given in ({}, {"texture": 0.8}):
        tasks.mend(Wish.read({"task": "inpaint", **given}), photograph, mask, print)
    assert asked == [0, 0.8]


def test_a_grey_photograph_marked_in_colour_is_filled_in_without_a_tint():
    y, x = np.mgrid[:40, :48]
    pixels = np.stack([60 + x + 2 * y] * 3, axis=-1).astype(np.uint8)
    pixels[10:14, 5:40] = 255, 0, 255
    mask = np.zeros((40, 48), bool)
    mask[10:14, 5:40] = True
    filled = tasks.mend(Wish(task="inpaint"), Photograph(pixels), mask, lambda fraction: None).pixels
    assert filled.shape == pixels.shape
    assert np.ptp(filled, axis=-1).max() == 0
    assert np.max(np.abs(filled[..., 0].astype(int) - (60 + x + 2 * y))) <= 2


def test_blurs_have_their_kernels():
    gaussian = Wish(task="deblur", width=2.0).kernel()
    motion = Wish(task="deblur", blur="motion", length=9.0, angle=0.0).kernel()
    for kernel in (gaussian, motion):
        assert np.sum(kernel) == pytest.approx(1)
    assert np.count_nonzero(motion.sum(axis=1) > 1e-6) == 1


def test_a_blur_that_does_not_fit_is_said_and_can_be_forced(recwarn):
    photograph = Photograph(np.rint(255 * pt.photographs("test")["camera"][100:228, 100:228]).astype(np.uint8))
    wish = Wish.read({"task": "deblur", "blur": "motion", "length": 25, "angle": 30})
    with pytest.raises(ValueError, match=r"not seem to be the photograph's own: .*“Even if"):
        tasks.mend(wish, photograph, None, lambda fraction: None)
    assert [str(one.message) for one in recwarn if issubclass(one.category, BlurMisfitWarning)] == []
    forced = tasks.mend(replace(wish, force=True), photograph, None, lambda fraction: None)
    assert not np.array_equal(forced.pixels, photograph.pixels)


@pytest.mark.parametrize(
    ("blur", "settings"), [("gaussian", {"width": 2.35}), ("motion", {"length": 12.3, "angle": 178.0})]
)
def test_estimates_become_settings(monkeypatch, blur, settings):
    shape = {"sigma": 2.346, "length": None, "angle": None}
    if blur == "motion":
        shape = {"sigma": None, "length": 12.34, "angle": 178.04}
    found = SimpleNamespace(**shape, confidence=0.9)
    monkeypatch.setattr(pt, "estimate_blur", lambda pixels, kind: found)
    assert tasks.estimate(np.zeros((9, 9)), blur, lambda fraction: None) == settings
    found.confidence = 0.0
    with pytest.raises(ValueError, match=r"No blur of this kind"):
        tasks.estimate(np.zeros((9, 9)), blur, lambda fraction: None)
