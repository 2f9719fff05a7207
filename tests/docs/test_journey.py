"""The architecture page: the recorded ways of an image, and that the page names what there is."""

import re
from pathlib import Path

import pytest

pytest.importorskip("grimp", reason="grimp is not installed: pip install -e '.[docs]'")
import docs_journey
import journey

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
COMMANDS = list(journey.COMMANDS)
CALLBACKS = {
    ("data", "cli"),
    ("data", "learners"),
    ("learners", "cli"),
    ("model", "dictionary"),
    ("model", "solvers"),
    ("restore", "cli"),
    ("solvers", "restore"),
}
"""Packages whose modules call functions that a higher package handed to them."""


def _section(command):
    return re.search(rf"^## [^\n]*`{command}`\n(.*?)(?=^## )", PAGE, re.M | re.S)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_module_is_passed_once_and_below_its_caller(command):
    names = [station.name for station in docs_journey.stations(command)]
    assert len(names) == len(set(names)) > 20
    assert set(names) >= {
        name.removeprefix("pointillist.") for call in journey.recorded()[command] for name in call.stack
    }
    for place, station in enumerate(docs_journey.stations(command)):
        assert place == 0 or station.parent in names[:place]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_modules_that_the_image_passes(command):
    """What a section says in backticks with a dot between two names is a module on the way, but for one alternative."""
    passed = {station.name for station in docs_journey.stations(command)} | {"restore.finding"}
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", _section(command))) - {"marked.png", "photo.png"}
    assert len(named) >= 6
    assert named <= passed


@pytest.mark.parametrize("command", COMMANDS)
def test_calls_go_down_but_for_callbacks(command):
    up = {(call.caller.split(".")[1], call.callee.split(".")[1]) for call in docs_journey.callbacks(command)}
    assert up <= CALLBACKS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_drawing_has_a_row_for_every_module(command):
    drawn, way = docs_journey.drawing(command), docs_journey.stations(command)
    assert drawn.count("<circle") == len(way)
    assert drawn.count('d="M') == 2 * len(way) - 1, "a guide for each, and a line for all but the first"
    assert all(f">{station.name}</text>" in drawn for station in way)
    assert "\n" not in drawn


def test_a_call_up_is_found_and_opens_no_way(monkeypatch):
    def call(caller, callee, *above):
        stack = [f"pointillist.{name}" for name in (caller, *above)]
        return journey.Call(stack[0], f"pointillist.{callee}", ["f"], stack)

    calls = [
        call("cli", "learners.online"),
        call("learners.online", "model.problem", "cli"),
        call("model.problem", "cli.progress", "learners.online", "cli"),
        call("model.problem", "model.codes", "learners.online", "cli"),
    ]
    monkeypatch.setattr(docs_journey, "recorded", lambda: {"learn": calls})
    assert docs_journey.callbacks("learn") == [calls[2]]
    parents = {station.name: station.parent for station in docs_journey.stations("learn")}
    assert parents == {
        "cli": "",
        "learners.online": "cli",
        "model.problem": "learners.online",
        "cli.progress": "cli",
        "model.codes": "model.problem",
    }


@pytest.mark.slow
def test_the_record_is_the_same_every_time():
    assert journey.recorded.__wrapped__() == journey.recorded()


def test_the_page_names_files_that_exist():
    """Paths in the table of what to change where; a name without a folder lies in the folder named before it in its row."""
    table = re.search(r"^## Where things are\n(.*?)(?=^## )", PAGE, re.M | re.S)[1]
    named: list[str] = []
    for row in table.splitlines():
        folder = ""
        for name in re.findall(r"`([\w/*]+(?:/|\.py|\.cu))`", row):
            folder = name[: name.rfind("/") + 1] or folder
            named.append(name if "/" in name else folder + name)
    assert len(named) > 30
    roots = ROOT / "src" / "pointillist", ROOT
    assert [name for name in named if not any(list(root.glob(name)) for root in roots)] == []
