"""Tests of ``pointillist reproduce`` as a command; its experiments are tested with their package."""

import pytest

from pointillist.plot.blocks import Text, Verdict
from pointillist.reproduce import running
from pointillist.reproduce.lab import Outcome


@pytest.fixture
def asked(monkeypatch):
    """Figures that were run, by an experiment that takes no time."""
    names = []

    class Module:
        def __init__(self, name):
            self.name = name.rpartition(".")[2]

        def run(self, lab):
            names.append(self.name)
            verdict = Verdict("A claim", "2 times", "3 times", True, "3 is more than 2.")
            return Outcome(self.name, [verdict], [Text("words")])

    monkeypatch.setattr(running, "import_module", Module)
    return names


def test_all_figures_and_what_is_said(cli, tmp_path, asked):
    answer = cli("reproduce", "--quick", "-o", tmp_path / "report")
    assert answer.code == 0, answer.err
    assert asked == ["figure1", "figure2", "figure3", "figure4", "figure5", "complexity"]
    assert "A claim" in answer.out
    assert f"wrote {tmp_path / 'report' / 'report.html'}" in answer.out
    assert "fig2:" in answer.err


@pytest.mark.parametrize("busy", [True, False])
def test_the_terminal_says_what_the_page_says_each_once(cli, tmp_path, asked, monkeypatch, busy):
    known = running.facts()
    monkeypatch.setattr(running, "facts", lambda packages: {**known, "load": [9.0] * 3 if busy else [], "threads": 2})
    rival = running.rival_words()
    ran = cli("reproduce", "fig1", "--quick", "-o", tmp_path)
    drawn = cli("reproduce", "--from", tmp_path / "results.json", "-o", tmp_path / "again")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    said = {"This is the small scale": True, "The machine was busy with other work": busy, f"to beat is {rival}": True}
    for words, wanted in said.items():
        assert page.count(words) == wanted
        for answer in (ran, drawn):
            assert answer.code == 0, answer.err
            assert (answer.out + answer.err).count(words) == wanted


def test_chosen_figures_and_redrawing(cli, tmp_path, asked):
    assert cli("reproduce", "fig3", "complexity", "--quick", "-o", tmp_path, "-q").code == 0
    assert asked == ["figure3", "complexity"]
    again = cli("reproduce", "--from", tmp_path / "results.json", "-o", tmp_path / "again")
    assert again.code == 0, again.err
    assert asked == ["figure3", "complexity"]
    assert (tmp_path / "again" / "report.html").read_text() == (tmp_path / "report.html").read_text()


def test_ctrl_c_keeps_what_is_finished(cli, tmp_path, asked, monkeypatch):
    make = running.import_module

    class Interrupted:
        def run(self, lab):
            raise KeyboardInterrupt

    monkeypatch.setattr(
        running, "import_module", lambda name: Interrupted() if name.endswith("figure2") else make(name)
    )
    answer = cli("reproduce", "fig1", "fig2", "--quick", "-o", tmp_path)
    assert answer.code == 130
    assert "the same command goes on" in answer.err
    monkeypatch.setattr(running, "import_module", make)
    assert cli("reproduce", "fig1", "fig2", "--quick", "-o", tmp_path, "-q").code == 0
    assert asked == ["figure1", "figure2"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig9"], "got 'fig9'"),
        (["--from", "results.json", "--quick"], "only draws"),
        (["--data", "nowhere"], "holds no fruit_normalised.npz"),
        (["--from", "nowhere.json"], "nowhere.json"),
    ],
)
def test_refusals(cli, tmp_path, arguments, words):
    answer = cli("reproduce", *arguments, "-o", tmp_path)
    assert answer.code == 2
    assert words in answer.err
