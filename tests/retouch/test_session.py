"""Sessions remember, name and keep files; jobs run, report, fail and stop; wishes become calls; strokes are drawn."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import pointillist as pt
from pointillist.cli.mending import OWN
from pointillist.data.photofiles import Photograph
from pointillist.errors import BlurMisfitWarning
from pointillist.kernels.compiling import compilation
from pointillist.retouch.marks import KEYS, parse_colour
from pointillist.retouch.session import COLOURS, NAMES, Job, draw_mask, mended

SHAPE = (31, 47)
PLACES = st.floats(-20, 60)


def test_results_are_named_as_on_the_command_line():
    assert set(NAMES.values()) <= set(OWN)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\photos\\me.jpg", "me.jpg"),
        ("a\x00b\n.png", "ab.png"),
        ("...", "photograph"),
        ("", "photograph"),
        ("x" * 300 + ".jpeg", "x" * 100 + ".jpeg"),
        ("été.tif", "été.tif"),
    ],
)
def test_names_from_elsewhere_stay_inside_the_private_folder(session, given, kept):
    path = session.private_path(given)
    assert path.name == kept
    assert session.folder in path.parents
    assert session.folder.stat().st_mode & 0o077 == 0


def test_marks_that_a_photograph_comes_with_are_found_and_stay(session, marked, photograph, monkeypatch):
    monkeypatch.setattr(pt, "find_damage", lambda pixels, kind, **options: pixels[..., 0] > 100)
    session.open(marked)
    assert session.job.wait(10)
    number = session.describe()["marks"]["id"]
    assert session.describe()["marks"]["colour"] == "magenta"
    for _ in range(3):
        session.find()
        assert session.job.wait(10)
    found = session.describe()["found"]
    assert len(found) == 4
    assert found[str(number)] >= 120
    session.open(photograph)
    assert session.describe()["marks"] is None
    assert session.describe()["found"] == {}


def test_marks_in_several_colours_are_not_offered(session, photograph):
    pixels = np.full((40, 60, 3), 90, np.uint8)
    pixels[5:9, 10:50], pixels[20:24, 10:50] = (255, 0, 255), (0, 255, 0)
    Image.fromarray(pixels).save(photograph)
    session.open(photograph)
    assert session.job is None


def test_every_key_has_a_name():
    for key in KEYS:
        assert COLOURS[key] == "green" if key == "#00ff00" else parse_colour(COLOURS[key]) == parse_colour(key)


@pytest.mark.parametrize(("kind", "asked"), [(("dust", "scratches"),) * 2, ("text", "text")])
def test_damage_and_writing_are_looked_for_apart(session, photograph, monkeypatch, kind, asked):
    told = []
    monkeypatch.setattr(
        pt, "find_damage", lambda pixels, kind, **o: told.append((kind, o["sensitivity"])) or pixels > 9
    )
    session.open(photograph)
    session.find(0.25, kind)
    assert session.job.wait(10)
    assert told == [(asked, 0.25)]


def _run(work):
    kept = []
    job = Job("mend", work, kept.append)
    assert job.wait(10)
    return job, kept


@pytest.mark.parametrize(
    ("error", "words"),
    [(ValueError("the picture\n is  too small"), "the picture is too small"), (RuntimeError("oh"), "RuntimeError: oh")],
)
def test_a_sentence_for_what_goes_wrong(error, words, caplog):
    def work(progress):
        raise error

    job, kept = _run(lambda progress: 7)
    assert (job.state, kept, job.describe()["fraction"]) == ("done", [7], 1.0)
    job, kept = _run(work)
    assert (job.state, kept) == ("failed", [])
    assert job.error.endswith(words)
    assert ("mend failed" in caplog.text) == isinstance(error, RuntimeError)  # nobody expected it


def test_cancelling_stops_at_the_next_report_and_keeps_nothing():
    begun, kept = threading.Event(), []

    def work(progress):
        progress(0.8)
        while True:
            progress(0.5)  # never goes back
            begun.set()
            time.sleep(0.001)

    job = Job("mend", work, kept.append)
    assert begun.wait(10)
    assert job.describe()["fraction"] == 0.8
    job.cancel()
    assert job.wait(10)
    assert (job.state, kept) == ("cancelled", [])


def test_cancelling_drops_the_answer_of_work_that_never_reports():
    go, kept = threading.Event(), []
    job = Job("mend", lambda progress: go.wait(10), kept.append)
    job.cancel()
    assert job.describe()["state"] == "stopping"
    go.set()
    assert job.wait(10)
    assert (job.state, kept) == ("cancelled", [])


def test_compilation_is_shown_and_not_counted():
    began, go_on = threading.Event(), threading.Event()

    def work(progress):
        with compilation.elsewhere():
            began.set()
            go_on.wait(60)
            time.sleep(0.3)

    job = Job("mend", work, lambda answer: None)
    assert began.wait(60)
    assert job.describe()["compiling"]
    go_on.set()
    assert job.wait(60)
    assert not job.describe()["compiling"]
    assert job.describe()["seconds"] < 0.3


def test_noise_is_told_in_the_photographs_own_scale(monkeypatch):
    asked = []
    monkeypatch.setattr(pt, "denoise", lambda pixels, sigma, progress: asked.append(sigma) or pixels)
    deep = Photograph(np.zeros((8, 8), np.uint16))
    mended(deep, None, print, "denoise", sigma=10)
    mended(deep, None, print, "denoise", sigma=None)
    assert asked == [2570, None]


def test_enlarging_keeps_transparency():
    photograph = Photograph(np.full((12, 14), 90, np.uint8), np.eye(12, 14, dtype=np.uint8) * 255)
    large = mended(photograph, None, lambda fraction: None, "super_resolve")
    assert large.shape == (24, 28)
    assert np.array_equal(large.alpha[::2, ::2], photograph.alpha)


def test_erased_holes_become_opaque_where_they_are_filled_in(monkeypatch):
    asked = []
    monkeypatch.setattr(pt, "inpaint", lambda pixels, mask, texture, progress: asked.append(texture) or pixels)
    photograph = Photograph(np.zeros((1, 4), np.uint8), np.array([[0, 0, 90, 255]], np.uint8))
    mask = np.array([[True, False, True, True]])
    for settings in ({}, {"texture": 0.8}):
        assert mended(photograph, mask, print, "inpaint", **settings).alpha.tolist() == [[255, 0, 90, 255]]
    assert asked == [0, 0.8]


def test_a_grey_photograph_marked_in_colour_is_filled_in_without_a_tint():
    y, x = np.mgrid[:40, :48]
    pixels = np.stack([60 + x + 2 * y] * 3, axis=-1).astype(np.uint8)
    pixels[10:14, 5:40] = 255, 0, 255
    mask = np.zeros((40, 48), bool)
    mask[10:14, 5:40] = True
    filled = mended(Photograph(pixels), mask, lambda fraction: None, "inpaint").pixels
    assert filled.shape == pixels.shape
    assert np.ptp(filled, axis=-1).max() == 0
    assert np.max(np.abs(filled[..., 0].astype(int) - (60 + x + 2 * y))) <= 2


def test_a_blur_that_does_not_fit_is_said_and_can_be_forced(recwarn):
    photograph = Photograph(np.rint(255 * pt.photographs("test")["camera"][100:228, 100:228]).astype(np.uint8))
    wish = {"task": "deblur", "blur": "motion", "length": 25, "angle": 30}
    with pytest.raises(ValueError, match=r"not seem to be the photograph's own: .*“Even if"):
        mended(photograph, None, lambda fraction: None, **wish)
    assert [str(one.message) for one in recwarn if issubclass(one.category, BlurMisfitWarning)] == []
    forced = mended(photograph, None, lambda fraction: None, **wish, force=True)
    assert not np.array_equal(forced.pixels, photograph.pixels)


@pytest.mark.parametrize(
    ("blur", "settings"), [("gaussian", {"width": 2.35}), ("motion", {"length": 12.34, "angle": 178.04})]
)
def test_estimates_become_settings(session, photograph, monkeypatch, blur, settings):
    shape = {"sigma": 2.346, "length": None, "angle": None}
    if blur == "motion":
        shape = {"sigma": None, "length": 12.34, "angle": 178.04}
    found = SimpleNamespace(**shape, confidence=0.9)
    monkeypatch.setattr(pt, "estimate_blur", lambda pixels, kind: found)
    session.open(photograph)
    session.estimate(blur)
    assert session.job.wait(10)
    assert session.describe()["estimate"] == settings
    found.confidence = 0.0
    session.estimate(blur)
    assert session.job.wait(10)
    assert "No blur of this kind" in session.job.error


def _distances(points):
    """From every pixel's centre to the nearest of many points along the line."""
    points = np.asarray(points, float).reshape(-1, 2)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]] + 0.5
    far = np.full(SHAPE, np.inf)
    for start, end in zip(points, points[1:] if len(points) > 1 else points, strict=False):
        for part in np.linspace(0, 1, 400):
            px, py = start + part * (end - start)
            far = np.minimum(far, np.hypot(x - px, y - py))
    return far


@given(st.lists(PLACES, min_size=2, max_size=8).filter(lambda p: len(p) % 2 == 0), st.floats(0.8, 12))
def test_a_stroke_is_all_within_its_radius(points, radius):
    mask = draw_mask([{"kind": "paint", "radius": radius, "points": points}], SHAPE, {})
    far = _distances(points)
    assert mask[far <= radius].all()
    assert not mask[far > radius + 0.15].any()


def test_long_strokes_at_full_size_are_exact():
    line = {"kind": "paint", "radius": 4.0, "points": [10.0, 10.0, 2990.0, 1990.0]}
    mask = draw_mask([line], (2000, 3000), {})
    assert mask.sum() == pytest.approx(8 * np.hypot(2980, 1980) + np.pi * 16, rel=1e-3)
    for place in ((5.0, 5.0), (5.5, 5.5), (5.25, 5.0)):  # the smallest dot marks a pixel wherever it is
        assert draw_mask([{"kind": "paint", "radius": 0.1, "points": place}], SHAPE, {}).any()


def test_steps_count_in_their_order():
    paint = {"kind": "paint", "radius": 3, "points": [10, 10, 30, 10]}
    erase = {"kind": "erase", "radius": 5, "points": [10, 10, 30, 10]}
    found = np.zeros(SHAPE, bool)
    found[20:22] = True
    use = {"kind": "found", "id": 7}
    assert draw_mask([paint, erase], SHAPE, {}).sum() == 0
    assert np.array_equal(draw_mask([erase, paint], SHAPE, {}), draw_mask([paint], SHAPE, {}))
    assert np.array_equal(draw_mask([paint, {"kind": "clear"}, use], SHAPE, {7: found}), found)
    both = draw_mask([use, {"kind": "erase", "radius": 50, "points": [0, 0]}], SHAPE, {7: found})
    assert 0 < both.sum() < found.sum()


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "found", "id": 3},
        {"kind": "sing"},
        {"kind": "paint", "radius": 3},
        {"kind": "paint", "radius": 3, "points": [1]},
        {"kind": "paint", "radius": 3, "points": [1, float("nan")]},
        {"kind": "paint", "radius": None, "points": [1, 1]},
        {"kind": "paint", "radius": 3, "points": "everywhere"},
    ],
)
def test_impossible_steps_are_refused(step):
    with pytest.raises(ValueError, match="reload the page"):
        draw_mask([step], SHAPE, {})
