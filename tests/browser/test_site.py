"""The documentation's site in a real browser, opened from its files: clean, whole, and readable on a phone."""

import pytest

pytestmark = pytest.mark.slow

_BROKEN = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
_BRIGHT = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every(n => n > 128)"
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


@pytest.mark.parametrize(
    "name",
    [
        *("index", "get-started", "tour", "how-it-works", "gpu", "reproduce", "gallery/inpaint", "api/learners"),
        *("benchmarks", "benchmarks/encoding", "benchmarks/growth", "benchmarks/photographs"),
    ],
)
@pytest.mark.parametrize(
    ("look", "width", "dark"), [("light", 1200, False), ("dark", 1200, True), ("phone", 390, False)]
)
def test_pages_fit_their_screen(browser, site, screenshots, name, look, width, dark):
    browser.open(site / f"{name}.html", width=width, dark=dark)
    assert browser.evaluate(_WIDE) <= width
    assert browser.evaluate(_BRIGHT) == (not dark)
    browser.screenshot(screenshots / f"site-{name.replace('/', '-')}-{look}.png")


_COVERED = "getComputedStyle(document.querySelectorAll('.slider img')[1]).clipPath"
_KNOB = "(k => [k.width, k.left])(getComputedStyle(document.querySelector('.slider'), '::after'))"


def test_the_first_pages_slider_follows_keys_mouse_and_fingers(browser, site):
    browser.open(site / "index.html")
    before = browser.evaluate(_COVERED)
    assert browser.slide(".slider input") == "55"
    assert browser.evaluate(_COVERED) != before
    width, left = browser.evaluate(_KNOB)
    assert width == "44px", "a knob to be seen and touched"
    x, y, w, h = browser.evaluate(
        "(r => [r.x, r.y, r.width, r.height])(document.querySelector('.slider').getBoundingClientRect())"
    )
    assert float(left[:-2]) == pytest.approx(0.55 * w, abs=1)
    browser.drag([(x + 0.55 * w, y + h / 2), (x + 0.4 * w, y + h / 2), (x + 0.2 * w, y + h / 2)])
    assert browser.evaluate("document.querySelector('.slider input').value") == "20"
    assert float(browser.evaluate(_KNOB)[1][:-2]) == pytest.approx(0.2 * w, abs=w / 100)
    browser.touch("touchStart", [(x + 0.7 * w, y + h / 2)])
    browser.touch("touchMove", [(x + 0.75 * w, y + h / 2)])
    browser.touch("touchEnd", [])
    assert browser.evaluate("document.querySelector('.slider input').value") in ("70", "75")
    assert browser.evaluate("document.activeElement === document.querySelector('.slider input')")


def test_search_finds_pages_from_the_disk(browser, site):
    browser.open(site / "api" / "coding.html")
    browser.evaluate("document.querySelector('#__search').click()")
    links = browser.evaluate(_SEARCHED)
    assert any("guarantees.html" in link for link in links)
    assert browser.complaints() == []
