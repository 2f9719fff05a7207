"""Sessions remember, name and keep files; their jobs run, report, fail and stop."""

import threading
import time

import numpy as np
import pytest
from PIL import Image

import pointillist as pt
from pointillist.cli.mending import OWN
from pointillist.kernels.compiling import compilation
from pointillist.retouch import tasks
from pointillist.retouch.marks import KEYS, parse_colour
from pointillist.retouch.session import COLOURS, KEPT, Job


def test_results_are_named_as_on_the_command_line():
    assert set(tasks.NAMES.values()) <= set(OWN)


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


def test_the_folder_is_private(session):
    assert session.folder.stat().st_mode & 0o077 == 0


def test_masks_that_were_found_long_ago_are_forgotten(session, photograph, monkeypatch):
    monkeypatch.setattr(pt, "find_damage", lambda pixels, kind, **options: pixels[..., 0] > 100)
    session.open(photograph)
    for _ in range(10):
        session.find()
        assert session.job.wait(10)
    assert len(session.describe()["found"]) == KEPT


def test_marks_that_a_photograph_comes_with_are_found_and_stay(session, marked, monkeypatch):
    monkeypatch.setattr(pt, "find_damage", lambda pixels, kind, **options: pixels[..., 0] > 100)
    session.open(marked)
    assert session.job.wait(10)
    number = session.describe()["marks"]["id"]
    assert session.describe()["marks"]["colour"] == "magenta"
    for _ in range(10):
        session.find()
        assert session.job.wait(10)
    found = session.describe()["found"]
    assert len(found) == KEPT + 1
    assert found[str(number)] >= 120


def test_the_next_photograph_has_no_marks_of_the_one_before(session, marked, photograph):
    session.open(marked)
    assert session.job.wait(10)
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


@pytest.mark.parametrize(("kind", "asked"), [("damage", ("dust", "scratches")), ("text", ("text",))])
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


def test_the_answer_is_kept():
    job, kept = _run(lambda progress: 7)
    assert (job.state, kept, job.describe()["fraction"]) == ("done", [7], 1.0)


def test_a_sentence_for_what_goes_wrong():
    def work(progress):
        raise ValueError("the picture\n is  too small")

    job, kept = _run(work)
    assert (job.state, job.error, kept) == ("failed", "the picture is too small", [])


def test_what_nobody_expected_is_said_and_logged(caplog):
    def work(progress):
        raise RuntimeError("oh")

    job, _ = _run(work)
    assert job.state == "failed"
    assert "RuntimeError: oh" in job.error
    assert "mend failed" in caplog.text


def test_cancelling_stops_at_the_next_report_and_keeps_nothing():
    begun, kept = threading.Event(), []

    def work(progress):
        while True:
            progress(0.1)
            begun.set()
            time.sleep(0.001)

    job = Job("mend", work, kept.append)
    assert begun.wait(10)
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


def test_the_time_left_follows_from_what_is_done():
    go, half = threading.Event(), threading.Event()

    def work(progress):
        progress(0.8)
        progress(0.5)  # never goes back
        half.set()
        go.wait(10)

    job = Job("mend", work, print)
    assert half.wait(10)
    time.sleep(1.2)
    told = job.describe()
    assert told["fraction"] == 0.8
    assert abs(told["left"] - told["seconds"] / 4) < 0.1
    go.set()
    assert job.wait(10)
    assert job.describe()["left"] is None


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
