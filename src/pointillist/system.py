"""Differences between Linux, macOS and Windows: files, signals, consoles, memory and the processor's name.

Nothing else in the package asks which system it runs on.
"""

import io
import logging
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)

SYSTEM = sys.platform
"""``"linux"``, ``"darwin"`` (macOS), ``"win32"`` (Windows), or another system, which is taken for a plain Unix."""

ENDINGS = ("SIGTERM", "SIGHUP")
"""Signals that ask the program to end, besides Ctrl-C; Windows has no SIGHUP."""

PROCESSES = Path("/proc")  # on Linux; not there in a bare root
_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds between tries to replace a file that another program has open


def replace_file(temporary: Path, target: Path) -> None:
    """Move a file to its place, over the one that is there.

    Windows refuses while another program, a virus scanner often, has the old file open: there it is tried for 1.5 seconds.
    """
    for wait in (*_WAITS, None) if SYSTEM == "win32" else (None,):
        try:
            os.replace(temporary, target)
        except PermissionError as error:
            if SYSTEM != "win32":
                raise
            if wait is None:
                words = "Permission denied; if another program has it open, close it there and try again"
                raise PermissionError(error.errno, words, str(temporary)) from error
            time.sleep(wait)
        else:
            return


def flush_file(path: Path) -> None:
    """Have a file's content on the disk before going on."""
    # Opened for writing because Windows flushes no other handle.
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Make a new name in a folder durable where the system allows it; the file's content is already safe."""
    if SYSTEM == "win32":  # where folders cannot be opened
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:  # as network drives answer
        logger.debug("cannot flush folder %s: %s", folder, error)


def machine() -> str | None:
    """A name that tells this machine from others, as long as it runs: numbers of processes mean something only there.

    Containers with processes of their own are machines of their own, whatever they are called. None where the system does
    not say.
    """
    try:
        started = (PROCESSES / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {os.readlink(PROCESSES / 'self/ns/pid')}"
    except OSError as error:
        logger.debug("this system does not tell itself from others: %s", error)
        return None


def is_running(process: int) -> bool:
    """False where no process with this number runs; true too where the system does not tell."""
    if SYSTEM == "win32":  # where a signal to find out would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # as that of another user
        return True
    return True


@contextmanager
def handling(names: Sequence[str], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """While entered, signals of these names call `handler`, as far as the system has them.

    An ignored SIGTERM or SIGHUP, as by nohup, stays ignored.
    """
    previous: dict[int, Any] = {}
    # Python lets only the main thread handle signals; elsewhere there is nothing to catch.
    if threading.current_thread() is threading.main_thread():
        for number in [getattr(signal, name) for name in names if hasattr(signal, name)]:
            if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
                previous[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def holding_signals() -> Iterator[None]:
    """While entered, Ctrl-C and what else ends a program waits; the first that came is raised at the end.

    It is for short calls of libraries in other languages, which lose an exception that a signal raises in Python.
    """
    received: list[int] = []
    with handling(("SIGINT", *ENDINGS), lambda number, frame: received.append(number)):
        yield
    if received:
        signal.raise_signal(received[0])


def keep_printing() -> None:
    """Have a stdout and a stderr that take every text.

    They show ``?`` for a sign that their encoding lacks, as cp1252 lacks λ, instead of failing. Programs without a console
    are started without streams by Windows: theirs lead nowhere.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open for as long as the program runs
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def memory_peak(process: int | None = None) -> int:
    """The most bytes that this process, or on Linux another, has had in memory; 0 where the system does not tell."""
    status = PROCESSES / ("self" if process is None else str(process)) / "status"
    if SYSTEM == "linux" and status.exists():
        # Not from getrusage: there the maximum is handed down by the process that started this one.
        lines = status.read_text(encoding="ascii").splitlines()
        return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
    if process is not None:
        return 0
    if SYSTEM == "win32":
        return _windows_peak()
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if SYSTEM == "darwin" else 1024  # macOS tells bytes, others kilobytes
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _windows_peak() -> int:
    import ctypes
    from ctypes import wintypes

    class Counters(ctypes.Structure):
        _fields_ = [
            ("size", wintypes.DWORD),
            ("faults", wintypes.DWORD),
            ("peak", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 7),
        ]

    counters = Counters(size=ctypes.sizeof(Counters))
    library: Any = ctypes
    process, asked = library.windll.kernel32.GetCurrentProcess, library.windll.psapi.GetProcessMemoryInfo
    process.restype = wintypes.HANDLE
    asked.argtypes = [wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD]
    asked(process(), ctypes.byref(counters), counters.size)
    return int(counters.peak)


def load() -> list[float]:
    """Programs that wanted to run in the last 1, 5 and 15 minutes; empty where the system does not tell, as Windows."""
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else []


def processor() -> str:
    """The processor's name, as its maker gives it where the system tells."""
    named: list[str] = []
    if SYSTEM == "linux" and (told := PROCESSES / "cpuinfo").exists():
        lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
