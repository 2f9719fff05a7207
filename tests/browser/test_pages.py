"""The reports in a real browser: nothing red in the console, all pictures there, sliders and colours that work."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from pointillist import OnlineCSC, contrast_normalise, photographs
from pointillist.plot import Example, write_learning_report, write_page
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Compare, Page, Section, SideBySide, Table, Text, Verdict, Verdicts
from pointillist.plot.pictures import image_picture, mosaic_picture


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page about a small run, and one with every other kind of block."""
    folder = tmp_path_factory.mktemp("pages")
    picture = contrast_normalise(photographs("test")["camera"])[80:176, 60:180]
    model = OnlineCSC(12, 5, 1.0, n_epochs=4, random_state=0)
    model.fit([picture[:48], picture[48:]], validation=[picture])
    examples = [Example("camera.jpg", picture, held_out=True), Example("half", picture[:48])]
    write_learning_report(folder / "learning.html", model, examples)
    write_page(_claims(picture, model.filters_), folder / "claims.html")
    return folder


def _claims(picture, filters):
    ours = Curve("ours", [1, 2, 4], [3.0, 2.0, 1.5], "c0")
    theirs = Curve("theirs", [1, 2, 4], [4.0, 3.5, 3.2], "c1", "dashed")
    chart = Chart("Objective", "seconds", "objective", [ours, theirs], {"level": 2.5}, log_x=True)
    shown = image_picture(picture, "a picture", limits=(-2, 2))
    verdicts = [
        Verdict(f"A claim that holds: {is_so}", "2 times", "3.1 times", is_so, "of it.") for is_so in (True, False)
    ]
    table = Table(["", *"0123456789"], [["a row with a long name", *[f"{29 + i}.00" for i in range(10)]]])
    pictures = SideBySide([mosaic_picture(filters), Compare(shown, shown, "One")])
    blocks = [Verdicts(verdicts), Text("Words."), SideBySide([chart, chart]), table, pictures]
    return Page(
        "Claims", "Every kind of block.", [Section("All", [Verdicts(verdicts, brief=True)]), Section("One", blocks)]
    )


NAMES = ("learning.html", "claims.html")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("look", "width", "dark"), [("light", 1200, False), ("dark", 1200, True), ("phone", 390, False)]
)
def test_loads_clean_and_fits(browser, pages, screenshots, name, look, width, dark):
    browser.open(pages / name, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [(pages / name).as_uri()]
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert browser.evaluate("document.images.length") >= 3
    assert browser.evaluate(broken) == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    file = screenshots / f"{name.removesuffix('.html')}-{look}.png"
    browser.screenshot(file)
    pixels = np.asarray(Image.open(file).convert("L"), float)
    assert pixels.shape[1] == width
    paper = np.median(pixels)
    assert paper < 80 if dark else paper > 200


def test_the_slider_follows_keys_and_says_where_it_is(browser, pages):
    browser.open(pages / "learning.html")
    covered = "getComputedStyle(document.querySelector('.before')).clipPath"
    before = browser.evaluate(covered)
    assert browser.slide(".stage input") == "55"
    assert browser.evaluate(covered) != before
    assert "45%" in browser.evaluate(covered)
    assert browser.evaluate("document.querySelector('.stage input').ariaValueText") == "55 % original"
    browser.press("Home", 36)
    assert "100%" in browser.evaluate(covered)


def test_the_toggle_switches_colours(browser, pages):
    browser.open(pages / "learning.html")
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.chart svg text')).fill"
    light = browser.evaluate(paper), browser.evaluate(ink)
    browser.evaluate("document.querySelector('.toggle').click()")
    dark = browser.evaluate(paper), browser.evaluate(ink)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    assert browser.evaluate("document.querySelector('.toggle').getAttribute('aria-pressed')") == "true"
    browser.evaluate("document.querySelector('.toggle').click()")
    assert (browser.evaluate(paper), browser.evaluate(ink)) == light


_CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = value => value <= 10.31 ? value / 3294.6 : ((value / 255 + .055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = rgba(getComputedStyle(element).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const contrast = element => {
    const style = getComputedStyle(element);
    const front = luminance(rgba(element.closest("svg") ? style.fill : style.color));
    const back = luminance(behind(element));
    return (Math.max(front, back) + .05) / (Math.min(front, back) + .05);
  };
  return [...document.querySelectorAll("p, h1, h2, h3, li, dt, dd, th, td, figcaption, a, button, .mark, svg text")]
    .filter(element => element.textContent.trim() && !element.closest(".stage"))
    .map(element => [contrast(element), element.tagName + " " + element.textContent.slice(0, 30)])
    .sort((a, b) => a[0] - b[0])[0];
})()"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_text_stands_out_enough(browser, pages, name, dark):
    browser.open(pages / name, dark=dark)
    ratio, where = browser.evaluate(_CONTRASTS)
    assert 4.5 <= ratio < 21, where  # WCAG AA for text of any size; black on white would be 21


def test_everything_can_be_named_by_a_screen_reader(browser, pages):
    browser.open(pages / "claims.html")
    nameless = (
        "[...document.querySelectorAll('input, button, img, svg:not([aria-hidden])')]"
        ".filter(e => !(e.ariaLabel || e.alt || e.textContent.trim())).length"
    )
    assert browser.evaluate(nameless) == 0
    levels = browser.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_prints_open_and_light(browser, pages):
    browser.open(pages / "claims.html", dark=True)
    assert browser.pdf().startswith(b"%PDF")
    assert browser.complaints() == []
