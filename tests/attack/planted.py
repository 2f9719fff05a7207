"""Programs with and without planted defects, for the attacks to find."""

import sys
import time
from pathlib import Path

from pointillist.errors import PointillistError
from pointillist.storage import atomic_path

LINES = [b'{"step": 1, ', b'"value": 2, ', b'"last": 3}']


def careful(output):
    """Write a file completely or not at all; an error is one line."""
    try:
        with atomic_path(Path(output)) as temporary:
            _write(temporary)
    except (OSError, PointillistError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def careless(output):
    """Write into the file itself, so that a fault leaves half of it."""
    try:
        _write(Path(output))
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def talkative(output):
    """Let Python print its errors."""
    with atomic_path(Path(output)) as temporary:
        _write(temporary)
    return 0


def _write(path):
    with path.open("wb") as file:
        for line in LINES:
            file.write(line)
            file.flush()
            time.sleep(0.002)
