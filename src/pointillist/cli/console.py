"""Consoles: results are printed to stdout; progress, warnings and errors to stderr.

Consoles are made when they are needed, so that they follow redirected streams.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Tables in a pipe or a file are not cut to the width of a terminal that is not there.
_WIDTH_IN_PIPES = 160


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress, warnings and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDTH_IN_PIPES)


def fail(message: str) -> None:
    """Print one line that says what went wrong."""
    _print("error", "bold red", message)


def warn(message: str) -> None:
    _print("warning", "bold yellow", message)


def _print(label: str, style: str, message: str) -> None:
    from rich.text import Text

    # Text keeps brackets in file names from being read as markup.
    err().print(Text.assemble((f"{label}: ", style), message), soft_wrap=True)


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.levelno >= logging.WARNING:
            warn(message)
        else:
            err().print(message, style="dim", markup=False, soft_wrap=True)


def show_log(*, quiet: bool = False, verbose: bool = False) -> None:
    """Show the package's log on stderr: warnings, or everything when verbose, or nothing when quiet."""
    hide_log()
    logger = logging.getLogger("pointillist")
    logger.addHandler(_LogHandler())
    logger.setLevel(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING)


def hide_log() -> None:
    """Undo `show_log`, for whoever goes on in the same process."""
    logger = logging.getLogger("pointillist")
    for handler in [old for old in logger.handlers if isinstance(old, _LogHandler)]:
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def count(amount: int, noun: str) -> str:
    """Write a number with its noun, as ``1 signal`` or ``2 signals``."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def number(value: float) -> str:
    """Write a number with four or more digits, and never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
