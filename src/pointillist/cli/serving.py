"""``pointillist app``: the page on which photographs are mended, in the browser of this machine."""

import os
import sys
import threading
import warnings
import webbrowser
from pathlib import Path

from pointillist.app import serve
from pointillist.app.jobs import THREADS
from pointillist.cli.console import err, out, show_log


def run(picture: Path | None, *, port: int, browser: bool) -> None:
    """Serve until Ctrl-C, which is how it ends; not an error."""
    show_log()

    def ready(address: str, once: str) -> None:
        out().print(f"open {address}", markup=False, soft_wrap=True)
        err().print("Photographs stay on this machine. Ctrl-C ends it.", style="dim", markup=False)
        if browser:
            threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the page says what matters to its reader
            serve(picture, port=port, ready=ready)
    except KeyboardInterrupt:
        err().print("stopped; nothing was left behind", markup=False)
        _end_now_if_busy()


def _end_now_if_busy() -> None:
    """End the process although work goes on that did not stop when it was told to: nobody will ask for its answer."""
    if any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
