"""The page of ``pointillist app`` in a real browser: a scratch is painted over, mended, compared and downloaded."""

import base64
import io
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import pointillist as pt

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.slow

WIDTH, HEIGHT = 352, 235
MAKE = 271


@pytest.fixture(scope="module")
def truth():
    return np.rint(255 * pt.photographs("test", grey=False)["coffee"]).astype(np.uint8)


@pytest.fixture(scope="module")
def scratch():
    """Ends of a scratch from the saucer over the cup's edge and rim into the coffee, and the pixels that it hides."""
    start, end = (60.0, 112.0), (160.0, 86.0)
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    across, down = np.subtract(end, start)
    along = np.clip(((x - start[0]) * across + (y - start[1]) * down) / (across**2 + down**2), 0, 1)
    far = np.hypot(x - start[0] - along * across, y - start[1] - along * down)
    return start, end, far <= 1.5


@pytest.fixture(scope="module")
def photograph(tmp_path_factory, truth, scratch):
    """A PNG with a white scratch and EXIF."""
    pixels = truth.copy()
    pixels[scratch[2]] = 255
    exif = Image.Exif()
    exif[MAKE] = "A camera"
    path = tmp_path_factory.mktemp("app") / "coffee cup.png"
    Image.fromarray(pixels).save(path, exif=exif, dpi=(300, 300))
    return path


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A running `pointillist app`; afterwards it ends by Ctrl-C, in good order."""
    folder = tmp_path_factory.mktemp("temporary")
    process = subprocess.Popen(
        [sys.executable, "-m", "pointillist.cli", "app", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    line = process.stdout.readline().split()
    assert line[:1] == ["open"], process.stderr.read()
    yield line[1]
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; nothing was left behind" in told
    assert "Traceback" not in told
    assert list(folder.iterdir()) == []


@pytest.fixture
def page(browser, address):
    """The page as somebody finds it who opens the address."""

    def opened(*, width=1200, dark=False):
        browser.open(address, width=width, dark=dark)
        browser.wait("document.body.dataset.mode !== 'loading' && location.search === ''")
        return browser

    yield opened
    assert [url for url in browser.requests() if urlsplit(url).netloc != urlsplit(address).netloc] == []


@pytest.fixture(scope="module")
def marked(tmp_path_factory, truth, scratch):
    """A JPEG whose scratch was marked in magenta."""
    pixels = truth.copy()
    pixels[scratch[2]] = 255, 0, 255
    path = tmp_path_factory.mktemp("app") / "marked.jpg"
    Image.fromarray(pixels).save(path, quality=92)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory, truth):
    """Noisy PNGs of 3 megapixels for two tasks, one of them half under magenta stripes: work for many seconds."""
    noise = np.random.default_rng(0).normal(0, 12, (1500, 2000, 3))
    pixels = np.clip(np.tile(truth, (7, 6, 1))[:1500, :2000] + noise, 0, 255).astype(np.uint8)
    striped = pixels.copy()
    striped[:, np.arange(2000) % 24 < 12] = 255, 0, 255
    folder = tmp_path_factory.mktemp("app")
    for task, content in {"denoise": pixels, "inpaint": striped}.items():
        Image.fromarray(content).save(folder / f"{task}.png", compress_level=1)
    return folder


def _upload(browser, path):
    before = browser.evaluate("document.body.dataset.version ?? 'none'")
    browser.choose("#file", path)
    browser.wait(f"(document.body.dataset.version ?? 'none') !== '{before}' && document.body.dataset.mode === 'edit'")


def _on_screen(browser, points):
    """Points of the photograph on the screen, by where the page says it lies: fitted, in the middle."""
    x, y, w, h = browser.evaluate("(r => [r.x, r.y, r.width, r.height])(canvas.getBoundingClientRect())")
    scale = min((w - 32) / WIDTH, (h - 32) / HEIGHT)
    left, top = x + (w - scale * WIDTH) / 2, y + (h - scale * HEIGHT) / 2
    return [(left + scale * px, top + scale * py) for px, py in points]


def _paint(browser, start, end, steps=24):
    points = [tuple(np.add(start, np.subtract(end, start) * i / steps)) for i in range(steps + 1)]
    browser.drag(_on_screen(browser, points))


def _mend(browser):
    browser.click("#mend")
    browser.wait("document.body.dataset.mode === 'result' || !document.getElementById('message').hidden", 240)
    assert browser.evaluate("document.getElementById('message').hidden"), _message(browser)


def _mended(browser, photograph, scratch):
    _upload(browser, photograph)
    _paint(browser, *scratch[:2])
    _mend(browser)


def _message(browser):
    return browser.evaluate("document.getElementById('message').innerText")


def _download(browser):
    """What the download button gives: headers and the file."""
    got = browser.evaluate(
        """(async () => {
          const response = await fetch(document.getElementById("download").href);
          const bytes = new Uint8Array(await response.arrayBuffer());
          let text = "";
          for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
          return [response.headers.get("content-disposition"), btoa(text)];
        })()"""
    )
    return got[0], base64.b64decode(got[1])


def test_a_scratch_is_painted_over_mended_and_downloaded(page, photograph, truth, scratch, screenshots):
    browser = page()
    assert browser.evaluate("document.body.dataset.mode") == "empty"
    browser.screenshot(screenshots / "app-empty.png")
    _upload(browser, photograph)
    start, end, hidden = scratch
    _paint(browser, start, end)
    assert browser.evaluate("document.getElementById('painted').textContent").startswith("1 stroke")
    browser.screenshot(screenshots / "app-painted.png")
    _mend(browser)
    browser.screenshot(screenshots / "app-result.png")

    told, content = _download(browser)
    assert "coffee%20cup-inpainted.png" in told
    mended = Image.open(io.BytesIO(content))
    assert mended.format == "PNG"
    assert mended.size == (WIDTH, HEIGHT)
    assert mended.getexif()[MAKE] == "A camera"
    assert mended.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
    pixels = np.asarray(mended).astype(int)
    difference = np.abs(pixels - truth)
    assert np.mean(difference[hidden]) < 8
    assert np.mean(np.abs(255 - truth.astype(int))[hidden]) > 60
    y, x = np.nonzero(difference.any(axis=-1))
    across, down = np.subtract(end, start) / np.hypot(*np.subtract(end, start))
    away = np.abs((x + 0.5 - start[0]) * down - (y + 0.5 - start[1]) * across)
    assert np.max(away) <= 4.5  # the brush was 6 pixels wide: nothing outside of it has changed
    assert browser.complaints() == []


def test_the_knob_moves_by_mouse_and_keys(page, photograph, scratch):
    _mended(page(), photograph, scratch)
    browser = page()
    browser.wait("document.body.dataset.mode === 'result'")  # the server remembers
    browser.wait("document.getElementById('divider').getBoundingClientRect().x > 100")
    x, y = browser.middle("#divider i")
    at = "+document.getElementById('divider').getAttribute('aria-valuenow')"
    assert browser.evaluate(at) == 50
    browser.drag([(x, y), (x - 60, y), (x - 150, y)])
    assert browser.evaluate(at) < 40
    assert browser.middle("#divider i")[0] == pytest.approx(x - 150, abs=1.5)
    browser.press("End", 35)
    assert browser.evaluate(at) == 100
    browser.press("Home", 36)
    browser.press("ArrowRight", 39)
    assert browser.evaluate(at) == 2
    browser.click("#zoom-in")
    browser.wait("document.getElementById('zoom-value').textContent !== ''")
    browser.click("#zoom-fit")
    assert browser.complaints() == []
    browser.click("#adopt")  # going on from a result begins with nothing painted
    browser.wait("document.title.startsWith('coffee cup-inpainted.png') && document.body.dataset.mode === 'edit'")
    assert browser.evaluate("document.getElementById('painted').textContent") == "Nothing is painted yet."


def test_undoing_and_the_eraser(page, photograph):
    browser = page()
    _upload(browser, photograph)
    painted = "document.getElementById('painted').textContent"
    _paint(browser, (60, 40), (120, 40))
    browser.press("e", 69)
    _paint(browser, (60, 40), (120, 40))
    assert browser.evaluate(painted).startswith("2 strokes")
    browser.press("z", 90, modifiers=2)
    assert browser.evaluate(painted).startswith("1 stroke.")
    browser.press("z", 90, modifiers=2 + 8)
    assert browser.evaluate(painted).startswith("2 strokes")
    size = "parseInt(document.getElementById('size-value').textContent)"
    before = browser.evaluate(size)
    browser.press("]", 221)
    assert browser.evaluate(size) > before
    # All that was painted was erased again, and a little more: there is nothing to fill in.
    _paint(browser, (58, 40), (122, 40))
    browser.click("#mend")
    browser.wait("!document.getElementById('message').hidden")
    assert "Nothing is painted yet" in _message(browser)
    browser.click("#clear")
    assert browser.evaluate(painted) == "Nothing is painted yet."
    browser.evaluate("canvas.focus()")
    for key, code in [("ArrowRight", 39), (" ", 32), ("ArrowRight", 39), ("ArrowDown", 40), (" ", 32)]:
        browser.press(key, code)
    assert browser.evaluate(painted).startswith("1 stroke"), "keys paint too"


def test_fingers_paint_and_pinch(page, photograph):
    browser = page(width=390)
    _upload(browser, photograph)
    zoom = "parseInt(document.getElementById('zoom-value').textContent)"
    before = browser.evaluate(zoom)
    x, y = browser.middle("#canvas")
    browser.touch("touchStart", [(x - 40, y)])
    browser.touch("touchMove", [(x, y)])
    browser.touch("touchMove", [(x + 30, y + 10)])
    browser.touch("touchEnd", [])
    assert browser.evaluate("document.getElementById('painted').textContent").startswith("1 stroke")
    browser.touch("touchStart", [(x - 20, y), (x + 20, y)])
    browser.touch("touchMove", [(x - 40, y), (x + 40, y)])
    browser.touch("touchMove", [(x - 60, y), (x + 60, y)])
    browser.touch("touchEnd", [])
    assert browser.evaluate(zoom) > 2 * before
    assert browser.evaluate("document.getElementById('painted').textContent").startswith("1 stroke")


def test_a_scratch_is_found_and_mended(page, photograph, truth, scratch, screenshots):
    browser = page()
    _upload(browser, photograph)
    painted, quiet = "document.getElementById('painted').textContent", "document.getElementById('message').hidden"
    browser.click("#find")
    browser.wait(f"document.body.dataset.mode === 'edit' && /^Found/.test({painted}) || !{quiet}")
    assert browser.evaluate(quiet), _message(browser)
    browser.screenshot(screenshots / "app-found.png")
    _mend(browser)
    mended = np.asarray(Image.open(io.BytesIO(_download(browser)[1]))).astype(int)
    assert np.mean(np.abs(mended - truth)[scratch[2]]) < 12
    assert np.mean(np.any(mended != truth, axis=-1)) < 0.02
    assert browser.complaints() == []


def test_finding_again_replaces_what_was_found_before(page, photograph):
    browser = page()
    _upload(browser, photograph)
    painted = "document.getElementById('painted').textContent"
    for sensitivity in (0.9, 0.1):
        before = browser.evaluate(painted)
        browser.evaluate(f"document.getElementById('sensitivity').value = {sensitivity}")
        browser.click("#find")
        browser.wait(f"/^Found/.test({painted}) && {painted} !== '{before}'")
    browser.press("z", 90, modifiers=2)
    assert browser.evaluate(painted) == "Nothing is painted yet."


def test_marks_in_magenta_are_found_corrected_and_filled_in(page, marked, truth, scratch, screenshots):
    browser = page()
    _upload(browser, marked)
    browser.wait("document.getElementById('painted').textContent.startsWith('Marks in magenta were found')")
    browser.screenshot(screenshots / "app-marks.png")
    browser.press("e", 69)
    _paint(browser, (5, 5), (5, 60))  # the eraser, where nothing is marked
    browser.evaluate("document.getElementById('grain').value = 0")
    _mend(browser)
    told, content = _download(browser)
    assert "marked-inpainted.jpg" in told
    assert np.mean(np.abs(np.asarray(Image.open(io.BytesIO(content))).astype(int) - truth)[scratch[2]]) < 11
    browser.click("#discard")
    browser.wait("document.body.dataset.mode === 'edit'")
    browser.click("#clear")
    browser.click("#mend")
    browser.wait("!document.getElementById('message').hidden")
    assert "Nothing is painted yet" in _message(browser)


@pytest.mark.parametrize("task", ["inpaint", "denoise"])
def test_the_bar_moves_and_cancel_ends_the_work(page, large, screenshots, task):
    browser = page()
    _upload(browser, large / f"{task}.png")
    told = "document.getElementById('painted').textContent"
    browser.wait(f"{told}.startsWith('{'Marks in magenta' if task == 'inpaint' else 'Nothing'}')")
    painted = browser.evaluate(told)
    browser.click(f"input[value={task}]")
    browser.click("#mend")
    browser.wait("document.body.dataset.mode === 'busy' && document.getElementById('progress').value > 0")
    browser.screenshot(screenshots / f"app-busy-{task}.png")
    browser.click("#cancel")
    browser.wait("document.body.dataset.mode !== 'busy'")
    assert browser.evaluate("document.body.dataset.mode") == "edit"
    assert browser.evaluate("document.getElementById('message').hidden"), _message(browser)
    state = browser.evaluate("fetch('state').then(answer => answer.json())")
    assert state["job"]["state"] == "cancelled"
    assert 0 < state["job"]["fraction"] < 1
    assert state["result"] is None
    assert browser.evaluate(told) == painted
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("look", "width", "dark"), [("light", 1200, False), ("dark", 1200, True), ("phone", 390, False)]
)
def test_fits_its_screen(page, photograph, scratch, screenshots, look, width, dark):
    browser = page(width=width, dark=dark)
    _upload(browser, photograph)
    _paint(browser, *scratch[:2])
    browser.screenshot(screenshots / f"app-{look}.png")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    nameless = (
        "[...document.querySelectorAll('input, button, a, canvas, progress, [role=slider]')].filter("
        "e => !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim()"
        " || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML)"
    )
    assert browser.evaluate(nameless) == []
    assert browser.complaints() == []
