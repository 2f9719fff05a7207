"""All commands of ``pointillist``, and the run of a command line: an exception becomes one line and an exit code.

Commands raise; nothing else in this package catches errors to print them.
"""

from __future__ import annotations

import logging
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from pointillist.cli import encode, info, learn, restore
from pointillist.cli.console import Stopped, fail, hide_log, is_interruption, received, show_log, tell
from pointillist.system import ENDINGS, handling, holding_signals

log = logging.getLogger(__name__)

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_INPUT_ERRORS = (ValueError, FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)

# typer brings its own copy of click or uses the installed one, depending on its version; this is the base of both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


_TO_STDOUT = ("--events", "--csv")
"""Options that take ``-`` for standard output."""


class _Plain:
    """Help that names no Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in parameters:
            if getattr(one, "is_flag", False):
                one.metavar = one.metavar or ""
            if one.param_type_name == "argument":
                one.display_type_rich = lambda ctx: None  # newer versions write <list[Path]> beside the name
        return parameters


class _Command(_Plain, TyperCommand):
    def make_context(self, *args: Any, **settings: Any) -> Any:
        with holding_signals():  # typer reads options by pydantic, which loses an interruption
            return super().make_context(*args, **settings)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(one.metavar or "" for one in self.params if one.param_type_name == "argument")]


class _Group(_Plain, TyperGroup):
    pass


app = typer.Typer(
    name="pointillist",
    cls=_Group,
    help="Learn small filters from images, write any image as a few sparse points of them, and mend pictures.",
    epilog="Start with: pointillist demo --output demo-output",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pointillist {version('pointillist')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="Show where an error comes from; works anywhere.")] = False,
) -> None:
    pass


_function: Any
for _function in (learn.learn, encode.encode, encode.anomalies, info.show, info.info, learn.demo):
    app.command(cls=_Command)(_function)
for _function in (restore.app, *restore.COMMANDS):
    app.command(cls=_Command, rich_help_panel="Mend pictures with the shipped dictionary")(_function)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Accepted anywhere, because whoever adds it does so at the end of the line that failed.
    debug = "--debug" in given
    given = [word for word in given if word != "--debug"]
    received[:] = [signal.SIGINT]

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)  # typer makes a mere exit code of what is raised
        raise KeyboardInterrupt

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what is wrong with a file is said in one line, by `fail`
    words = "interrupted"
    try:
        with handling(ENDINGS, end), _warnings_as_lines():
            for before, word in pairwise(given):
                if word == "-" and before not in _TO_STDOUT:
                    raise ValueError(
                        f"{before} -: standard input is not read, nor standard output written: name a file"
                    )
            code = _command()(given or ["--help"], prog_name="pointillist", standalone_mode=False) or 0
            if code != INTERRUPTED:
                return int(code)
    except (KeyboardInterrupt, typer.Abort):
        pass
    except Stopped as stop:
        words = f"interrupted; {stop}" if str(stop) else ""
    except Exception as error:
        if debug:
            tell(*traceback.format_exc().splitlines())
        if not is_interruption(error):
            return _report(error)
    finally:
        hide_log()
    if words:
        fail(words)
    return 128 + received[-1]


@cache
def _command() -> Any:
    """All commands, as typer makes them of functions; that takes longer than many of them do."""
    with holding_signals():
        return typer.main.get_command(app)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Let warnings of Python come as lines of the log, without their category and their place in a source file.

    Those that are meant for users are warnings there too; others, as of NumPy, are shown by ``--verbose`` only.
    """

    def show(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
        meant, words = issubclass(category, UserWarning), " ".join(str(message).split())
        log.log(logging.WARNING if meant else logging.INFO, "%s", words if meant else f"{category.__name__}: {words}")

    with warnings.catch_warnings():
        # Whoever names a large picture means it; one that is too large to be opened safely is refused all the same.
        warnings.filterwarnings("ignore", "Image size .* exceeds limit")
        warnings.showwarning = show
        show_log()  # until the command says how much of the log is shown
        yield


def _report(error: Exception) -> int:
    """Print one line that says what went wrong; the exit code."""
    words = " ".join(str(error).split())
    if isinstance(error, OSError) and error.filename is not None:
        words = f"{error.filename}: {error.strerror}"
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "pointillist"
        message = str(error.format_message()).replace("Value error, ", "")  # type: ignore[attr-defined]
        words = f"{message.rstrip('.')} (see {command} --help)"
    elif isinstance(error, MemoryError):
        words = f"out of memory: {words or 'use fewer or smaller signals, or a lower --sampling'}"
    elif not isinstance(error, (*_INPUT_ERRORS, OSError, ImportError)):
        words = f"unexpected {type(error).__name__}: {words} (add --debug to see where)"
    fail(words)
    return BAD_INPUT if isinstance(error, (_UsageError, *_INPUT_ERRORS)) else FAILED
