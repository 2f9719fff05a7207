"""The grammar of paths that all commands share: which files are read, and what ``-`` means.

Files, folders and patterns are found by `pointillist.data.paths`. Every path of a command is looked at before the command
runs: ``-`` is refused, unless its option says ``allow_dash=True`` because it writes text to standard output.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import typer

from pointillist.data.paths import Found, PathLike, find_files

DASH = Path("-")
"""Standard output, for options that say ``allow_dash=True``."""


def found_files(paths: Sequence[PathLike], suffixes: frozenset[str], recursive: bool | None) -> list[Found]:
    """The files that each path of a command stands for, as `find_files` finds them."""
    return [find_files(path, suffixes, recursive=recursive, remedy="--recursive") for path in paths]


def path_parameters(command: Callable[..., Any]) -> dict[str, Any]:
    """The arguments and options of a command that take paths, by name, with what typer was told about each of them."""
    found = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *told = get_args(parameter.annotation) or (parameter.annotation,)
        if told and (kind is Path or any(Path in (one, *get_args(one)) for one in get_args(kind))):
            found[name] = told[-1]
    return found


def refuse_dashes(command: Callable[..., Any], values: dict[str, Any], context: typer.Context) -> None:
    """Raise a usage error where ``-`` is given for a file that is not text on standard output."""
    for name, told in path_parameters(command).items():
        given = values.get(name)
        if told.allow_dash or "-" not in map(str, given if isinstance(given, list | tuple) else [given]):
            continue
        if isinstance(told, typer.models.ArgumentInfo):
            words = "standard input is not read: save it as a file and give that"
        else:
            words = "neither standard input nor standard output is used here: give the name of a file"
        parameter: Any = next(one for one in context.command.params if one.name == name)
        raise typer.BadParameter(words, ctx=context, param=parameter)
