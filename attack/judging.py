"""What counts as a finding: judges answers and errors of readers, and what commands print and leave behind."""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attack.traps import SECRET
from pointillist.cli.app import run
from pointillist.errors import PointillistError

NAME = "strange"
"""What the names of strange files begin with; a clear error says it."""
_CODES = (0, 2)
_FAILING_DISK = os.strerror(errno.EIO)
"""Words for what is no fault of the content, as when a process reads its own memory: such a command ends with 1."""
_MARK = ".pointillist-"
"""What the names of the package's temporary folders begin with."""
_ARGUMENT = r"error: (--[a-z-]+|X\[\d+\]|the model's) "
_UNCLEAR = r"Traceback|unexpected \w+(Error|Exception|Warning|Exit)"
_IGNORED = r"rawpy is being used in a process|Image size .* exceeds limit"
COMMAND = ("-m", "pointillist.cli")
HANG = 30.0
"""Seconds that a command may take as a process of its own, with its start."""


class Fault(NamedTuple):
    """Something that is wrong, before it is known which attempt it belongs to."""

    kind: str
    title: str
    detail: str = ""


def judge_reader(read: Callable[[Path], Any], path: Path) -> list[Fault]:
    """Let a function of the library read a file."""
    called = getattr(read, "__name__", str(read)).strip("_")
    with warnings.catch_warnings(record=True) as caught, _unheard():
        warnings.simplefilter("always")
        try:
            faults = _judge_answer(called, read(path))
        except MemoryError:
            faults = [Fault("memory", f"{called} asked for more memory than there is", traceback.format_exc())]
        except Exception as error:
            faults = _judge_error(called, error)
    for one in caught:
        if issubclass(one.category, RuntimeWarning) and not re.match(_IGNORED, str(one.message)):
            faults.append(Fault("warning", f"{called}: {one.message}", f"{one.filename}:{one.lineno}"))
    return faults


@contextmanager
def _unheard() -> Iterator[None]:
    """Let logs go nowhere."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _judge_error(called: str, error: Exception) -> list[Fault]:
    words = str(error)
    # Settings of a model that only signals show not to fit are named as arguments.
    clear = isinstance(error, PointillistError | OSError) or type(error) is ValueError
    if clear and NAME in words:
        return []
    if called == "coded" and type(error) is ValueError and re.match(r"(penalty|signals?|X|filters)\b", words):
        return []
    return [Fault("unnamed error", f"{called}: {type(error).__name__}: {words[:300]}", traceback.format_exc())]


def _judge_answer(called: str, answer: Any) -> list[Fault]:
    for array in _arrays(answer):
        if array.dtype.kind == "O":
            return [Fault("code ran", f"{called} gave Python objects")]
        if array.dtype.kind == "f" and array.size and np.any(array == SECRET):
            return [Fault("other file", f"{called} brought another file to light")]
    return []


def _arrays(answer: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(answer, np.ndarray):
        yield answer
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from _arrays(one)
    elif isinstance(getattr(answer, "pixels", None), np.ndarray):
        yield answer.pixels


def judge_command(words: Sequence[str]) -> list[Fault]:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("error", RuntimeWarning)  # an overflow is no answer
        warnings.filterwarnings("ignore", _IGNORED)
        try:
            code = run(list(words))
        except BaseException as error:  # nothing may come out of it
            detail = traceback.format_exc()
            return [Fault("unnamed error", f"{words[0]}: {type(error).__name__} came out: {error}", detail)]
    return judge_printed(words, code, out.getvalue(), err.getvalue())


def judge_printed(words: Sequence[str], code: int, out: str, err: str) -> list[Fault]:
    """Judge the exit code of a command and what it printed."""
    command, printed = " ".join(map(ascii, words)), out + err
    faults = []
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    accepted = code in _CODES or (code == 1 and any(_FAILING_DISK in line for line in errors))
    if not accepted or (code and not errors):
        faults.append(Fault("unnamed error", f"{words[0]} ended with {code}: {err.strip()[-300:]}"))
    elif code and not any(_names(line, words) for line in errors):
        faults.append(Fault("unnamed error", f"{words[0]} does not name the file: {errors[-1][:300]}"))
    if re.search(_UNCLEAR, printed):
        faults.append(Fault("unnamed error", f"{words[0]} shows an error that is not clear: {err.strip()[-300:]}"))
    if "RuntimeWarning" in printed:
        faults.append(Fault("warning", f"{words[0]}: {err.strip()[:300]}"))
    if not all(sign.isprintable() or sign == "\n" for sign in printed):
        faults.append(Fault("raw output", f"{words[0]} prints control characters: {printed[:300]!a}"))
    return [fault._replace(detail=f"{command}\n{out}\n{err}\n{fault.detail}") for fault in faults]


def _names(line: str, words: Sequence[str]) -> bool:
    """Whether an error names the file, the folder that was given in its place, or what does not fit to it."""
    others = [Path(word).name for word in words if "/helpers-" in word]
    folders = [word for word in words if word.endswith("/in")]
    return any(name in line for name in (NAME, *folders, *others)) or re.match(_ARGUMENT, line) is not None


def judge_process(words: Sequence[str], folder: Path, memory: int) -> list[Fault]:
    """Run a command as a process of its own, which may take so many bytes of memory."""
    command = [sys.executable, *COMMAND, *words]
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        ended = _ended(process)
    texts = [(folder / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr")]
    for name in ("stdout", "stderr"):
        (folder / name).unlink()
    if ended is None:
        return [Fault("hang", f"{words[0]} took longer than {HANG} s", " ".join(map(ascii, words)))]
    code, peak = ended
    faults = judge_printed(words, code, *texts)
    if code < 0:
        faults = [Fault("crash", f"{words[0]} ended with signal {-code}", texts[1])]
    if peak > memory:
        faults.append(Fault("memory", f"{words[0]} took {peak / 1e6:,.0f} MB, {memory / 1e6:,.0f} MB are allowed"))
    return faults


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, int] | None:
    """Exit code and bytes of memory of a process when it has ended; None where it had to be killed."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        found, status, used = os.wait4(process.pid, os.WNOHANG)
        if found:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, 1024 * used.ru_maxrss
        time.sleep(0.02)
    process.kill()
    process.wait()
    return None


def judge_left(folder: Path, temporary: Path) -> list[Fault]:
    """Look for temporary files that readers or commands left."""
    left = [
        Path(place) / name
        for place, folders, files in os.walk(folder)
        for name in [*folders, *files]
        if name.startswith(_MARK)
    ]
    left += list(temporary.iterdir())
    return [Fault("left behind", f"{path.name} was left behind", str(path)) for path in left]


def peak_memory() -> int:
    """Bytes that this process took at most since `reset_peak`."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def reset_peak() -> int:
    """Let `peak_memory` begin anew; the bytes that the process has now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return peak_memory()


@contextmanager
def quiet_descriptors(path: Path) -> Iterator[None]:
    """Let what C libraries print to the terminal go into a file instead."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        for number in (1, 2):
            os.dup2(file, number)
        yield
    finally:
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(file)
