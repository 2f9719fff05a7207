"""Progress of a command: a live bar in a terminal, a line now and then everywhere else, nothing when quiet."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

from pointillist.cli.console import err, number, printable, tell
from pointillist.kernels.compiling import watching_compilation, working_time

Report = Callable[[dict[str, Any]], bool]

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_TO_JUDGE_BY = 1.0
_SECONDS_BEFORE_BAR = 1.0
_COMPILING = "compiling kernels, once on this machine"
_KERNELS = 15  # about as many as a first step of learning needs; the bar grows where more are compiled


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
        with _compilation_line():
            yield _Lines(total)


class PictureProgress:
    """Shows how far a command is with several pictures or other items, and with the one in work; this one is silent."""

    def begin(self, name: str) -> None:
        """Tell that work on the next picture begins."""

    def share(self, done: float) -> None:
        """Tell which share of the picture, from 0 to 1, is done."""

    def end(self) -> None:
        """Tell that the picture is finished."""


@contextmanager
def picture_progress(what: str, total: int, *, quiet: bool) -> Iterator[PictureProgress]:
    """Show progress with the time left over `total` pictures, not before a second has passed."""
    if quiet:
        yield PictureProgress()
    elif is_live():
        with _PictureBars(what, total) as bars, watching_compilation(bars.compiling):
            yield bars
    else:
        with _compilation_line():
            yield _PictureLines()


@contextmanager
def _compilation_line() -> Iterator[None]:
    """Print one line when the first kernel is compiled."""
    lines = [f"{_COMPILING}: some seconds"]

    def line(_: int) -> None:
        if lines:
            tell(lines.pop())

    with watching_compilation(line):
        yield


class _CompilationBar:
    """A bar among others for the kernels that are compiled, shown from the first of them until work goes on."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._before, self._task = 0, None

    def __call__(self, kernels: int) -> None:
        if self._task is None:
            self._before = kernels
            self._task = self._progress.add_task(_COMPILING, total=_KERNELS, numbers="")
        done = kernels - self._before
        self._progress.update(self._task, completed=done, total=max(_KERNELS, done + 1), visible=True)

    def hide(self) -> None:
        """Tell that work goes on."""
        if self._task is not None:
            self._progress.update(self._task, visible=False)


class _PictureLines(PictureProgress):
    """Prints a line every few seconds of work on one picture."""

    def begin(self, name: str) -> None:
        self._name = name
        self._begin = self._last = working_time()

    def share(self, done: float) -> None:
        now = working_time()
        if now - self._last < _SECONDS_BETWEEN_LINES or done <= 0:
            return
        self._last = now
        left = (now - self._begin) * (1 - done) / done
        tell(f"{self._name}: {100 * done:.0f} %, about {left:.0f} s left")


class _PictureBars(PictureProgress):
    """A bar for the picture that is worked on, and one over all pictures if there are several."""

    def __init__(self, what: str, total: int) -> None:
        from rich.progress import TaskProgressColumn

        self._progress = _live(TaskProgressColumn())
        self._all = self._progress.add_task(f"{what} {total} pictures", total=total, visible=total > 1)
        self._one = self._progress.add_task(what, total=None)
        self.compiling = _CompilationBar(self._progress)
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

    def share(self, done: float) -> None:
        self.compiling.hide()
        self._progress.update(self._one, total=1.0, completed=done)
        self._progress.update(self._all, completed=self._done + done)

    def end(self) -> None:
        self._done += 1
        self._progress.update(self._all, completed=self._done)


def _live(*columns: Any) -> Any:
    """Bars with a description before and the time left behind these columns."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    before = TextColumn("{task.description}", markup=False), BarColumn(bar_width=30)
    behind = TimeRemainingColumn(compact=True), TextColumn("left", style="dim")
    # The time left is that of the work: its clock stands still while kernels are compiled.
    return Progress(*before, *columns, *behind, console=err(), transient=True, get_time=working_time)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int, str], bool]]:
    from rich.progress import MofNCompleteColumn, TextColumn

    with _live(MofNCompleteColumn(), TextColumn("{task.fields[numbers]}", style="dim")) as progress:
        task = progress.add_task(what, total=total, numbers="")
        compiling = _CompilationBar(progress)

        def advance(done: int, numbers: str) -> bool:
            compiling.hide()
            progress.update(task, completed=done, numbers=numbers)
            return False

        with watching_compilation(compiling):
            yield advance


class _Lines:
    """Prints a line for the first and the last step, and every few seconds between."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begin = self._last = working_time()
        self._before: int | None = None  # steps that another process took before this one resumed the run

    def __call__(self, info: dict[str, Any]) -> bool:
        now, step = working_time(), int(info["iteration"])
        if self._before is None:
            self._before = step - 1
        if step in (self._before + 1, self._total) or now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            tell(f"step {step}/{self._total}: {_numbers(info)}{self._outlook(now - self._begin, step)}")
        return False

    def _outlook(self, spent: float, step: int) -> str:
        """The time left, where it can be told: a first step may take many times as long as others."""
        taken, left = step - (self._before or 0), self._total - step
        return f", about {spent / taken * left:.0f} s left" if left and spent >= _SECONDS_TO_JUDGE_BY else ""


def _numbers(info: dict[str, Any]) -> str:
    text = f"objective {number(info['objective'])}, {info['nnz']:,} non-zeros"
    held_out = info.get("validation_objective")
    return text if held_out is None else f"{text}, held-out {number(held_out)}"
