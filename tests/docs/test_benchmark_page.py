"""The page of benchmarks says what the records say."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import cell_text, new_names

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
    drawn = maker.side_by_side([Chart("t", "s", "excess", curves, log_x=True, log_y=True)], new_names())
    assert drawn.count("\n") == 1
    assert "ours: from 1 at 0.1 to 0.01 at 10." in drawn
    assert "T: excess against seconds." in drawn
    assert ">seconds</text>" in drawn
    keys = dict(re.findall(r"<li>(<svg class=\"key\".*?</svg>)(.*?)</li>", drawn))
    assert list(keys.values()) == ["ours", "SPORCO"]
    assert "stroke-dasharray" in list(keys)[1]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_curves_of_one_chart_differ_and_axes_have_titles(maker, path):
    content = json.loads(path.read_text(encoding="utf-8"))
    sheet = (ROOT / "docs" / "assets" / "site.css").read_text(encoding="utf-8")
    for experiment in content.get("experiments", {}).values():
        for chart in experiment["charts"]:
            colours = [curve["colour"] for curve in chart["curves"]]
            assert len(set(colours)) == len(colours), chart["title"]
            assert all(sheet.count(f"--{colour}: #") == 2 for colour in colours), "a colour for light and one for dark"
            assert chart["x"]
            assert chart["y"]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_make_a_page(maker, path):
    content = json.loads(path.read_text(encoding="utf-8"))
    page = maker.show(path.stem)
    for experiment in content.get("experiments", {}).values():
        for table in experiment["tables"]:
            assert f"**{table['title']}**" in page
            assert all(f"| {cell_text(row[0])} |" in page for row in table["rows"])
        titles = [chart["title"][:1].upper() + chart["title"][1:] for chart in experiment["charts"]]
        assert all(f'aria-label="{title}: ' in page for title in titles)


def test_every_record_is_on_one_page():
    pages = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "benchmarks").glob("*.md"))]
    shown = [name for page in pages for name in re.findall(r"<!-- insert: benchmarks (\S+) -->", page)]
    assert len(shown) == len(set(shown))
    named = {name.partition(".")[0] for name in shown}
    assert named == {path.stem for path in RECORDS}
    for path in RECORDS:
        experiments = json.loads(path.read_text(encoding="utf-8")).get("experiments", {})
        parts = {name.partition(".")[2] for name in shown if name.startswith(f"{path.stem}.")}
        assert not parts or parts == set(experiments)


def test_headlines_are_looked_up(maker):
    rows = maker.headlines().splitlines()[2:]
    assert len(rows) == len(maker.HEADLINES)
    assert "| **10.6 ms** | 997 ms | 93.7 times as fast |" in rows[0]
    assert "| 27.7 dB | **29.2 dB** | -1.5 dB |" in rows[-1]
    with pytest.raises(ValueError, match="no table"):
        maker.cell(maker.HEADLINES[0]._replace(table="no such"), "ours", "ms")


def test_maps_stand_below_the_tables_of_a_plain_record(maker):
    table = {"title": "T", "columns": ["case"], "rows": [["a"]]}
    drawn = {"title": "Lead", "x": "λ", "columns": ["1"], "rows": ["ours"], "values": [[3.0]], "note": ""}
    made = maker.record({"title": "On a GPU", "tables": [table], "maps": [drawn]}, new_names())
    assert made.index("**T**") < made.index('<div class="heat"')
    assert "heat" not in maker.record({"title": "On a GPU", "tables": [table]}, new_names())
