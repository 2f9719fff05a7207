"""Commands of one kind with every version of typer: help without Python types, plain usage lines, and checked paths."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

from pointillist.cli.paths import refuse_dashes
from pointillist.system import holding_signals


def _plain(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""
        if one.param_type_name == "argument":
            one.display_type_rich = _no_type  # newer versions write <list[Path]> beside the name
    return parameters


def _no_type(ctx: Any) -> None:
    return None


class PlainGroup(TyperGroup):
    """The list of commands."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with holding_signals():  # typer reads options by pydantic, which loses an interruption
            return super().make_context(*args, **settings)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))


class PlainCommand(TyperCommand):
    """A command, whose arguments appear in the usage line as their metavars are written."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with holding_signals():
            return super().make_context(*args, **settings)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        if self.callback is not None:
            refuse_dashes(self.callback, ctx.params, ctx)
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        names = [one.metavar for one in self.params if one.param_type_name == "argument"]
        return [self.options_metavar or "", *(name or "" for name in names)]
