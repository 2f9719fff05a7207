"""Record which modules call which while one small image goes through `learn` and through `inpaint`.

Run as a script, it prints the records as JSON: a fresh process has no modules, threads or pools of others in it, and the
commands say nothing into the pages that are built. `recorded` starts that process and reads them.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "pointillist"
_BACKENDS = f"{PACKAGE}.backends"

COMMANDS = {
    "learn": [
        "learn",
        "photo.png",
        "-o",
        "model.safetensors",
        "--filters",
        "4",
        "--size",
        "5",
        "--epochs",
        "2",
        "--jobs",
        "1",
    ],
    "inpaint": ["inpaint", "marked.png", "-o", "mended.png", "--jobs", "1"],
}


@dataclass(frozen=True)
class Call:
    """Calls from one module into another.

    `functions` are those called, in order; `stack` are the modules above the first call, the caller first.
    """

    caller: str
    callee: str
    functions: list[str]
    stack: list[str]


class Recorder:
    """A profile function that keeps the calls between any two modules, in the order in which they happen first."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], Call] = {}
        self.starters: dict[threading.Thread, list[str]] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        if frame.f_code is threading.Thread.start.__code__:
            self.starters[frame.f_locals["self"]] = self.stack(frame.f_back)
        elif (callee := _module(frame)) and frame.f_code.co_name != "<module>":
            self.add(callee, _function(frame), frame.f_back)

    def stack(self, frame: FrameType | None) -> list[str]:
        """Modules above a frame, and in a thread those above where it was started."""
        above = _modules_above(frame)
        return above + self.starters.get(threading.current_thread(), [])

    def add(self, callee: str, function: str, caller: FrameType | None) -> None:
        stack = self.stack(caller)
        if stack and stack[0] != callee:
            call = self.calls.setdefault((stack[0], callee), Call(stack[0], callee, [], stack))
            if function not in call.functions:
                call.functions.append(function)


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return name if name == PACKAGE or name.startswith(f"{PACKAGE}.") else ""


def _modules_above(frame: FrameType | None) -> list[str]:
    """Modules of the package on the stack, the nearest first; none while something is imported or compiled."""
    found: list[str] = []
    while frame is not None:
        outside = frame.f_globals.get("__name__", "").partition(".")[0]
        if outside in ("numba", "llvmlite") or (frame.f_code.co_name == "<module>" and outside == PACKAGE):
            return []
        name = _module(frame)
        if name and name not in found:
            found.append(name)
        frame = frame.f_back
    return found


def _function(frame: FrameType) -> str:
    """The name of a function as a reader knows it: a constructor is its class."""
    code = frame.f_code
    if code.co_name in ("__init__", "__new__", "__post_init__"):
        first = frame.f_locals.get(code.co_varnames[0])
        return (first if isinstance(first, type) else type(first)).__name__
    return code.co_qualname.partition(".<locals>")[0].partition(".__")[0]


@contextlib.contextmanager
def _kernels_seen(recorder: Recorder) -> Iterator[None]:
    """Make calls of compiled kernels visible, which no profile function sees."""
    replaced: list[tuple[ModuleType, str, Any]] = []
    for module in [one for name, one in list(sys.modules.items()) if name.startswith(f"{PACKAGE}.")]:
        if module.__name__.startswith(_BACKENDS):
            continue  # kernels that kernels call stay as they are
        for name, value in list(vars(module).items()):
            if (seen := _seen(value, recorder)) is not value:
                replaced.append((module, name, value))
                setattr(module, name, seen)
    try:
        yield
    finally:
        for module, name, value in replaced:
            setattr(module, name, value)


def _seen(value: Any, recorder: Recorder) -> Any:
    """A kernel, or a module of kernels, whose calls are recorded; anything else as it is."""
    if isinstance(value, ModuleType) and value.__name__.startswith(_BACKENDS):
        twin = ModuleType(value.__name__)
        vars(twin).update({name: _seen(one, recorder) for name, one in vars(value).items() if hasattr(one, "py_func")})
        vars(twin).update({name: one for name, one in vars(value).items() if name not in vars(twin)})
        return twin
    if not hasattr(value, "py_func"):
        return value

    @wraps(value.py_func)
    def call(*arguments: Any, **options: Any) -> Any:
        recorder.add(value.py_func.__module__, value.py_func.__name__, inspect.currentframe().f_back)
        return value(*arguments, **options)

    return call


def _import_all() -> None:
    """Import what the commands import while they run, so that kernels are found and imports are no part of the record."""
    for folder in ("cli", "data", "dictionary", "learners", "model", "restore", "solvers", "storage"):
        for path in sorted((ROOT / "src" / PACKAGE / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / "src").with_suffix("").parts
            if parts[-1] not in ("__init__", "__main__"):
                importlib.import_module(".".join(parts))


def _write_images(folder: Path) -> None:
    """A photograph to learn from, and a coloured one with a scratch in magenta."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    waves = np.add.outer(np.sin(np.arange(48) / 3), np.cos(np.arange(64) / 5)) * 50 + 120
    grey = (waves + rng.normal(0, 8, waves.shape)).clip(0, 255).astype(np.uint8)
    Image.fromarray(grey).save(folder / "photo.png")
    colour = np.stack([grey, grey // 2 + 40, 200 - grey // 2], axis=-1)
    colour[20:23, 10:50] = (255, 0, 255)
    Image.fromarray(colour).save(folder / "marked.png")


def record(command: list[str]) -> list[Call]:
    """Calls between modules while a command runs in the current folder."""
    from pointillist.cli import main

    recorder = Recorder()
    with _kernels_seen(recorder):
        threading.setprofile(recorder)
        sys.setprofile(recorder)
        try:
            main(command)
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"pointillist {' '.join(command)} failed") from ended
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return list(recorder.calls.values())


@cache
def recorded() -> dict[str, list[Call]]:
    """Calls of each command of `COMMANDS`, recorded in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__], cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"the journey was not recorded:\n{done.stdout}{done.stderr}")
    return {name: [Call(**call) for call in calls] for name, calls in json.loads(done.stdout).items()}


def main() -> None:
    _write_images(Path.cwd())
    _import_all()
    with contextlib.redirect_stdout(sys.stderr):
        records = {name: [vars(call) for call in record(command)] for name, command in COMMANDS.items()}
    json.dump(records, sys.stdout)


if __name__ == "__main__":
    main()
