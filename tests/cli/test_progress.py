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
    assert capsys.readouterr().err.splitlines() == ["25 %: [a].png, about 25 s left", "50 %: [a].png, about 14 s left"]


@pytest.mark.parametrize("before", [0, 10])
def test_steps_tell_the_time_left_after_the_first(capsys, now, before):
    """A run that is resumed begins in the middle, and the first step may take many times as long as others."""
    with console.Progress("learning", before + 4, quiet=False, unit="step") as shown:
        for step, seconds in enumerate((60, 6, 6, 6), 1):
            now[0] += seconds
            shown.show(before + step, "objective 8")
    left = ("", ", about 12 s left", ", about 6 s left", "")
    expected = [f"step {before + step}/{before + 4}: objective 8{words}" for step, words in enumerate(left, 1)]
    assert capsys.readouterr().err.splitlines() == expected


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
