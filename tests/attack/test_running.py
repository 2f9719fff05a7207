"""Tests of the runner: what it counts, how it goes on, and that nothing which an attempt does ends it."""

import os
import signal
import time

import attack.__main__ as command
import pytest
from attack.base import Finding
from attack.running import Runner, Wanted
from attack.state import State


class Planted:
    """An attack that does what is planted for a seed."""

    name = "planted"
    about = "does what it is told"
    patience = 0.3

    def __init__(self, **deeds):
        self.deeds = {int(seed[1:]): deed for seed, deed in deeds.items()}

    def attempt(self, seed, folder):
        assert not list(folder.iterdir())
        (folder / "file").write_text(f"of {seed}")
        return self.deeds.get(seed, lambda *given: [])(seed, folder)


def find(seed, folder):
    return [Finding("planted", seed, "bits", "they differ", "a detail", (folder / "file",))]


def hang(seed, folder):
    time.sleep(60)


def crash(seed, folder):
    os.kill(os.getpid(), signal.SIGSEGV)


def raise_error(seed, folder):
    raise KeyError("planted")


def run(attacks, folder, **wanted):
    state = State(folder)
    Runner({one.name: one for one in attacks}, state, Wanted(jobs=2, **wanted)).run()
    return state


def test_findings_are_kept_with_what_reproduces_them(tmp_path):
    state = run([Planted(s3=find)], tmp_path, count=5)
    assert state.tally("planted").attempts == 5
    assert state.tally("planted").kinds() == {"bits": 1}
    kept = tmp_path / "findings" / "planted-3"
    assert (kept / "file").read_text() == "of 3"
    assert "--only planted --seed 3 --count 1" in (kept / "finding.txt").read_text()


@pytest.mark.parametrize(
    ("deed", "kind", "words"),
    [(hang, "hang", "longer than 0.3 s"), (crash, "crash", "SIGSEGV"), (raise_error, "unnamed error", "KeyError")],
)
def test_attempts_that_end_badly_are_findings_and_the_run_goes_on(tmp_path, deed, kind, words):
    state = run([Planted(s1=deed)], tmp_path, count=4)
    tally = state.tally("planted")
    assert tally.attempts == 4
    assert tally.kinds() == {kind: 1}
    assert words in tally.findings["1"][0]
    detail = (tmp_path / "findings" / "planted-1" / "finding.txt").read_text()
    assert deed.__name__ in detail  # where it happened


def test_a_seed_repeats_its_attempt(tmp_path):
    run([Planted(s2=find)], tmp_path, count=3)
    assert State(tmp_path).tally("planted").kinds() == {"bits": 1}
    state = run([Planted()], tmp_path, count=1, seed=2)  # mended
    assert state.tally("planted").attempts == 3
    assert not State(tmp_path).tally("planted").findings
    assert run([Planted()], tmp_path, count=2, seed=100).tally("planted").ranges == [[0, 3], [100, 102]]


def test_the_exit_code_and_the_table_say_what_was_found(tmp_path, monkeypatch, capsys):
    missing = Planted()
    missing.missing = "nobody has it"
    monkeypatch.setattr(command, "every_attack", lambda: {"planted": Planted(s1=find), "other": missing})
    assert command.main(["--count", "1", "--output", str(tmp_path)]) == 0
    assert "other is skipped: nobody has it" in capsys.readouterr().out
    assert command.main(["--count", "1", "--output", str(tmp_path), "--only", "planted"]) == 1
    last = capsys.readouterr().out.splitlines()[-2].split()
    assert last[:2] + last[3:5] == ["planted", "2", "1", "bits"]
    with pytest.raises(SystemExit, match="there is no attack 'x'"):
        command.main(["--only", "x"])
