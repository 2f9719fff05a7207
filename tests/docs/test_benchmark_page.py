"""The page of benchmarks says what the records say."""

import importlib.util
import json
from pathlib import Path

import pytest

from pointillist.report.blocks import Chart, Curve
from pointillist.report.page import Names, cell_text

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("benchmark_page", ROOT / "scripts" / "benchmark_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_keeps_columns_together(maker):
    made = maker.table({"title": "T", "columns": ["case", "s"], "rows": [["a|b", 1.5]], "note": "N"}).splitlines()
    assert made[2:5] == ["| case | s |", "| --- | ---: |", "| a\\|b | 1.5 |"]
    assert made[-1] == "N"


def test_charts_are_drawn_in_one_line_with_their_legend(maker):
    curves = [
        Curve("ours", [0.1, 1.0, 10.0], [1.0, 0.1, 0.01]),
        Curve("SPORCO", [1.0, 9.0], [1.0, 0.5], "c1", "dashed"),
    ]
    drawn = maker.chart(Chart("T", "s", "excess", curves, log_x=True, log_y=True), Names())
    assert drawn.count("\n") == 1
    assert "ours: from 1 at 0.1 to 0.01 at 10." in drawn
    assert "var(--c1)" in drawn
    assert '<i class="dashed" style="--c: var(--c1)"></i>SPORCO' in drawn


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_make_a_page(maker, path):
    content = json.loads(path.read_text(encoding="utf-8"))
    page = maker.page([path])
    for experiment in content.get("experiments", {}).values():
        for table in experiment["tables"]:
            assert f"**{table['title']}**" in page
            assert all(f"| {cell_text(row[0])} |" in page for row in table["rows"])
        assert all(f'aria-label="{chart["title"]}: ' in page for chart in experiment["charts"])


def test_there_are_records():
    assert RECORDS
