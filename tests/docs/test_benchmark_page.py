"""The page of benchmarks says what the records say."""

import json
import re
from pathlib import Path

import benchmark_page
import pytest
from docs_heat import describe, heat

from pointillist.plot.page import cell_text

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
RECORDS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_make_a_page_whose_curves_can_be_told_apart(path):
    page = benchmark_page.show(path.stem)
    sheet = (FOLDER.parent / "assets" / "site.css").read_text(encoding="utf-8")
    for experiment in json.loads(path.read_text(encoding="utf-8")).get("experiments", {}).values():
        for table in experiment["tables"]:
            assert f"**{table['title']}**" in page
            assert all(f"| {cell_text(row[0])} |" in page for row in table["rows"])
        for chart in experiment["charts"]:
            assert f'aria-label="{chart["title"][:1].upper() + chart["title"][1:]}: ' in page
            assert all(chart[axis] for axis in "xy")
            colours = [curve["colour"] for curve in chart["curves"]]
            assert len(set(colours)) == len(colours), chart["title"]
            assert all(sheet.count(f"--{colour}: #") == 2 for colour in colours), "a colour for light and one for dark"


def test_every_record_is_on_one_page():
    pages = [page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.md"))]
    shown = [name for page in pages for name in re.findall(r"<!-- insert: benchmarks (\S+) -->", page)]
    assert len(shown) == len(set(shown))
    assert {name.partition(".")[0] for name in shown} == {path.stem for path in RECORDS}
    for path in RECORDS:
        experiments = json.loads(path.read_text(encoding="utf-8")).get("experiments", {})
        parts = {name.partition(".")[2] for name in shown if name.startswith(f"{path.stem}.")}
        assert not parts or parts == set(experiments)


def test_headlines_are_looked_up():
    assert len(benchmark_page.headlines().splitlines()[2:]) == len(benchmark_page.HEADLINES)
    with pytest.raises(ValueError, match="no table"):
        benchmark_page.cell(benchmark_page.HEADLINES[0]._replace(table="no such"), "ours", "ms")


def test_maps_say_in_colours_numbers_and_words_who_is_ahead():
    values = {"columns": ["1", "0.1", "0.01"], "rows": ["certified"], "values": [[16.0, None, 0.6]]}
    drawn = heat({"title": "Lead <by> penalty", "x": "penalty λ", "note": "", **values}, "h0")
    assert re.findall(r">([^<>]+[×–])</text>", drawn) == ["16×", "0.6×"]
    assert re.findall(r"fill: var\(--(c\d)\)", drawn) == ["c0", "c1"]
    assert "Lead &lt;by&gt; penalty" in drawn
    assert describe({"title": "", "x": "λ", **values}).endswith("certified, by λ: 16× at 1, none at 0.1, 0.6× at 0.01.")
