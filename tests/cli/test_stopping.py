"""Tests of stopping: a first signal keeps what was learned, a second one does not."""

import os
import signal
import subprocess
import sys

import pytest
from typer.core import TyperCommand

import pointillist as pt
from pointillist import load
from pointillist.cli.console import GracefulStop

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


@pytest.fixture(autouse=True)
def _signals_that_are_not_ignored():
    """Undo what nohup and shells do to commands in the background, whose children ignore some signals too."""
    numbers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in numbers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_saves_what_was_learned(images, tmp_path, name):
    output = tmp_path / "out.safetensors"
    options = ["--filters", "4", "--size", "5", "--jobs", "1", "--epochs", "100000"]
    command = [sys.executable, "-m", "pointillist.cli", "learn", str(images), "-o", str(output), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("step 1/"):
            break
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name), err
    assert "stopping after this step" in err
    assert "stopped early" in out
    model = load(output)
    assert model.extra_["stopped_early"]
    assert 1 <= len(model.history_) < 300000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "out.safetensors"]


@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_second_signal_interrupts(first):
    before = signal.getsignal(signal.SIGINT)
    with GracefulStop(announce=False) as stop:
        assert not stop({})
        os.kill(os.getpid(), getattr(signal, first))
        assert stop({})
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_on_the_way_out_does_not_hide_the_signal(images, tmp_path, monkeypatch, cli):
    """Removing a folder closes it twice when a signal comes between."""

    def closed_twice(**how):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(pt, "FilterUpdate", closed_twice)
    answer = cli("learn", images, "-o", tmp_path / "out.safetensors")
    assert (answer.code, answer.err) == (143, "error: interrupted\n")


def test_what_is_ignored_stays_ignored():
    """A run under nohup goes on when its terminal ends."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with GracefulStop(announce=False) as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop({})
    finally:
        signal.signal(signal.SIGHUP, before)


_HANGUP = """
import os, pty, signal, sys
from pointillist.cli.console import GracefulStop
ours, theirs = pty.openpty()
for stream in (1, 2):
    os.dup2(theirs, stream)
os.close(theirs)
os.close(ours)
with GracefulStop(announce=True) as stop:
    os.kill(os.getpid(), signal.SIGHUP)
    print("progress", file=sys.stderr, flush=True)
    os._exit(3 if stop.asked else 4)
"""


def test_a_terminal_that_is_gone_does_not_end_the_run():
    assert subprocess.run([sys.executable, "-c", _HANGUP]).returncode == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_options_are_read_is_not_lost(cli, model, images, tmp_path, monkeypatch, number):
    """pydantic, by which typer reads paths, swallowed the interruption and said "Exception ignored" instead."""
    swallowed = []

    def read(self, *given, **settings):
        try:
            os.kill(os.getpid(), number)
            return original(self, *given, **settings)
        except BaseException as error:
            swallowed.append(error)
            return None

    original = TyperCommand.parse_args
    monkeypatch.setattr(TyperCommand, "parse_args", read)
    answer = cli("encode", model, images, "-o", tmp_path / "codes")
    assert swallowed == []
    assert answer.code == 128 + number
    assert not (tmp_path / "codes").exists()
