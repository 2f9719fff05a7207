"""Tests of what reaches the terminal: names and metadata of files as text, and nothing else."""

import json
import logging
import re
import warnings
from pathlib import Path

import pytest
from rich.table import Table

import pointillist.cli
from pointillist import load, save
from pointillist.cli.console import hide_log, printable, say, show_log, tell, warn

NASTY = "a\x1b[2J\x9b31m\r\x07\u202e\u2066[red]b[/red]:smile:\n\x7f\udcff\U000e0001 "
SAFE = r"a\u001b[2J\u009b31m\u000d\u0007\u202e\u2066[red]b[/red]:smile:\u000a\u007f\udcff\udb40\udc01 "


def test_every_sign_that_is_not_to_be_seen_is_escaped():
    assert printable(NASTY) == SAFE
    assert printable("Größe 写真 5×5 →　x") == "Größe 写真 5×5 →　x"
    assert json.loads(f'"{printable(chr(0x202E) + chr(0xE0001))}"') == "\u202e\U000e0001"


def test_lines_tables_warnings_and_logs_hold_plain_text(capsys):
    table = Table(NASTY)
    table.add_row(NASTY)
    say(table, NASTY, "second")
    tell(NASTY, style="dim")
    warn(NASTY)
    show_log(verbose=True)
    logging.getLogger("pointillist.test").warning("%s", NASTY)
    logging.getLogger("pointillist.test").info("%s", NASTY)
    logging.getLogger("another.library").warning("%s", NASTY)
    hide_log()
    printed = capsys.readouterr()
    assert printed.out.count(SAFE.strip()) == 3
    assert printed.err.count(SAFE.strip()) == 5
    assert all(sign.isprintable() or sign == "\n" for sign in printed.out + printed.err)
    assert printed.out.splitlines()[-1] == "second"


def test_nothing_else_writes_to_the_terminal():
    """Whoever prints words of others does so by `say`, `tell`, `warn` or `fail`."""
    folder = Path(pointillist.cli.__file__).parent
    direct = re.compile(r"\bprint\(|\.print\(|sys\.std(out|err)\.write|Console\(|\bout\(\)|print_exc")
    found = {path.name for path in folder.glob("*.py") if direct.search(path.read_text(encoding="utf-8"))}
    assert found == {"console.py"}


def test_metadata_and_names_of_files_in_commands(cli, model, tmp_path):
    learned = load(model)
    path = tmp_path / "m[red]\x1b[2J\u202e.safetensors"
    save(learned, path, preprocessing={NASTY: NASTY}, extra={"data": {"signals": NASTY, "paths": [NASTY, 5]}})
    for words in (["info", path], ["info", path, "--json"], ["show", path], ["info", tmp_path / "no\x1b[2J"]):
        answer = cli(*words)
        assert all(sign.isprintable() or sign == "\n" for sign in answer.out + answer.err)
        assert r"\u001b[2J" in answer.out + answer.err
    assert json.loads(cli("info", path, "--json").out)["preprocessing"] == {NASTY: NASTY}
    save(learned, path, extra={"data": "mine", "stopped_early": "?"})
    assert cli("info", path).code == 0


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_errors_name_files_in_plain_text(cli, tmp_path, debug):
    path = tmp_path / "x\x1b[2J\n.png"
    path.write_bytes(b"no picture")
    answer = cli("denoise", path, *debug)
    assert answer.code == 2
    assert all(sign.isprintable() or sign == "\n" for sign in answer.out + answer.err)


def test_warnings_of_libraries_are_lines_of_ours(cli, monkeypatch, tmp_path):
    def warn(*given, **how):
        warnings.warn("words of a file \x1b[2J\nin two lines", UserWarning, stacklevel=1)

    monkeypatch.setattr("pointillist.load", warn)
    done = cli("show", tmp_path / "a")
    assert "warning: words of a file \\u001b[2J in two lines\n" in done.err
