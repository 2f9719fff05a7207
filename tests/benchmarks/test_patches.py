"""Learning from natural patches on a tiny stream: what is kept, what is searched, and what the record holds."""

import json

import numpy as np
import pytest
from benchmarks.context import Context
from paper.rivals import TUNED

from benchmarks import patches


@pytest.fixture
def context(tmp_path, sporco):
    return Context(tmp_path, quick=True)


def test_filters_are_kept_when_due_and_at_the_end(context):
    stream = patches.Stream.of(context)
    learned = patches.learn(stream, TUNED, lambda spent, seen: seen >= 3, due=lambda seen: seen == 1)
    assert learned.seen == [1, 3]
    assert learned.seconds[0] < learned.seconds[1]
    assert not np.array_equal(*learned.filters)
    assert learned.filters[0].shape == stream.start.shape


def test_a_setting_in_words():
    assert patches.words(TUNED) == "10 iterations, ρ = 50, η = 1 / (5 + t)"


def test_the_record_has_a_row_for_every_level(context, monkeypatch):
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    found = patches.run(context)
    searched, race = found.tables
    assert len(searched.rows) == 3
    assert [row[1] for row in race.rows] == [2, 5] * len(found.settings["the shipped photographs"]["sporco"])
    context.record("patches", found, patches.DATA, 1.0)
    record = json.loads((context.folder / "patches.json").read_text())
    assert record["experiments"]["patches"]["tables"][1]["columns"][-1] == "ratio, our best"
