"""A real browser, driven over its debugging pipe: no driver program and no further package is needed.

Tests skip where no Chromium or Chrome is installed. Screenshots go to the folder that POINTILLIST_SCREENSHOTS names, or to
pytest's own temporary folder.
"""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
)


class Browser:
    """One page of a headless browser, by the DevTools protocol."""

    def __init__(self, program, profile):
        commands, self._send = os.pipe()
        self._receive, answers = os.pipe()
        # The browser reads its commands from descriptor 3 and answers on descriptor 4.
        line = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._number, self._pending, self.events = 0, b"", []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send one command and wait for its answer; what happens meanwhile is kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._pending:
            part = os.read(self._receive, 1 << 20)
            if not part:
                raise RuntimeError("the browser closed its pipe")
            self._pending += part
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, width=1200, dark=False):
        """Load a file or an address and wait until it and its pictures are there."""
        self.events.clear()
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[feature])
        self.resize(width)
        self.call("Page.navigate", url=path if str(path).startswith("http") else Path(path).as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def wait(self, expression, seconds=120):
        """Wait until a JavaScript expression is true; what the page says in red ends it."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"{expression} did not come true within {seconds} s"
            time.sleep(0.05)

    def resize(self, width, height=900):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def evaluate(self, expression):
        """The value of a JavaScript expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def press(self, key, code, *, modifiers=0):
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=modifiers
            )

    def middle(self, selector):
        """Where on the screen the middle of an element is."""
        return self.evaluate(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('{selector}').getBoundingClientRect())"
        )

    def click(self, selector):
        """Press and release the mouse on an element, which must be in sight."""
        self.drag([self.middle(selector)])

    def drag(self, points):
        """Press the mouse at the first point of the screen, move it along the others, and release it at the last."""
        (x, y), (last_x, last_y) = points[0], points[-1]
        self._mouse("mouseMoved", x, y, "none")
        self._mouse("mousePressed", x, y)
        for x, y in points[1:]:
            self._mouse("mouseMoved", x, y)
        self._mouse("mouseReleased", last_x, last_y)

    def _mouse(self, kind, x, y, button="left"):
        held = int(kind != "mouseReleased" and button == "left")
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=held, clickCount=1)

    def touch(self, kind, points):
        """Send fingers: touchStart, touchMove or touchEnd, at those points of the screen."""
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])

    def choose(self, selector, path):
        """Give a file to a file input, as its dialogue would."""
        found = self.call("Runtime.evaluate", expression=f"document.querySelector('{selector}')")
        self.call("DOM.setFileInputFiles", files=[str(path)], objectId=found["result"]["objectId"])

    def slide(self, selector, steps=5):
        """Move a range input by the keyboard; its value then."""
        self.evaluate(f"document.querySelector('{selector}').focus()")
        for _ in range(steps):
            self.press("ArrowRight", 39)
        return self.evaluate(f"document.querySelector('{selector}').value")

    def complaints(self):
        """What the console would show in red or yellow: errors, warnings, exceptions, failed requests."""
        self.evaluate("0")  # whatever the page reported so far arrives before the answer
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            bad_log = method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning")
            bad_call = method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert")
            if bad_log or bad_call or method in ("Runtime.exceptionThrown", "Network.loadingFailed"):
                found.append(parameters)
        return found

    def requests(self):
        """Addresses that the page asked for, data URIs left out."""
        sent = [event["params"]["request"]["url"] for event in self.events if event.get("method") == _REQUEST]
        return [url for url in sent if not url.startswith("data:")]

    def screenshot(self, path):
        """The whole page as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self):
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._send)
        os.close(self._receive)


_REQUEST = "Network.requestWillBeSent"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None or shutil.which("bash") is None:
        pytest.skip("no chromium or chrome is installed: apt-get install chromium")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """Where screenshots go."""
    named = os.environ.get("POINTILLIST_SCREENSHOTS")
    if named is None:
        return tmp_path_factory.mktemp("screenshots")
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
