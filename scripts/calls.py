"""Modules and functions of the package that one call enters: how far a reader has to go to follow it.

`python scripts/calls.py` prints them for some calls, `python scripts/calls.py encode` lists what that call enters too. Each
call is made twice; the second is counted, so that imports and compilation are left out, and in the threads that it starts.
Those that waited for work are not seen: with one processor there are none, and the numbers do not depend on who takes it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from PIL import Image

import pointillist as pt
from pointillist.cli import main

os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # joblib's number of processors

PACKAGE = str(Path(pt.__file__).parent)


def entered(call: Callable[[], Any]) -> set[tuple[str, str]]:
    """File and qualified name of every function of the package that a second call enters."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found.add((code.co_filename, code.co_qualname))

    call()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def command(line: str, answer: str) -> Callable[[], None]:
    """A call of the command line in this process, which replaces its last answer."""

    def call() -> None:
        Path(answer).unlink(missing_ok=True)
        sys.argv = ["pointillist", *line.split()]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                main()
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(said.getvalue()) from end

    return call


def calls() -> dict[str, Callable[[], Any]]:
    """Calls by name, in a folder that holds a photograph."""
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((2, 32, 32)).astype(np.float32)
    filters = rng.standard_normal((8, 5, 5)).astype(np.float32) / 5
    picture = 255 * rng.random((64, 64)).astype(np.float32)
    picture[20:23, 10:40] = np.nan
    Image.fromarray((255 * rng.random((48, 48))).astype(np.uint8)).save("photo.png")
    learn = "learn photo.png -o m.safetensors --filters 4 --size 5 --epochs 2"
    return {
        "encode": lambda: pt.encode(signals, filters, 0.5),
        "OnlineCSC.fit": lambda: pt.OnlineCSC(8, 5, 0.5, batch_size=2, random_state=0).fit(signals),
        "inpaint": lambda: pt.inpaint(picture),
        "pointillist learn": command(learn, "m.safetensors"),
        "pointillist encode": command("encode m.safetensors photo.png -o c.safetensors", "c.safetensors"),
    }


def show(listed: list[str]) -> None:
    """Print a line for each call, and what the listed ones enter."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, call in calls().items():
            found = entered(call)
            print(f"{name}: {len({file for file, _ in found})} modules, {len(found)} functions")
            if name in listed or "all" in listed:
                for file, function in sorted(found):
                    print(f"    {os.path.relpath(file, PACKAGE)}  {function}")
        os.chdir("/")


if __name__ == "__main__":
    show(sys.argv[1:])
