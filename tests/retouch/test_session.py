"""What a session remembers, and how it names and keeps files."""

import pytest

from pointillist.cli.mending import OWN
from pointillist.retouch import session as module


def test_results_are_named_as_on_the_command_line():
    assert set(module._NAMES.values()) <= set(OWN)


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
    monkeypatch.setattr(module.tasks, "find", lambda pixels, sensitivity, progress: pixels[..., 0] > 100)
    session.open(photograph)
    for _ in range(10):
        session.find()
        assert session.worker.job.wait(10)
    assert len(session.describe()["found"]) == module._KEPT


def test_marks_that_a_photograph_comes_with_are_found_and_stay(session, marked, monkeypatch):
    monkeypatch.setattr(module.tasks, "find", lambda pixels, sensitivity, progress: pixels[..., 0] > 100)
    session.open(marked)
    assert session.worker.job.wait(10)
    number = session.describe()["marks"]["id"]
    assert session.describe()["marks"]["colour"] == "magenta"
    for _ in range(10):
        session.find()
        assert session.worker.job.wait(10)
    found = session.describe()["found"]
    assert len(found) == module._KEPT + 1
    assert found[str(number)] >= 120


def test_the_next_photograph_has_no_marks_of_the_one_before(session, marked, photograph):
    session.open(marked)
    assert session.worker.job.wait(10)
    session.open(photograph)
    assert session.describe()["marks"] is None
    assert session.describe()["found"] == {}
