"""Tests of ``python -m paper``: its arguments, its exit codes and what it says; the experiments have tests of their own."""

import pytest
from paper.__main__ import main
from paper.lab import Outcome

from paper import report
from pointillist.plot.page import Text, Verdict


class Module:
    """An experiment that takes no time."""

    def __init__(self, name):
        self.name = name.rpartition(".")[2]

    def run(self, lab):
        return Outcome(
            self.name, [Verdict("A claim", "2 times", "3 times", True, "3 is more than 2.")], [Text("words")]
        )


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(report, "import_module", Module)


def test_all_figures_and_what_is_said(capsys, tmp_path):
    assert main(["--quick", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.count("A claim") == 6
    assert f"wrote {tmp_path / 'report.html'}" in said.out
    assert "fig2:" in said.err
    page = (tmp_path / "report.html").read_text()
    assert main(["--from", str(tmp_path / "results.json"), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "report.html").read_text() == page


def test_ctrl_c_keeps_what_is_finished(capsys, tmp_path, monkeypatch):
    class Interrupted(Module):
        def run(self, lab):
            if self.name == "figure2":
                raise KeyboardInterrupt
            return super().run(lab)

    monkeypatch.setattr(report, "import_module", Interrupted)
    assert main(["fig1", "fig2", "--quick", "-o", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig9"], "got 'fig9'"),
        (["--from", "results.json", "--quick"], "only draws"),
        (["--data", "nowhere"], "holds no fruit_normalised.npz"),
        (["--from", "nowhere.json"], "nowhere.json"),
    ],
)
def test_refusals(capsys, tmp_path, arguments, words):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "-o", str(tmp_path)])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
