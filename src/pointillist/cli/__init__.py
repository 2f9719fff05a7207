"""The command line: ``pointillist learn``, ``encode``, ``show``, ``info``, ``demo``, and five commands that mend pictures.

Only here does the package print. Commands import what they need when they run, so that help appears at once.
"""

import gc
from collections.abc import Sequence

from pointillist.system import keep_printing

__all__ = ["main"]

_OBJECTS = 50_000
"""New objects after which Python looks for garbage: libraries that are loaded make many, and these stay."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad usage or input, 130 Ctrl-C, 143 SIGTERM."""
    keep_printing()
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *thresholds[1:])
    try:
        from pointillist.cli.running import run

        code = run(arguments)
    except KeyboardInterrupt:  # while modules were imported, or in the middle of saying what was interrupted
        code = 130
    finally:
        gc.set_threshold(*thresholds)
    raise SystemExit(code)
