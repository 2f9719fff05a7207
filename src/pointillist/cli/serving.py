"""``pointillist app``: the page on which photographs are mended, in the browser of this machine."""

import os
import signal
import sys
import threading
import warnings
import webbrowser
from pathlib import Path

from pointillist.cli.console import say, show_log, tell
from pointillist.cli.stopping import Ended, Stopped, exit_code
from pointillist.retouch.jobs import THREADS
from pointillist.retouch.server import serve


def run(picture: Path | None, *, port: int, browser: bool) -> None:
    """Serve until Ctrl-C, which is how it ends."""
    show_log()

    def ready(address: str, once: str) -> None:
        say(f"open {address}")
        tell("Photographs stay on this machine. Ctrl-C ends it.", style="dim")
        if browser:
            threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the page says what matters to its reader
            serve(picture, port=port, ready=ready)
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Ended) else signal.SIGINT
        tell("stopped; nothing was left behind")
        _end_now_if_busy(exit_code(number))
        raise Stopped(number) from None


def _end_now_if_busy(code: int) -> None:
    """End the process although work goes on that did not stop when it was told to: nobody will ask for its answer."""
    if any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
