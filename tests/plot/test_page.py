"""Tests of the page as markup: nothing from outside, everything escaped, every picture described."""

import re
from html.parser import HTMLParser

import pytest

from pointillist.plot.figures import Chart, Curve, describe
from pointillist.plot.page import (
    Compare,
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
    render_page,
    svg,
)

NASTY = '<script>alert("&")</script>'
PICTURE = Picture("data:image/png;base64,AA==", 3, 2, NASTY, NASTY)
CHART = Chart(NASTY, NASTY, NASTY, [Curve(NASTY, [1, 2], [3, 4]), Curve("b", [1, 2], [1, 2], "c1", "bars")], {NASTY: 2})
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
    page = Page(NASTY, NASTY, [Section(NASTY, BLOCKS), Section("more", [CHART])])
    parser = _Seen()
    parser.feed(render_page(page))
    return parser


def test_all_is_escaped_fetches_nothing_and_leads_somewhere(seen):
    assert [tag for tag, _ in seen.tags].count("script") == 1
    assert all(address.startswith(("data:", "#")) for address in seen.addresses)
    assert len(seen.ids) == len(set(seen.ids))
    links = [address[1:] for address in seen.addresses if address.startswith("#")]
    assert links
    assert set(links) <= set(seen.ids)


def test_pictures_and_charts_are_described(seen):
    images = [attributes for tag, attributes in seen.tags if tag == "img"]
    charts = [attributes for tag, attributes in seen.tags if tag == "svg" and attributes.get("class") != "key"]
    assert (len(images), len(charts)) == (3, 2)
    assert all(one["alt"] for one in images)
    assert all(one["role"] == "img" and one["aria-label"] for one in charts)
    words = describe(Chart("T", "s", "dB", [Curve("a", [1, 2], [30, 31.5])]))
    assert words == "T: dB against s. a: from 30 at 1 to 31.5 at 2."


def test_charts_leave_colours_and_fonts_to_the_page():
    drawn = svg(CHART, "1-b")
    assert "var(--c0)" in drawn
    assert "var(--c1)" in drawn
    assert "DejaVu" not in drawn
    assert not re.findall(r"#[0-9a-f]{6}\b", drawn)
    assert r"$\nonsense" in svg(Chart("", r"$\nonsense$", "y", [Curve("a", [1, 2], [1, 2])]), "a")  # no formula
