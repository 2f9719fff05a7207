"""Tests of the experiments on a tiny scale: they run, and their verdicts follow from their numbers."""

import re
from importlib import import_module

import numpy as np
import pytest
from paper.plain import to_plain

from paper import figure1, figure4
from pointillist.plot.page import Table, Text


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


def test_the_papers_rows_are_met_by_the_paper_itself(lab, monkeypatch):
    lab.inputs.__dict__["folder"] = "a folder"
    rows = {**figure4.PAPER, figure4.PUBLISHED: figure4.PAPER["c"]}
    worse = {row: [value - 0.2 for value in values] for row, values in rows.items()}
    verdicts = figure4.row_verdicts(lab, rows, worse, rows["c"])
    assert [one.holds for one in verdicts] == [True, True, True, True, True, False]
    verdicts = figure4.row_verdicts(lab, worse, rows, rows["c"])
    assert [one.holds for one in verdicts] == [True, False, False, False, False, False], "the paper's protocol decides"
