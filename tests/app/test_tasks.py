"""Wishes are checked, and each becomes one call of the library."""

from types import SimpleNamespace

import numpy as np
import pytest

import pointillist as pt
from pointillist.app import tasks
from pointillist.app.tasks import Wish
from pointillist.data.photofiles import Photograph


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"task": "sing"},
        {"task": "deblur", "blur": "wind"},
        {"task": "deblur", "width": 0},
        {"task": "deblur", "length": 1e6},
        {"task": "deblur", "angle": "steep"},
        {"task": "denoise", "sigma": -1},
        {"task": "denoise", "sigma": float("nan")},
    ],
)
def test_impossible_wishes_are_refused(given):
    with pytest.raises(ValueError, match=r"task|blur|number|noise"):
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
    large = tasks.mend(Wish(task="superres"), photograph, None, lambda fraction: None)
    assert large.shape == (24, 28)
    assert np.array_equal(large.alpha[::2, ::2], photograph.alpha)


def test_erased_holes_become_opaque_where_they_are_filled_in(monkeypatch):
    monkeypatch.setattr(pt, "inpaint", lambda pixels, mask, progress: pixels)
    alpha = np.array([[0, 0, 90, 255]], np.uint8)
    mask = np.array([[True, False, True, True]])
    filled = tasks.mend(Wish(task="inpaint"), Photograph(np.zeros((1, 4), np.uint8), alpha), mask, print)
    assert filled.alpha.tolist() == [[255, 0, 90, 255]]


def test_blurs_have_their_kernels():
    gaussian = tasks.kernel(Wish(task="deblur", width=2.0))
    motion = tasks.kernel(Wish(task="deblur", blur="motion", length=9.0, angle=0.0))
    for kernel in (gaussian, motion):
        assert np.sum(kernel) == pytest.approx(1)
    assert np.count_nonzero(motion.sum(axis=1) > 1e-6) == 1


def test_a_blur_that_does_not_fit_is_said(monkeypatch):
    answer = np.zeros((9, 9)), SimpleNamespace(misfit="none explains it better")
    monkeypatch.setattr(pt, "deblur", lambda *arguments, **options: answer)
    with pytest.raises(ValueError, match=r"not seem to be the photograph's own: none explains it better"):
        tasks.mend(Wish(task="deblur"), Photograph(np.zeros((9, 9), np.uint8)), None, print)


@pytest.mark.parametrize(
    ("blur", "settings"), [("gaussian", {"width": 2.35}), ("motion", {"length": 12.3, "angle": 178.0})]
)
def test_estimates_become_settings(monkeypatch, blur, settings):
    shape = {"sigma": 2.346, "length": None, "angle": None}
    if blur == "motion":
        shape = {"sigma": None, "length": 12.34, "angle": 178.04}
    found = SimpleNamespace(**shape, confidence=0.9)
    monkeypatch.setattr(pt, "estimate_blur", lambda pixels, kind: found, raising=False)
    assert tasks.estimate(np.zeros((9, 9)), blur, lambda fraction: None) == settings
    found.confidence = 0.0
    with pytest.raises(ValueError, match=r"No blur of this kind"):
        tasks.estimate(np.zeros((9, 9)), blur, lambda fraction: None)


def test_dust_and_scratches_are_found_with_progress():
    picture = np.full((90, 120, 3), 110, np.uint8)
    picture[20:23, 30:33] = 240
    picture[60:63, 15:105] = 240
    told = []
    found = tasks.find(picture, 0.5, told.append)
    assert found[21, 31]
    assert found[61, 20:100].all()
    assert told[-1] == 1
