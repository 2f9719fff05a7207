"""The site builds without warnings, loads nothing from elsewhere and sets its mathematics."""

import re
from html.parser import HTMLParser

import pytest
from tests.public import public_names

_LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}


class Loads(HTMLParser):
    """Addresses that a browser fetches by itself, and ids, on one page."""

    def __init__(self, page):
        super().__init__()
        self.addresses, self.ids = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id"))
        if tag in _LOADING and values.get("rel") not in ("canonical", "prev", "next"):
            self.addresses.append(values.get(_LOADING[tag]) or "")


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        for address in Loads(page.read_text(encoding="utf-8")).addresses:
            assert not re.match(r"(https?:)?//", address), f"{page.name} loads {address}"
            if page.name != "404.html" and not address.startswith(("data:", "/")):
                assert (page.parent / address.split("?")[0].split("#")[0]).exists(), (
                    f"{page.name}: {address} is missing"
                )
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


@pytest.mark.slow
def test_mathematics_and_inserts_are_set(site):
    how = (site / "how-it-works.html").read_text(encoding="utf-8")
    assert how.count("<math") > 20
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "arithmatex" not in text, page.name
        assert "<!-- insert" not in text, page.name
    assert ">seconds</text>" in (site / "benchmarks" / "encoding.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_public_name_has_its_place_in_the_reference(site):
    anchors = set()
    for page in (site / "api").glob("*.html"):
        anchors |= Loads(page.read_text(encoding="utf-8")).ids
    assert set(public_names()) <= {anchor.rpartition(".")[2] for anchor in anchors}
