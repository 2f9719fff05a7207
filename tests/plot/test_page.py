"""Tests of the page as markup: nothing from outside, everything escaped, every picture described."""

import re
from html.parser import HTMLParser

import pytest

from pointillist.plot.blocks import (
    Chart,
    Compare,
    Curve,
    Fact,
    Facts,
    NamedValues,
    Page,
    Picture,
    Section,
    SideBySide,
    Table,
    Text,
    Verdict,
    Verdicts,
)
from pointillist.plot.charts import chart_svg, describe
from pointillist.plot.page import Names, cell_text, draw, render_page, write_page

NASTY = '<script>alert("&")</script>'
PICTURE = Picture("data:image/png;base64,AA==", 3, 2, NASTY, NASTY)
CHART = Chart(NASTY, NASTY, NASTY, [Curve(NASTY, [1, 2], [3, 4]), Curve("b", [1, 2], [1, 2], "r1", "bars")], {NASTY: 2})
BLOCKS = [
    Text(NASTY),
    CHART,
    Table([NASTY, "b"], [[NASTY, 1], ["c", None]], NASTY, NASTY, [NASTY]),
    Compare(PICTURE, PICTURE, NASTY, NASTY),
    Facts([Fact(NASTY, NASTY, NASTY)]),
    NamedValues({NASTY: NASTY}),
    Verdicts([Verdict(NASTY, NASTY, NASTY, False, NASTY)]),
    SideBySide([PICTURE]),
]


class _Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.addresses = [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [v for k, v in attributes.items() if k in ("src", "href", "xlink:href")]


@pytest.fixture(scope="module")
def seen():
    page = Page(NASTY, NASTY, [Section(NASTY, BLOCKS), Section("folded", [CHART], folded=True)])
    parser = _Seen()
    parser.feed(render_page(page))
    return parser


def test_what_users_name_is_escaped(seen):
    assert [tag for tag, _ in seen.tags].count("script") == 1


def test_nothing_is_fetched(seen):
    assert seen.addresses
    assert all(address.startswith(("data:", "#")) for address in seen.addresses)


def test_ids_are_unique_and_links_lead_somewhere(seen):
    assert len(seen.ids) == len(set(seen.ids))
    assert all(address[1:] in seen.ids for address in seen.addresses if address.startswith("#"))


def test_pictures_and_charts_are_described(seen):
    images = [attributes for tag, attributes in seen.tags if tag == "img"]
    charts = [attributes for tag, attributes in seen.tags if tag == "svg" and attributes.get("class") != "key"]
    assert len(images) == 3
    assert len(charts) == 2
    assert all(one["alt"] for one in images)
    assert all(one["role"] == "img" and one["aria-label"] for one in charts)


def test_charts_leave_colours_and_fonts_to_the_page():
    svg = chart_svg(CHART, "b0")
    assert "var(--c0)" in svg
    assert "var(--r1)" in svg
    assert "DejaVu" not in svg
    colours = set(re.findall(r"#[0-9a-f]{6}\b", svg))
    assert not colours, colours


@pytest.mark.parametrize("style", ["dashed", "line"])
def test_curves_differ_without_their_colours_too(style):
    chart = Chart("", "x", "y", [Curve("a", [1, 2, 3], [1, 2, 3], f"c{i}", style) for i in range(8)])
    drawn = draw(chart, Names())
    keys = re.findall(r'<svg class="key".*?</svg>', drawn)
    assert len({re.sub(r"--c\d", "", key) for key in keys}) == 8
    if style == "dashed":
        assert len(set(re.findall(r"stroke-dasharray: ([^;]+);", drawn))) >= 8


def test_charts_in_words_and_refusals():
    assert describe(Chart("T", "s", "dB", [Curve("a", [1, 2], [30, 31.5])])) == (
        "T: dB against s. a: from 30 at 1 to 31.5 at 2."
    )
    with pytest.raises(ValueError, match="colour 'red'"):
        chart_svg(Chart("", "x", "y", [Curve("a", [1], [1], "red")]), "b0")


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "–"), ("a", "a"), (12345, "12,345"), (0.12345, "0.123"), (4995.4, "4,995"), (float("nan"), "–")],
)
def test_cells(cell, text):
    assert cell_text(cell) == text


def test_writes_one_file(tmp_path):
    write_page(Page("t", "s", [Section("a", [Text("b")])]), tmp_path / "p.html")
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]


@pytest.mark.parametrize("source", ['x" onerror="alert(1)', "javascript:alert(1)", "https://elsewhere/x.png"])
def test_a_picture_is_nothing_but_a_picture(source):
    with pytest.raises(ValueError, match="must be a PNG as a data URI"):
        Picture(source, 1, 1, "")


def test_a_dollar_sign_is_no_formula():
    assert r"$\nonsense" in chart_svg(Chart("", r"$\nonsense$", "y", [Curve("a", [1, 2], [1, 2])]), "a")
