"""The documentation's site in a real browser, opened from its files: clean, whole, and readable on a phone."""

import pytest

pytestmark = pytest.mark.slow

_BROKEN = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
_WIDE = "document.documentElement.scrollWidth"
_SEARCHED = """new Promise((done, failed) => {
  const input = document.querySelector(".md-search__input"), begin = Date.now()
  input.focus()
  const look = () => {
    const links = [...document.querySelectorAll(".md-search-result__link")].map(link => link.href)
    if (links.length) return done(links)
    if (Date.now() - begin > 20000) return failed(new Error("nothing found"))
    input.value = input.value === "duality" ? "dualit" : "duality"  // until the page listens
    input.dispatchEvent(new Event("input", {bubbles: true}))
    input.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}))
    setTimeout(look, 300)
  }
  look()
})"""


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
    before = browser.evaluate(covered)
    assert browser.slide(".slider input") == "55"
    assert browser.evaluate(covered) != before


def test_search_finds_pages_from_the_disk(browser, site):
    browser.open(site / "api" / "coding.html")
    browser.evaluate("document.querySelector('#__search').click()")
    links = browser.evaluate(_SEARCHED)
    assert any("guarantees.html" in link for link in links)
    assert browser.complaints() == []
