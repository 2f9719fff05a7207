"""The page of benchmarks says what the records say."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("benchmark_page", ROOT / "scripts" / "benchmark_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), ("SPORCO", "SPORCO"), (12, "12"), (12345.6, "12,346"), (0.01234, "0.0123"), (float("nan"), "–")],
)
def test_cells(maker, value, text):
    assert maker.cell(value) == text


def test_table_keeps_columns_together(maker):
    made = maker.table({"title": "T", "columns": ["case", "s"], "rows": [["a|b", 1.5]], "note": "N"}).splitlines()
    assert made[2:5] == ["| case | s |", "| --- | ---: |", "| a\\|b | 1.5 |"]
    assert made[-1] == "N"


def test_curves_go_from_left_to_right_and_down(maker):
    drawn = maker.curves(
        {"title": "T", "x": "s", "y": "excess", "curves": {"ours": [[0.1, 1.0, 10.0], [1.0, 0.1, 0.01]]}}
    )
    points = [tuple(map(float, pair.split(","))) for pair in drawn.split('points="')[1].split('"')[0].split()]
    assert points == [(70.0, 12.0), (385.0, 156.0), (700.0, 300.0)]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_make_a_page(maker, path):
    content = json.loads(path.read_text(encoding="utf-8"))
    page = maker.page([path])
    for experiment in content.get("experiments", {}).values():
        for table in experiment["tables"]:
            assert f"**{table['title']}**" in page
            assert all(f"| {maker.cell(row[0])} |" in page for row in table["rows"])


def test_there_are_records():
    assert RECORDS
