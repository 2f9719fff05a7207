"""Tests of the progress over pictures: silent when asked for, lines without a terminal, bars after a second on one."""

import io
import time

import pytest
from rich.console import Console

from pointillist.cli import console, progress
from pointillist.kernels import compiling


@pytest.fixture
def screen(monkeypatch):
    """What is shown on a terminal."""
    stream = io.StringIO()
    for module in (progress, console):
        monkeypatch.setattr(
            module, "err", lambda: Console(file=stream, force_terminal=True, highlight=False, markup=False, width=100)
        )
    return stream


def test_quiet_shows_nothing(screen):
    with progress.picture_progress("denoise", 2, quiet=True) as shown:
        shown.begin("a.png")
        shown.share(0.5)
        shown.end()
    assert screen.getvalue() == ""


def test_lines_come_every_few_seconds_with_the_time_left(screen, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress, "working_time", lambda: now[0])
    with progress.picture_progress("denoise", 1, quiet=False) as shown:
        shown.begin("[a].png")
        for seconds, part in ((1, 0.1), (6, 0.25), (7, 0.3), (12, 0.5)):
            now[0] = 100 + seconds
            shown.share(part)
        shown.end()
    assert screen.getvalue().splitlines() == ["[a].png: 25 %, about 18 s left", "[a].png: 50 %, about 12 s left"]


@pytest.mark.parametrize(("seconds", "told"), [(0.2, ""), (2, ", about 6 s left")])
def test_steps_tell_the_time_left_where_there_is_enough_to_judge_by(screen, monkeypatch, seconds, told):
    now = [100.0]
    monkeypatch.setattr(progress, "working_time", lambda: now[0])
    with progress.learning_progress(4, quiet=False) as report:
        for step in (1, 2, 3, 4):
            now[0] += seconds
            report({"iteration": step, "objective": 8.0, "nnz": 5})
    first, *_, last = screen.getvalue().splitlines()
    assert first == "step 1/4: objective 8, 5 non-zeros" + told
    assert last == "step 4/4: objective 8, 5 non-zeros"


def _bars(monkeypatch, total, delay):
    monkeypatch.setattr(progress, "is_live", lambda: True)
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_BAR", delay)
    with progress.picture_progress("denoise", total, quiet=False) as shown:
        for name in [f"{i}.png" for i in range(total)]:
            shown.begin(name)
            shown.share(0.5)
            if delay < 1:
                time.sleep(0.3)
            shown.end()


def test_bars_show_the_picture_and_all_of_them(screen, monkeypatch):
    _bars(monkeypatch, 2, 0.01)
    for words in ("denoise 2 pictures", "0.png", "1.png", "50%", "left"):
        assert words in screen.getvalue()


def test_one_picture_has_one_bar(screen, monkeypatch):
    _bars(monkeypatch, 1, 0.01)
    assert "0.png" in screen.getvalue()
    assert "pictures" not in screen.getvalue()


def test_nothing_is_shown_of_what_takes_less_than_a_second(screen, monkeypatch):
    _bars(monkeypatch, 2, 60.0)
    assert "png" not in screen.getvalue()


def _compile(kernels):
    """Tell that so many kernels are compiled, without compiling any."""
    for number in range(kernels):
        for watcher in compiling.compilation.watchers:
            watcher(number)


def test_a_line_says_once_that_kernels_are_compiled(screen):
    with progress.learning_progress(2, quiet=False) as report:
        _compile(3)
        report({"iteration": 1, "objective": 5.0, "nnz": 7})
        _compile(3)
    assert screen.getvalue().splitlines()[0] == "compiling kernels, once on this machine: some seconds"
    assert screen.getvalue().count("compiling") == 1


def test_a_process_that_compiles_nothing_does_not_speak_of_it(screen):
    with progress.learning_progress(2, quiet=False) as report:
        report({"iteration": 1, "objective": 5.0, "nnz": 7})
    assert screen.getvalue().startswith("step 1/2")
    assert "compiling" not in screen.getvalue()


def test_quiet_is_quiet_about_compilation(screen):
    with progress.learning_progress(2, quiet=True), progress.picture_progress("denoise", 2, quiet=True):
        _compile(3)
    assert screen.getvalue() == ""
    assert not compiling.compilation.watchers


def test_kernels_that_are_compiled_have_a_bar(screen, monkeypatch):
    monkeypatch.setattr(progress, "is_live", lambda: True)
    with progress.learning_progress(2, quiet=False) as report:
        _compile(20)
        report({"iteration": 1, "objective": 5.0, "nnz": 7})
        _compile(1)
    assert "compiling kernels, once on this machine" in screen.getvalue()
    assert not compiling.compilation.watchers
