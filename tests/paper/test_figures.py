"""Tests of the experiments on a tiny scale: they run, and their verdicts follow from their numbers."""

import re
from importlib import import_module

import numpy as np
import pytest
from paper.judging import Judgement, Trajectory
from paper.plain import to_plain

from paper import figure1, figure2, figure4
from pointillist.plot.page import Compare, Picture, Table, Text


@pytest.mark.parametrize("name", ["figure1", "figure2", "figure3", "figure4", "figure5", "complexity"])
def test_every_figure_runs_on_photographs(lab, name):
    outcome = import_module(f"paper.{name}").run(lab)
    assert outcome.verdicts
    for verdict in outcome.verdicts:
        assert re.search(r"\d", verdict.because), verdict
        assert verdict.because.endswith(".")
    kinds = {type(block) for block in outcome.blocks}
    assert {Text, Table} <= kinds
    assert "nan" not in str(to_plain(vars(outcome))).lower()
    if name == "figure4":
        assert Compare in kinds
        assert any(isinstance(block, Picture) for block in outcome.blocks[1].blocks)


def _run(pace, objectives, trained=100.0, gap=0.1):
    clock = list(pace * np.arange(1, len(objectives) + 1))
    return figure1.Learned(clock, objectives, gap, trained, 50.0)


def test_verdicts_about_sampling_follow_the_numbers():
    def verdicts(tenth):
        admm = {p: _run(6.0 if p > 0.1 else tenth, [110.0, 101.0, 100.5, 100.4]) for p in figure1.FRACTIONS}
        learned = {figure1.ADMM: admm, figure1.OURS: admm}
        return figure1.speed_verdicts(learned, _run(3.0, [1.0]), 0.7)

    fast, slow = verdicts(1.0), verdicts(2.0)
    assert [one.holds for one in fast] == [True, True, True]
    assert [one.holds for one in slow] == [False, False, False]
    assert fast[0].ours.startswith("6.0 times")
    assert "0.70 s for any p" in slow[0].because


@pytest.mark.parametrize(
    ("trained", "last", "holds"),
    [
        ([100, 100, 101, 104, 110], [100, 100, 102, 105, 110], [True, True, True]),
        ([100, 100, 106, 104, 110], [120, 100, 102, 105, 110], [False, False, False]),
    ],
)
def test_verdicts_about_quality_follow_the_numbers(trained, last, holds):
    runs = {
        p: _run(1.0, [200.0, value * (1.0 if holds[-1] else 1.5), value, value], float(end))
        for p, value, end in zip(figure1.FRACTIONS, last, trained, strict=True)
    }
    enough, _, ordered, settled = figure1.quality_verdicts({figure1.ADMM: runs, figure1.OURS: runs})
    assert [enough.holds, ordered.holds, settled.holds] == holds


def test_the_papers_rows_are_met_by_the_paper_itself(lab, monkeypatch):
    lab.inputs.__dict__["folder"] = "a folder"
    rows = {**figure4.PAPER, figure4.PUBLISHED: figure4.PAPER["c"]}
    worse = {row: [value - 0.2 for value in values] for row, values in rows.items()}
    verdicts = figure4.row_verdicts(lab, rows, worse, rows["c"])
    assert [one.holds for one in verdicts] == [True, True, True, True, True, False]
    verdicts = figure4.row_verdicts(lab, worse, rows, rows["c"])
    assert [one.holds for one in verdicts] == [True, False, False, False, False, False], "the paper's protocol decides"


def test_verdicts_about_levels_and_speed_follow_the_numbers():
    ours, judged = (
        Trajectory("ours", [1.0, 2.0, 4.0], [1, 2, 3]),
        [Judgement(v, 0.0, [0.0], [1]) for v in (90.0, 80.0, 70.0)],
    )
    fast, slow, never = (
        figure2.level_verdict("they", spent, level, ours, judged) for spent, level in ((12, 80), (11, 80), (99, 60))
    )
    assert [one.holds for one in (fast, slow, never)] == [True, False, False]
    assert (fast.ours, never.ours) == ("6.0 times", "not reached")
    assert never.because.endswith("our defaults end at 70.")
    rival = Trajectory("they", [60.0], [10])
    assert figure4.patch_verdict(rival, Trajectory("ours", [10.0], [10]), 20).holds
    assert not figure4.patch_verdict(rival, Trajectory("ours", [10.1], [10]), 20).holds
    assert figure1.distance_in_words(0.031) == "at most 3.1 % above"
    assert figure1.distance_in_words(-0.2) == "at least 20.0 % below"
