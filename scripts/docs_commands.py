"""The reference of the command line, read from the commands themselves."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.main import get_command

from pointillist.cli.app import app


def commands() -> str:
    """Markdown of all commands: what each is for, its arguments and options."""
    group: Any = get_command(app)
    return "\n".join(_command(name, one) for name, one in group.commands.items() if not one.hidden)


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not getattr(p, "hidden", False)]
    kinds = get_type_hints(command.callback)
    usage = " ".join(["pointillist", name, *(_place(one) for one in arguments), "[OPTIONS]"])
    lines = [f"## {name}\n", _prose(command.help or ""), f"\n```text\n{usage}\n```\n"]
    if options:
        lines += ["| option | default | |", "| --- | --- | --- |", *(_option(one, kinds) for one in options)]
    return "\n".join(lines) + "\n"


def _prose(text: str) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text.replace("\b", "")).strip()


def _place(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().strip(".{}[]")
    return f"{name}…" if argument.nargs == -1 else name


def _option(option: Any, kinds: dict[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" {_kind(option, kinds.get(option.name))}"
    return f"| {names}{value} | {_default(option)} | {_cell(option.help or '')} |"


def _kind(option: Any, kind: Any) -> str:
    """What an option takes: its metavar, its choices, or the name of its type."""
    if get_origin(kind) is not Literal:
        kind = next((one for one in get_args(kind) if one is not type(None)), kind)
    if option.metavar:
        text = option.metavar
    elif get_origin(kind) is Literal:
        text = "|".join(get_args(kind))
    else:
        text = getattr(kind, "__name__", str(kind)).upper()
    return f"<small>{text.replace('|', '&#124;').replace('<', '&lt;')}</small>"


def _default(option: Any) -> str:
    shown = option.show_default if isinstance(option.show_default, str) else option.default
    if shown is None or shown is False or callable(shown) or shown in ((), []):
        return ""
    return _cell(str(shown))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "&#124;")
