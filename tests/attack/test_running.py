"""Tests of the runner: what it counts, how it goes on, and that nothing which an attempt does ends it."""

import json
import os
import signal
import time
from collections import Counter

import attack.__main__ as command
import pytest
from attack.base import Finding
from attack.running import Runner, Wanted
from attack.state import State, Tally


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


def flood(seed, folder):
    return [] if len(bytearray(2**31)) < 0 else find(seed, folder)


def run(attacks, folder, **wanted):
    state = State(folder)
    Runner({one.name: one for one in attacks}, state, Wanted(jobs=2, **wanted)).run()
    return state


def test_what_attempts_did_is_counted_over_all_of_them(tmp_path):
    planted = Planted()
    planted.done = Counter()

    def count(seed, folder):
        planted.done["kills"] += seed
        return []

    planted.deeds = dict.fromkeys(range(5), count)
    for most in (3, 2):
        state = run([planted], tmp_path, count=most)
        state.write()
    assert state.tally("planted").done == {"kills": 10}
    assert "5 (10 kills)" in command.table({"planted": planted}, state)


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


def test_memory_is_limited(tmp_path):
    planted = Planted(s0=flood)
    planted.memory = 2**30
    assert "MemoryError" in run([planted], tmp_path, count=1).tally("planted").findings["0"][0]


def test_a_run_goes_on_behind_what_was_tried(tmp_path):
    run([Planted()], tmp_path, count=3)
    state = run([Planted(s4=find)], tmp_path, count=3)
    assert state.tally("planted").ranges == [[0, 6]]
    assert list(state.tally("planted").findings) == ["4"]


def test_a_seed_repeats_its_attempt(tmp_path):
    run([Planted(s2=find)], tmp_path, count=3)
    assert State(tmp_path).tally("planted").kinds() == {"bits": 1}
    state = run([Planted()], tmp_path, count=1, seed=2)  # mended
    assert state.tally("planted").attempts == 3
    assert not State(tmp_path).tally("planted").findings
    assert run([Planted()], tmp_path, count=2, seed=100).tally("planted").ranges == [[0, 3], [100, 102]]


def test_time_is_spread_over_attacks(tmp_path):
    slow, quick = Planted(), Planted()
    slow.name, slow.attempt = "slow", lambda seed, folder: time.sleep(0.05) or []
    state = run([slow, quick], tmp_path, seconds=0.5)
    assert state.tally("slow").attempts > 1
    assert state.tally("planted").attempts > state.tally("slow").attempts


def test_ctrl_c_keeps_what_was_done(tmp_path, monkeypatch):
    def interrupted(self, outcome, folder, take=Runner.take_outcome):
        take(self, outcome, folder)
        if self.state.tally("planted").attempts == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "take_outcome", interrupted)
    monkeypatch.setattr(command, "every_attack", lambda: {"planted": Planted()})
    assert command.main(["--count", "9", "--output", str(tmp_path)]) == 130
    assert Tally(**json.loads((tmp_path / "state.json").read_text())["planted"]).attempts == 2


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


def test_every_attack_is_found_and_says_what_it_does():
    attacks = command.every_attack()
    assert "files" in attacks
    assert all(one.about and name == one.name for name, one in attacks.items())
