"""The runner: what it counts and keeps, and that nothing which an attempt does ends it."""

import os
import signal
import time

import attack.__main__ as command
import pytest
from attack.base import Finding


class Planted:
    """An attack that does for seed 1 what is planted."""

    name = "planted"
    about = "does what it is told"
    patience = 0.3

    def __init__(self, deed):
        self.deed = deed

    def attempt(self, seed, folder):
        assert not list(folder.iterdir())
        (folder / "file").write_text(f"of {seed}")
        return self.deed(seed, folder) if seed == 1 else []


def find(seed, folder):
    return [Finding("planted", seed, "bits", "they differ", "a detail", (folder / "file",))]


def hang(seed, folder):
    time.sleep(60)


def crash(seed, folder):
    os.kill(os.getpid(), signal.SIGSEGV)


def raise_error(seed, folder):
    raise KeyError("planted")


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (find, ["bits", "--only planted --seed 1 --count 1"]),
        (hang, ["hang", "longer than 0.3 s"]),
        (crash, ["crash", "SIGSEGV"]),
        (raise_error, ["unnamed error", "KeyError"]),
    ],
)
def test_findings_are_counted_and_kept_and_the_run_goes_on(tmp_path, monkeypatch, capsys, deed, words):
    monkeypatch.setattr(command, "every_attack", lambda: {"planted": Planted(deed)})
    assert command.main(["--count", "4", "--jobs", "2", "--output", str(tmp_path)]) == 1
    row = capsys.readouterr().out.splitlines()[-2]
    assert row.split()[:2] == ["planted", "4"]
    assert words[0] in row
    kept = (tmp_path / "findings" / "planted-1" / "finding.txt").read_text()
    assert [word for word in words if word not in kept] == []
    assert deed is not find or (tmp_path / "findings" / "planted-1" / "file").read_text() == "of 1"
