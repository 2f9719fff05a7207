"""Ctrl-C, SIGTERM and the end of the terminal (SIGHUP) mean the same: stop, and keep what was learned.

While a learner works a first signal is a request: the current step is finished, and the model is saved. A second one, and
any signal outside of learning, raises KeyboardInterrupt. Whatever was kept, the command ends with 128 + the number of the
signal, as shells expect it: 130 for Ctrl-C, 143 for SIGTERM.
"""

import os
import stat
import sys
from types import FrameType
from typing import Any, Self

from pointillist.system import ENDINGS, handling

_MESSAGE = b"\nstopping after this step; press Ctrl-C again to abort without saving\n"


def _fall_silent() -> None:
    """Send what would go to a terminal that is gone nowhere, so that the next line of progress does not end the run."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def exit_code(number: int) -> int:
    """The code that a command ends with which was ended by a signal."""
    return 128 + number


class Ended(KeyboardInterrupt):
    """A signal that means what Ctrl-C does, with its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Stopped(Exception):
    """A command was ended by a signal, has put its work away, and has said so; `number` is that of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by signal {number}")
        self.number = number


class Interrupted(Exception):
    """Ctrl-C, with words for what it left undone; no KeyboardInterrupt, because typer makes a mere exit code of that."""


def is_interruption(error: BaseException | None) -> bool:
    """Whether an error is a signal on its way out, or came up on that way, as when a file is closed twice."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


class GracefulStop:
    """While entered, the first Ctrl-C or SIGTERM is a request to stop.

    Parameters
    ----------
    announce : bool
        Whether to say so on stderr.

    Attributes
    ----------
    number : int or None
        The signal that came.
    """

    def __init__(self, *, announce: bool = True) -> None:
        self.number: int | None = None
        self._announce = announce
        self._handling = handling(("SIGINT", *ENDINGS), self._handle)

    def __enter__(self) -> Self:
        self._handling.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.__exit__(None, None, None)

    @property
    def requested(self) -> bool:
        """Whether the work shall stop."""
        return self.number is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise Ended(number)
        self.number = number
        if self._announce:
            try:
                # Not print, which must not be entered twice: the signal may have come in the middle of one.
                os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, _MESSAGE)
            except OSError:
                _fall_silent()

    def __call__(self, info: dict[str, Any]) -> bool:
        """A learner's callback: true ends learning."""
        return self.requested
