"""Runs a command line; an exception becomes one line on stderr and an exit code.

Commands raise; nothing else in this package catches errors to print them.
"""

import logging
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import typer
import typer.main

from pointillist.cli.app import app
from pointillist.cli.console import fail, hide_log, show_log, tell
from pointillist.cli.stopping import Ended, Interrupted, Stopped, exit_code, is_interruption
from pointillist.system import ENDINGS, handling, holding_signals

log = logging.getLogger(__name__)

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, exit_code(signal.SIGINT)

# typer brings its own copy of click or uses the installed one, depending on its version; this is the base of both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_UNDONE = {"learn": "no model was saved", "encode": "no codes were written", "anomalies": "no scores were written"}
"""Words for what Ctrl-C leaves undone, by command, where the command itself does not say it."""

_INPUT_ERRORS = (ValueError, FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)

_OPTIONS = {
    "n_filters": "--filters",
    "filter_size": "--size",
    "penalty": "--penalty",
    "sampling": "--sampling",
    "solver": "--solver",
    "boundary": "--boundary",
    "batch_size": "--batch",
    "n_epochs": "--epochs",
    "max_iter": "--iterations",
    "forgetting": "--forgetting",
    "init": "--init",
    "n_jobs": "--jobs",
    "tol": "--tol",
    "max_memory": "--max-memory",
    "every": "--checkpoint-every",
    "false_alarms": "--false-alarms",
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Accepted anywhere, because whoever adds it does so at the end of the line that failed.
    debug = "--debug" in given
    given = [word for word in given if word != "--debug"]
    words, received = "", [int(signal.SIGINT)]

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)  # typer makes a mere exit code of what is raised
        raise Ended(number)

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what is wrong with a file is said in one line, by `fail`
    try:
        with handling(ENDINGS, end), _warnings_as_lines():
            code = _command()(given or ["--help"], prog_name="pointillist", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Interrupted as error:
        code, words = INTERRUPTED, str(error)
    except Stopped as error:
        return exit_code(error.number)
    except Exception as error:
        if debug:
            tell(*traceback.format_exc().splitlines())
        code = INTERRUPTED if is_interruption(error) else _report(error)
    finally:
        hide_log()
    if code == INTERRUPTED:
        words = words or _UNDONE.get(next((word for word in given if not word.startswith("-")), ""), "")
        fail(f"interrupted; {words}" if words else "interrupted")
        return exit_code(received[-1])
    return code if isinstance(code, int) else 0


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
        meant = issubclass(category, UserWarning)
        words = _in_options(" ".join(str(message).split()))
        log.log(logging.WARNING if meant else logging.INFO, "%s", words if meant else f"{category.__name__}: {words}")

    with warnings.catch_warnings():
        # Whoever names a large picture means it; one that is too large to be opened safely is refused all the same.
        warnings.filterwarnings("ignore", "Image size .* exceeds limit")
        warnings.showwarning = show
        show_log()  # until the command says how much of the log is shown
        yield


def _report(error: Exception) -> int:
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "pointillist"
        message: str = error.format_message()  # type: ignore[attr-defined]
        fail(f"{message.rstrip('.')} (see {command} --help)")
        return BAD_INPUT
    if isinstance(error, _INPUT_ERRORS):
        fail(_in_options(_one_line(error)))
        return BAD_INPUT
    if isinstance(error, MemoryError):
        fail(f"out of memory: {_one_line(error) or 'use fewer or smaller signals, or a lower --sampling'}")
    elif isinstance(error, OSError | ImportError):
        fail(_one_line(error))
    else:
        fail(f"unexpected {type(error).__name__}: {_one_line(error)} (add --debug to see where)")
    return FAILED


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _in_options(message: str) -> str:
    """Replace parameters of the library by the options of the command in an error message."""
    return re.sub(rf"^({'|'.join(_OPTIONS)})\b", lambda found: _OPTIONS[found[0]], message)
