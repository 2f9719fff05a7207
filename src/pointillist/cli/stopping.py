"""Ctrl-C and SIGTERM as a request: the current step is finished and what was learned is kept.

A second signal raises KeyboardInterrupt, as Python itself would have done for the first.
"""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

_MESSAGE = b"\nstopping after this step; press Ctrl-C again to abort without saving\n"


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
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python lets only the main thread handle signals; elsewhere there is nothing to catch.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if self._announce:
            # Not print, which must not be entered twice: the signal may have come in the middle of one.
            os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, _MESSAGE)

    def __call__(self, info: dict[str, Any]) -> bool:
        """A learner's callback: true ends learning."""
        return self.requested
