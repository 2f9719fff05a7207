"""Odd calls: everything public has usual values, seeds repeat, and planted faults are found."""

import warnings

import numpy as np
import pytest
from attack.surface import Target

from attack import calls, surface, usual


def test_what_is_left_out_is_still_there():
    found = {target.name for target in surface.targets()} | set(surface.UNTOUCHED)
    everything = {one.name for name, value in surface.exported(True) for one in surface.of(name, value)}
    assert found == everything


@pytest.mark.parametrize("target", surface.targets(recordings=False), ids=lambda target: target.name)
def test_usual_calls_are_answered(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls.call(target, usual.usual(target))


def _writes(signals):
    signals[0] = 3


def _warns(signals):
    return np.float64(1e300) * 1e300


def _unnamed(signals):
    raise ValueError("could not convert string to float: 'odd'")


def _named(signals):
    raise ValueError("signals must be numbers")


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (_writes, ["input changed"]), (_warns, ["warning"]), (_unnamed, ["unnamed error"]), (_named, []),
    ],
)  # fmt: skip
def test_planted_faults_are_found(function, kinds, tmp_path):
    found = calls.judged(0, tmp_path, Target("planted", function), {"signals": np.ones(3)})
    assert [finding.kind for finding in found] == kinds
