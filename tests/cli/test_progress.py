"""Tests of the progress: silent when asked for, lines without a terminal, a bar on one."""

import io

import pytest

from pointillist.cli import console
from pointillist.kernels import compiling


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still until it is set."""
    time = [100.0]
    monkeypatch.setattr(compiling, "working_time", lambda: time[0])
    return time


def test_quiet_shows_nothing(capsys, now):
    with console.Progress("mending", 2, quiet=True) as shown:
        now[0] += 10
        shown.show(0.5, "a.png")
    assert capsys.readouterr() == ("", "")


def test_lines_come_every_few_seconds_with_the_time_left(capsys, now):
    with console.Progress("encoding", 1, quiet=False) as shown:
        for seconds, part in ((1, 0.1), (6, 0.25), (7, 0.3), (12, 0.5)):
            now[0] = 100 + seconds
            shown.show(part, "[a].png")
    assert capsys.readouterr().err.splitlines() == ["25 %: [a].png, about 18 s left", "50 %: [a].png, about 12 s left"]


@pytest.mark.parametrize(("seconds", "told"), [(0.2, ""), (2, ", about 6 s left")])
@pytest.mark.parametrize("before", [0, 10])
def test_steps_tell_the_time_left_where_there_is_enough_to_judge_by(capsys, now, seconds, told, before):
    """A run that is resumed begins in the middle."""
    with console.Progress("learning", before + 4, quiet=False, unit="step") as shown:
        for step in (1, 2, 3, 4):
            now[0] += seconds
            shown.show(before + step, "objective 8")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == f"step {before + 1}/{before + 4}: objective 8{told}"
    assert last == f"step {before + 4}/{before + 4}: objective 8"


def test_a_terminal_has_a_bar(monkeypatch, now):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with console.Progress("denoise", 2, quiet=False) as shown:
        shown.show(1.5, "0.png\x1b[2J")
    assert "denoise" in stream.getvalue()
    assert "0.png" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()


def test_compiling_is_said_once(capsys):
    with console.Progress("learning", 1, quiet=False):
        for kernels in (1, 2):
            for watcher in compiling.compilation.watchers:
                watcher(kernels)
    assert capsys.readouterr().err == "compiling kernels, once on this machine: some seconds\n"
