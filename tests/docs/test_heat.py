"""Heat maps of the benchmarks say in colours, numbers and words what their records say."""

import re

import pytest
from benchmark_page import maps, record
from docs_heat import describe, heat, opacity, times

from pointillist.plot.page import new_names

MAP = {
    "title": "Lead <by> penalty",
    "x": "penalty λ",
    "columns": ["1", "0.1", "0.01"],
    "rows": ["to 0.1%", "certified"],
    "values": [[60.0, 12.4, 2.46], [16.0, None, 0.6]],
    "note": "A & B",
}


def test_cells_have_their_numbers_and_the_colour_of_whoever_is_ahead():
    drawn = heat(MAP, "h0")
    assert "\n" not in drawn
    assert [text for text in re.findall(r">([^<>]+)</text>", drawn) if text[-1] in "×–"] == [
        *("60×", "12×", "2.5×"),
        *("16×", "–", "0.6×"),
    ]
    cells = re.findall(r"fill: var\(--(c\d)\); opacity: ([\d.]+)", drawn)
    assert [colour for colour, _ in cells] == ["c0", "c0", "c0", "c0", "c1"]
    strengths = [float(strength) for _, strength in cells]
    assert strengths[0] > strengths[3] > strengths[1] > strengths[2]
    assert "Lead &lt;by&gt; penalty" in drawn
    assert "A &amp; B" in drawn


def test_strength_knows_no_side_and_has_an_end():
    assert opacity(1.0) < opacity(2.0) == pytest.approx(opacity(0.5))
    assert opacity(1e3) == opacity(100.0)


def test_words_for_those_who_cannot_see_it():
    assert describe(MAP).endswith("certified, by penalty λ: 16× at 1, none at 0.1, 0.6× at 0.01.")
    assert times(9.96) == "10×"


def test_maps_stand_on_the_page_of_their_record():
    experiment = {"tables": [], "charts": [], "maps": [MAP, MAP]}
    page = record({"experiments": {"map": experiment}}, new_names())
    assert page.count("<figure") == 2
    assert "## The map" in page
    labels = re.findall(r'id="(\w+)-', page)
    assert len(set(labels)) in (0, 2)
    assert maps([], new_names()) == ""
