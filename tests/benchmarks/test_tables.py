"""Tests of what benchmarks find, as values: tables that grow, charts, and records that the documentation reads."""

import json

import numpy as np
from benchmarks.context import Context
from benchmarks.tables import Table, chart
from paper.plain import from_plain


def test_records_are_read_back_as_blocks(tmp_path):
    table = Table("T", ["a"])
    table.add(np.float32(1.5))
    Context(tmp_path).write("found", [table], charts=[chart("T", "s", "dB", {"ours": (np.arange(2), [1, 2])})])
    record = json.loads((tmp_path / "found.json").read_text())
    assert from_plain(record["tables"][0]).rows == [[1.5]]
    assert from_plain(record["charts"][0]).curves[0].x == [0, 1]
    assert record["facts"]["versions"]["numpy"] == np.__version__
