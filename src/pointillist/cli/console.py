"""Consoles: results are printed to stdout; progress, warnings and errors to stderr.

Names and metadata of files are a stranger's words. No sign of them moves the cursor, changes colours, turns the direction of
the line or begins a new one: all text passes through `printable`, and none of it is markup. Nothing else in the command line
writes to a stream. Consoles are made when they are needed, so that they follow redirected streams.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from unicodedata import category

if TYPE_CHECKING:
    from rich.console import Console

# Tables in a pipe or a file are not cut to the width of a terminal that is not there.
_WIDTH_IN_PIPES = 160


def printable(text: str) -> str:
    """Text with an escape such as ``\\u001b`` for every sign that is not to be seen; inside of JSON it stays what it was."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or category(sign) == "Zs" else _escape(sign) for sign in text)


def _escape(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def say(*lines: Any, style: str | None = None) -> None:
    """Print results on stdout: lines of text, or tables."""
    out().print(*lines, sep="\n", style=style, soft_wrap=True)


def tell(*lines: Any, style: str | None = None) -> None:
    """Print how the work goes on stderr: lines of text."""
    err().print(*lines, sep="\n", style=style, soft_wrap=True)


def write(lines: Iterable[str]) -> None:
    """Print many lines on stdout as they are, for other programs to read."""
    for line in lines:
        sys.stdout.write(f"{printable(line)}\n")


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress, warnings and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        """A console to which every string is plain text, in lines, tables and titles alike."""

        def render_str(self, text: str, **how: Any) -> Text:
            plain = {name: value for name, value in how.items() if name in ("style", "justify", "overflow")}
            return super().render_str(printable(text), markup=False, emoji=False, highlight=False, **plain)

    stream = sys.stderr if stderr else sys.stdout
    return PlainConsole(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDTH_IN_PIPES)


def fail(message: str) -> None:
    """Print one line that says what went wrong."""
    _print("error", "bold red", message)


def warn(message: str) -> None:
    _print("warning", "bold yellow", message)


def _print(label: str, style: str, message: str) -> None:
    from rich.text import Text

    err().print(Text.assemble((f"{label}: ", style), printable(message)), soft_wrap=True)


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.levelno >= logging.WARNING:
            warn(message)
        else:
            tell(message, style="dim")


def show_log(*, quiet: bool = False, verbose: bool = False) -> None:
    """Show logs on stderr: warnings, or everything of the package when verbose, or nothing but errors when quiet.

    Libraries that read files log words of these files too, so that theirs come the same way.
    """
    hide_log()
    handler = _LogHandler(logging.ERROR if quiet else logging.NOTSET)
    logging.getLogger().addHandler(handler)
    logging.getLogger("pointillist").setLevel(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING)


def hide_log() -> None:
    """Undo `show_log`, for whoever goes on in the same process."""
    root = logging.getLogger()
    for handler in [old for old in root.handlers if isinstance(old, _LogHandler)]:
        root.removeHandler(handler)
    logging.getLogger("pointillist").setLevel(logging.NOTSET)


def count(amount: int, noun: str) -> str:
    """Write a number with its noun, as ``1 signal`` or ``2 signals``."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def number(value: float) -> str:
    """Write a number with four or more digits, and never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
