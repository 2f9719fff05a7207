"""Programs with and without planted defects, for the attacks to find."""

import os
import sys
import time
from pathlib import Path

from pointillist.errors import PointillistError
from pointillist.storage import atomic_path

LINES = [b'{"step": 1, ', b'"value": 2, ', b'"last": 3}']


def careful(output):
    """Write a file completely or not at all; an error is one line."""
    try:
        with atomic_path(Path(output)) as temporary, temporary.open("wb") as file:
            for line in LINES:
                file.write(line)
                file.flush()
                time.sleep(0.002)
    except (OSError, PointillistError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def careless(output):
    """Write into the file itself, so that a fault leaves half of it."""
    try:
        with open(output, "wb") as file:
            for line in LINES:
                file.write(line)
                file.flush()
                time.sleep(0.002)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def talkative(output):
    """Let Python print its errors."""
    with atomic_path(Path(output)) as temporary:
        temporary.write_bytes(b"".join(LINES))
    return 0


def forgetful(output):
    """Leave something behind when writing fails."""
    scrap = Path(output).with_name(f".pointillist-scrap-{os.getpid()}")
    os.mkdir(scrap)
    code = careful(output)
    if code == 0:
        os.rmdir(scrap)
    return code
