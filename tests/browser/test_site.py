"""The documentation's site in a real browser, opened from its files: clean, whole, and readable on a phone."""

import pytest

pytestmark = pytest.mark.slow

_BROKEN = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
_WIDE = "document.documentElement.scrollWidth"


def test_every_page_opens_without_a_complaint(browser, site):
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 20
    for page in pages:
        browser.open(page)
        assert browser.complaints() == [], page.name
        assert browser.evaluate(_BROKEN) == [], page.name
        assert all(url.startswith(("file:", "blob:")) for url in browser.requests()), page.name


@pytest.mark.parametrize("name", ["index", "get-started", "how-it-works", "benchmarks", "gpu", "reproduce"])
@pytest.mark.parametrize(
    ("look", "width", "dark"), [("light", 1200, False), ("dark", 1200, True), ("phone", 390, False)]
)
def test_pages_fit_their_screen(browser, site, screenshots, name, look, width, dark):
    browser.open(site / f"{name}.html", width=width, dark=dark)
    assert browser.evaluate(_WIDE) <= width
    browser.screenshot(screenshots / f"site-{name}-{look}.png")


def test_the_first_pages_slider_follows_keys(browser, site):
    browser.open(site / "index.html")
    covered = "getComputedStyle(document.querySelectorAll('.slider img')[1]).clipPath"
    browser.evaluate("document.querySelector('.slider input').focus()")
    before = browser.evaluate(covered)
    for _ in range(5):
        browser.press("ArrowRight", 39)
    assert browser.evaluate("document.querySelector('.slider input').value") == "55"
    assert browser.evaluate(covered) != before
