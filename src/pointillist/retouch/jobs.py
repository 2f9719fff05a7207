"""Jobs: work in a thread of its own, with progress, the time left, and a way to stop it; one at a time."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pointillist.kernels.compiling import compilation, working_time

log = logging.getLogger(__name__)

THREADS = "pointillist-app-"
"""What the names of the threads of jobs begin with."""

Progress = Callable[[float], None]
Answer = TypeVar("Answer")

_PATIENCE = 3.0
"""Seconds that work gets to stop before it is left alone."""
_FIRST_GUESS = 0.02
"""Share of the work after which the time left is guessed."""


class Cancelled(Exception):
    """Raised inside the work, from its progress, once somebody has asked it to stop."""


class Busy(Exception):
    """Raised where work is asked for while other work is going on."""


class Job(Generic[Answer]):
    """Work that runs beside the server.

    Parameters
    ----------
    what : str
        A word for the page: "mend", "find", "marks" or "estimate".
    work : callable
        Takes ``progress(fraction)``, to be called now and then, and returns the answer. It stops where `progress` raises.
    keep : callable
        Takes the answer, in the thread of the work; it is not called once the job was cancelled.
    """

    def __init__(self, what: str, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        self.what = what
        self.state = "running"
        self.error: str | None = None
        self._work, self._keep = work, keep
        self._fraction, self._begin, self._seconds = 0.0, working_time(), 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{THREADS}{what}", daemon=True)

    def start(self) -> None:
        """Begin the work in its thread."""
        self._thread.start()

    def cancel(self) -> None:
        """Ask the work to stop; it does so when it next reports progress."""
        self._stop.set()

    def wait(self, seconds: float = _PATIENCE) -> bool:
        """Wait for the work; whether it ended within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        return self.state == "running"

    def describe(self) -> dict[str, Any]:
        """What the page shows: the state, the fraction that is done, the seconds it took and those left.

        The seconds are those of work: their clock stands still while kernels are compiled, and `compiling` is true then.
        """
        seconds = working_time() - self._begin if self.running else self._seconds
        left = None
        if self.running and self._fraction >= _FIRST_GUESS and seconds > 1:
            left = seconds * (1 - self._fraction) / self._fraction
        return {
            "what": self.what,
            "state": "stopping" if self.running and self._stop.is_set() else self.state,
            "fraction": self._fraction,
            "compiling": self.running and compilation.busy,
            "seconds": round(seconds, 1),
            "left": None if left is None else round(left, 1),
            "error": self.error,
        }

    def _progress(self, fraction: float) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._fraction = min(max(float(fraction), self._fraction), 1.0)

    def _run(self) -> None:
        state = "failed"
        try:
            answer = self._work(self._progress)
            self._progress(1.0)
            self._keep(answer)
            state = "done"
        except Cancelled:
            state = "cancelled"
        except (ValueError, OSError) as error:
            self.error = " ".join(str(error).split())
        except MemoryError:
            self.error = "This photograph is too large for the memory of this machine."
        except Exception as error:
            log.exception("%s failed", self.what)
            self.error = f"Something went wrong that should not have: {type(error).__name__}: {error}"
        finally:
            self._seconds = working_time() - self._begin
            self.state = state


class Worker:
    """Runs one job at a time, begun under a lock that it shares with its session."""

    def __init__(self, lock: threading.RLock) -> None:
        self.job: Job[Any] | None = None
        self._lock = lock

    def check_idle(self) -> None:
        """Raise while a job is running."""
        if self.job is not None and self.job.running:
            raise Busy("Pointillist is at work already. Wait until it is done, or cancel it.")

    def begin(self, what: str, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        """Begin a job; the arguments are those of `Job`."""
        with self._lock:
            self.check_idle()
            self.job = Job(what, work, keep)
            self.job.start()

    def cancel(self) -> None:
        """Ask the job to stop."""
        if self.job is not None:
            self.job.cancel()

    def close(self) -> None:
        """Ask the job to stop, and wait a little for it."""
        self.cancel()
        if self.job is not None:
            self.job.wait()
