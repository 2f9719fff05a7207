"""Tests of the help's words, which must not depend on the version of typer."""

import pytest
from typer.main import get_command

from pointillist.cli.app import app

COMMANDS = ["", *get_command(app).commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_no_python_types_and_nothing_behind_a_switch(cli, command):
    page = cli(*command.split(), "--help").out
    for words in ("bool", "list[", "<int", "<float", "<str", "<Path", "INTEGER", "FLOAT", "default: None"):
        assert words not in page, f"{words} in {page}"


@pytest.mark.parametrize(
    ("command", "usage", "words"),
    [
        ("learn", "learn [OPTIONS] PATHS...", "Image files, .npy arrays"),
        ("encode", "encode [OPTIONS] MODEL PATHS...", "A model file that learn wrote."),
        ("inpaint", "inpaint [OPTIONS] IN...", "Pictures, .npy arrays"),
    ],
)
def test_arguments_are_named_and_explained(cli, command, usage, words):
    page = cli(command, "--help").out
    assert f"pointillist {usage} " in page
    assert words in page
