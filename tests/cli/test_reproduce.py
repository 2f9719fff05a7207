"""Tests of ``pointillist reproduce`` as a command; its experiments are tested with their package."""

import pytest

from pointillist.report.blocks import Text, Verdict
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


def test_chosen_figures_and_redrawing(cli, tmp_path, asked):
    assert cli("reproduce", "fig3", "complexity", "--quick", "-o", tmp_path, "-q").code == 0
    assert asked == ["figure3", "complexity"]
    again = cli("reproduce", "--from", tmp_path / "results.json", "-o", tmp_path / "again")
    assert again.code == 0, again.err
    assert asked == ["figure3", "complexity"]
    assert (tmp_path / "again" / "report.html").read_text() == (tmp_path / "report.html").read_text()


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
