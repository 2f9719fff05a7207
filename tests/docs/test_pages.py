"""The code on the documentation's pages and in the README holds.

Python blocks run page by page, each page in one session as a reader would run it. Command lines have a command and options
that exist, and those of the first steps run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

from pointillist.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = {"docs/choosing.md"}

_BLOCK = re.compile(r"^(?:<!-- run: (?P<needs>\w+) -->\n)?```python\n(?P<code>.*?)^```$", re.M | re.S)
_COMMAND = re.compile(r"^(?:    |\$ )(pointillist .*)$", re.M)


def _name(page):
    return str(page.relative_to(ROOT))


def _blocks(page):
    """Code of each Python block below as many empty lines as make a traceback point into the page, and what it needs."""
    text = page.read_text(encoding="utf-8")
    return [
        ("\n" * text.count("\n", 0, found.start("code")) + found["code"], found["needs"] or "")
        for found in _BLOCK.finditer(text)
    ]


def _commands(page):
    """Arguments of every ``pointillist …`` line that stands as a command: in a console block or indented."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))  # a line that goes on in the next
    for line in _COMMAND.findall(text):
        yield tuple(shlex.split(line, comments=True)[1:])


WITH_CODE = [page for page in PAGES if _blocks(page)]
WRITTEN = sorted({(_name(page), words) for page in PAGES for words in _commands(page)})


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if _name(page) in SLOW else ()) for page in WITH_CODE], ids=_name
)
def test_python_runs(page, readers_folder):
    names: dict[str, object] = {}
    for text, needs in _blocks(page):
        code = compile(text, _name(page), "exec")
        if not needs or (needs == "mne" and find_spec("mne") is not None):
            exec(code, names)


def test_code_was_found():
    assert {"README.md", "docs/index.md", "docs/get-started.md", "docs/recipes.md"} <= {
        _name(page) for page in WITH_CODE
    }
    assert {needs for page in WITH_CODE for _, needs in _blocks(page)} <= {"", "gpu", "cluster", "long", "mne"}


@pytest.mark.parametrize(
    ("page", "words"), WRITTEN, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_command_exists(page, words):
    group = get_command(app)
    options = {option for parameter in group.params for option in parameter.opts}
    if not words[0].startswith("-"):
        assert words[0] in group.commands, f"{page}: pointillist has no command {words[0]}"
        options = {"-h", "--help"} | {o for parameter in group.commands[words[0]].params for o in parameter.opts}
    used = {word.partition("=")[0] for word in words if re.fullmatch("--?[a-z].*", word)}
    assert used <= options, f"{page}: no such option: {', '.join(sorted(used - options))}"


def test_commands_were_found():
    assert {"README.md", "docs/get-started.md", "docs/recipes.md"} <= {page for page, _ in WRITTEN}


@pytest.mark.slow
def test_the_first_steps_run(readers_folder):
    order = ["--version", "inpaint", "learn", "encode", "info"]
    lines = [words for page, words in WRITTEN if page == "docs/get-started.md"]
    for words in sorted(lines, key=lambda words: order.index(words[0])):
        command = [sys.executable, "-m", "pointillist.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"pointillist {' '.join(words)}\n{done.stderr}{done.stdout}"
    assert (readers_folder / "compare.png").exists()
    assert list((readers_folder / "out").iterdir())
