"""Consoles, progress, and the ways a command ends early.

Results are printed to stdout; progress, warnings and errors to stderr. Names and metadata of files are a stranger's words.
No sign of them moves the cursor, changes colours, turns the direction of a line or begins one: all text passes through
`printable`, and none of it is markup. Nothing else in the command line writes to a stream.

Ctrl-C, SIGTERM and the end of the terminal (SIGHUP) mean the same: stop, and keep what was done. A command that a signal
ends has the exit code 128 + its number, as shells expect: 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Self
from unicodedata import category

from pointillist.system import ENDINGS, handling

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

_WIDTH_IN_PIPES = 160  # tables in a pipe or a file are not cut to the width of a terminal that is not there
_SECONDS_BETWEEN_LINES = 5.0
received: list[int] = []
"""Signals that came while a command ran; its exit code tells the last one."""
_COMPILING = "compiling kernels, once on this machine"


def printable(text: str) -> str:
    """Text with an escape such as ``\\u001b`` for every sign that is not to be seen; inside of JSON it stays what it was."""
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or category(sign) == "Zs"
        else "\\u" + sign.encode("utf-16-be", "surrogatepass").hex(" ", 2).replace(" ", "\\u")
        for sign in text
    )


def say(*lines: Any) -> None:
    """Print results on stdout: lines of text, or tables."""
    _console(stderr=False).print(*lines, sep="\n", soft_wrap=True)


def tell(*lines: Any, style: str | None = None) -> None:
    """Print how the work goes on stderr: lines of text."""
    _console(stderr=True).print(*lines, sep="\n", style=style, soft_wrap=True)


def write(lines: Iterable[str]) -> None:
    """Print many lines on stdout as they are, for other programs to read."""
    for line in lines:
        sys.stdout.write(f"{printable(line)}\n")


def write_json(facts: Any) -> None:
    """Print JSON on stdout, for other programs to read."""
    import json

    write(json.dumps(facts, indent=2, ensure_ascii=False).split("\n"))


def warn(message: str, label: str = "warning", style: str = "bold yellow") -> None:
    """Print a line of stderr behind a label."""
    from rich.text import Text

    tell(Text.assemble((f"{label}: ", style), printable(message)))


def fail(message: str) -> None:
    """Print what went wrong."""
    warn(message, "error", "bold red")


def _console(*, stderr: bool) -> Console:
    """Console that follows redirected streams, to which every string is plain text, in lines, tables and titles alike."""
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        def render_str(self, text: str, **how: Any) -> Text:
            plain = {name: value for name, value in how.items() if name in ("style", "justify", "overflow")}
            return super().render_str(printable(text), markup=False, emoji=False, highlight=False, **plain)

    stream = sys.stderr if stderr else sys.stdout
    return PlainConsole(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDTH_IN_PIPES)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], *, left: Iterable[str]) -> Any:
    """Table without lines; columns of these headings stand `left` and are folded, others right."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        if heading in left:
            drawn.add_column(heading, overflow="fold")
        else:
            drawn.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        drawn.add_row(*row)
    return drawn


class _LogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            warn(record.getMessage())
        else:
            tell(record.getMessage(), style="dim")


def show_log(*, quiet: bool = False, verbose: bool = False) -> None:
    """Show logs on stderr: warnings, or everything of the package when verbose, or nothing but errors when quiet.

    Libraries that read files log words of these files too, so that theirs come the same way.
    """
    hide_log()
    logging.getLogger().addHandler(_LogHandler(logging.ERROR if quiet else logging.NOTSET))
    logging.getLogger("pointillist").setLevel(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING)


def hide_log() -> None:
    """Undo `show_log`, for whoever goes on in the same process."""
    root = logging.getLogger()
    for handler in [old for old in root.handlers if isinstance(old, _LogHandler)]:
        root.removeHandler(handler)
    logging.getLogger("pointillist").setLevel(logging.NOTSET)


def count(amount: int, noun: str) -> str:
    """A number with its noun, as ``1 signal`` or ``2 signals``."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def number(value: float) -> str:
    """A number with four or more digits, and never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def say_left_out(reasons: list[str], where: str, most: int = 20) -> None:
    """Print why signals were left out; the file called `where` lists those that are too many."""
    if reasons:
        more = len(reasons) - most
        say(f"left out {count(len(reasons), 'signal')}:", *[f"  {why}" for why in reasons[:most]])
        if more > 0:
            say(f"  and {more} more, which the {where} file lists")


def duration(seconds: float) -> str:
    """Seconds as ``50 s``, ``12 min``, ``3.5 h`` or ``2.1 days``."""
    for unit, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{max(seconds, 1):.0f} s"


def say_plan(what: str, seconds: float, taken: str, memory: float, more: str = "") -> None:
    """Print what a run will need, in seconds and bytes, judged by what was `taken` for its first steps."""
    from rich.filesize import decimal

    say(
        what,
        f"time: about {duration(seconds)}; the first {taken}",
        f"memory: {decimal(int(memory))} at its peak{more}",
        "nothing was written",
    )


def warn_of_others(output: Path, before: object, made: str) -> None:
    """Warn if somebody has written the output since a run took its `stamp`."""
    from pointillist.storage import stamp

    if stamp(output) != before:
        warn(f"{output} was written by another program since this run began; this run's {made} takes its place")


def check_memory(limit: int, work: str, advice: str) -> None:
    """Raise where `work` has taken more than so many bytes."""
    from rich.filesize import decimal

    from pointillist.system import memory_peak

    if memory_peak() > limit:
        taken = decimal(memory_peak())
        raise ValueError(f"--max-memory {decimal(limit)} is not enough: {work} has taken {taken}; {advice}")


def check_outputs(named: dict[str, Path | None]) -> None:
    """Raise where a file that an option names cannot be written, or two options name one file; ``-`` is none."""
    from pointillist.storage import check_writable

    files = {option: path for option, path in named.items() if path is not None and str(path) != "-"}
    for path in files.values():
        check_writable(path)
    if len({path.resolve() for path in files.values()}) < len(files):
        raise ValueError(f"{' and '.join(files)} name the same file: give them different names")


class Progress(ExitStack):
    """Live bar in a terminal, a line now and then everywhere else, nothing when quiet.

    Parameters
    ----------
    what : str
        The work, before the bar.
    total : int
        Steps or pictures.
    unit : str
        What a line calls one of them; without a name lines tell a percentage.
    """

    def __init__(self, what: str, total: int, *, quiet: bool, unit: str = "") -> None:
        from pointillist.kernels.compiling import working_time

        super().__init__()
        self._what, self._total, self._unit, self._quiet = what, total, unit, quiet
        self._clock = working_time  # the time left is that of the work, not of compilation
        self._bar: Any = None
        self._first: tuple[float, float] | None = None  # done before, and when: a resumed run begins in the middle
        self._last, self._told = self._clock(), False

    def __enter__(self) -> Self:
        from pointillist.kernels.compiling import watching_compilation

        if self._quiet:
            return self
        if sys.stdout.isatty() and sys.stderr.isatty():
            from rich.progress import Progress, TextColumn

            self._bar = Progress(
                *Progress.get_default_columns(),
                TextColumn("{task.fields[words]}", style="dim", markup=False),
                console=_console(stderr=True),
                transient=True,
                get_time=self._clock,
            )
            self._bar.add_task(self._what, total=self._total, words="")
            self.enter_context(self._bar)
        self.enter_context(watching_compilation(self._compiling))
        return self

    def show(self, done: float, words: str = "") -> None:
        """Show that so many steps or pictures are done, and words about the one in work."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, words=printable(words))
            return
        now, left = self._clock(), ""
        begins = self._first is None
        self._first = before, began = self._first or (done, now)
        if now - self._last < _SECONDS_BETWEEN_LINES and not (self._unit and (begins or done == self._total)):
            return
        if before < done < self._total:
            left = f", about {duration((now - began) * (self._total - done) / (done - before))} left"
        self._last = now
        share = f"{self._unit} {done:.0f}/{self._total}" if self._unit else f"{100 * done / self._total:.0f} %"
        tell(f"{share}{': ' if words else ''}{words}{left}")

    def _compiling(self, kernels: int) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], words=_COMPILING)
        elif not self._told:
            self._told = True
            tell(f"{_COMPILING}: some seconds")


class Stopped(Exception):
    """A command was ended by a signal, which it has put its work away for; no KeyboardInterrupt, which typer swallows.

    Its words are what was left undone, as the end of a sentence; there are none where the command has said so.
    """


@contextmanager
def leaving(undone: str) -> Iterator[None]:
    """Let Ctrl-C say what it leaves `undone`."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(undone) from None


def is_interruption(error: BaseException | None) -> bool:
    """True for an error that is a signal on its way out, or came up on that way, as when a file is closed twice."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


class GracefulStop(ExitStack):
    """While entered, a first signal is a request to stop after the current step; a second one raises.

    `asked` is true once the first has come.
    """

    def __init__(self, *, announce: bool) -> None:
        super().__init__()
        self.asked, self._announce = False, announce

    def __enter__(self) -> Self:
        self.enter_context(handling(("SIGINT", *ENDINGS), self._handle))
        return self

    def __call__(self, info: dict[str, Any]) -> bool:
        """A learner's callback: true ends learning."""
        return self.asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        received.append(number)
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._announce:
            try:
                # Not print, which must not be entered twice: the signal may have come in the middle of one.
                os.write(2, b"\nstopping after this step; press Ctrl-C again to abort without saving\n")
            except OSError:
                _fall_silent()


def _fall_silent() -> None:
    """Send what would go to a terminal that is gone nowhere, so that the next line of progress does not end the run."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nowhere, stream)
    os.close(nowhere)
