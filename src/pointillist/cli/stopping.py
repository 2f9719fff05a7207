"""Ctrl-C, SIGTERM and the end of the terminal (SIGHUP) mean the same: stop, and keep what was learned.

While a learner works a first signal is a request: the current step is finished, and the model is saved. A second one, and
any signal outside of learning, raises KeyboardInterrupt.
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


class Interrupted(Exception):
    """Ctrl-C, with words for what it left undone; no KeyboardInterrupt, because typer makes a mere exit code of that."""


class GracefulStop:
    """While entered, `requested` turns true at the first Ctrl-C or SIGTERM.

    Parameters
    ----------
    announce : bool
        Whether to say so on stderr.
    """

    def __init__(self, *, announce: bool = True) -> None:
        self.requested = False
        self._announce = announce
        self._handling = handling(("SIGINT", *ENDINGS), self._handle)

    def __enter__(self) -> Self:
        self._handling.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.__exit__(None, None, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if self._announce:
            try:
                # Not print, which must not be entered twice: the signal may have come in the middle of one.
                os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, _MESSAGE)
            except OSError:
                _fall_silent()

    def __call__(self, info: dict[str, Any]) -> bool:
        """A learner's callback: true ends learning."""
        return self.requested
