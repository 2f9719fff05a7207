"""How far a command is: a live bar in a terminal, a line now and then everywhere else, silence when asked for."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any, Protocol

from pointillist.cli.console import err, number, printable, tell

Report = Callable[[dict[str, Any]], bool]

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BEFORE_BAR = 1.0


def is_live() -> bool:
    """Whether someone is watching."""
    return sys.stdout.isatty() and sys.stderr.isatty()


@contextmanager
def learning_progress(total: int, *, quiet: bool) -> Iterator[Report]:
    """Give a learner's callback that shows its record; `total` is the number of steps to come."""
    if quiet:
        yield lambda info: False
    elif is_live():
        with _bar("learning", total) as advance:
            yield lambda info: advance(int(info["iteration"]), _numbers(info))
    else:
        yield _Lines(total)


class PictureProgress(Protocol):
    """How far a command is with several pictures or other items, and with the one that it works on."""

    def begin(self, name: str) -> None:
        """Work on the next picture begins."""

    def share(self, part: float) -> None:
        """A part of the picture, from 0 to 1, is done."""

    def end(self) -> None:
        """The picture is finished."""


@contextmanager
def picture_progress(what: str, total: int, *, quiet: bool) -> Iterator[PictureProgress]:
    """Show progress with the time left over `total` pictures, not before a second has passed."""
    if quiet:
        yield _Silence()
    elif is_live():
        with _PictureBars(what, total) as bars:
            yield bars
    else:
        yield _PictureLines()


class _Silence:
    def begin(self, name: str) -> None:
        pass

    def share(self, part: float) -> None:
        pass

    def end(self) -> None:
        pass


class _PictureLines:
    """A line every few seconds of work on one picture."""

    def begin(self, name: str) -> None:
        self._name = name
        self._begin = self._last = time.monotonic()

    def share(self, part: float) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES or part <= 0:
            return
        self._last = now
        left = (now - self._begin) * (1 - part) / part
        tell(f"{self._name}: {100 * part:.0f} %, about {left:.0f} s left")

    def end(self) -> None:
        pass


class _PictureBars:
    """A bar for the picture that is worked on, and one over all pictures if there are several."""

    def __init__(self, what: str, total: int) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("left", style="dim"),
        )
        self._progress = Progress(*columns, console=err(), transient=True)
        self._all = self._progress.add_task(f"{what} {total} pictures", total=total, visible=total > 1)
        self._one = self._progress.add_task(what, total=None)
        self._done = 0
        self._timer = Timer(_SECONDS_BEFORE_BAR, self._progress.start)
        self._timer.daemon = True

    def __enter__(self) -> "_PictureBars":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._progress.stop()

    def begin(self, name: str) -> None:
        self._progress.reset(self._one, total=None, description=printable(name))

    def share(self, part: float) -> None:
        self._progress.update(self._one, total=1.0, completed=part)
        self._progress.update(self._all, completed=self._done + part)

    def end(self) -> None:
        self._done += 1
        self._progress.update(self._all, completed=self._done)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int, str], bool]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}", style="dim"),
        TimeRemainingColumn(compact=True),
        TextColumn("left", style="dim"),
    )
    with Progress(*columns, console=err(), transient=True) as progress:
        task = progress.add_task(what, total=total, numbers="")

        def advance(done: int, numbers: str) -> bool:
            progress.update(task, completed=done, numbers=numbers)
            return False

        yield advance


class _Lines:
    """A line for the first and the last step, and every few seconds between."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begin = self._last = time.monotonic()
        self._before: int | None = None  # steps that another process took before this one resumed the run

    def __call__(self, info: dict[str, Any]) -> bool:
        now, step = time.monotonic(), int(info["iteration"])
        if self._before is None:
            self._before = step - 1
        if step in (self._before + 1, self._total) or now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            left = (now - self._begin) / (step - self._before) * (self._total - step)
            tell(f"step {step}/{self._total}: {_numbers(info)}, about {left:.0f} s left")
        return False


def _numbers(info: dict[str, Any]) -> str:
    text = f"objective {number(info['objective'])}, {info['nnz']:,} non-zeros"
    held_out = info.get("validation_objective")
    return text if held_out is None else f"{text}, held-out {number(held_out)}"
