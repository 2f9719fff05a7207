"""Learning from natural patches on a tiny stream: what is kept, what is searched, and what the record holds."""

import json

import pytest
from benchmarks.context import Context

from benchmarks import patches


@pytest.fixture
def context(tmp_path, sporco):
    return Context(tmp_path, quick=True)


def test_the_record_has_a_row_for_every_level(context, monkeypatch):
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    found = patches.run(context)
    searched, race = found.tables
    assert len(searched.rows) == 3
    assert [row[1] for row in race.rows] == [2, 5] * len(found.settings["the shipped photographs"]["sporco"])
    context.record("patches", found, patches.DATA, 1.0)
    record = json.loads((context.folder / "patches.json").read_text())
    assert record["experiments"]["patches"]["tables"][1]["columns"][-1] == "ratio, our best"
