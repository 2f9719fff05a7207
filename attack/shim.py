"""Counts the calls by which a process touches files of one folder, and lets one or more of them go wrong.

It works in Python, by replacing the functions of `os`, `io` and `safetensors` in the process that is attacked, and so on
every system. `attack.syscalls` does the same to real system calls.
"""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import safetensors
import safetensors.numpy

WRITING = ("mkdir", "open w", "write", "truncate", "fsync", "close", "replace", "chmod", "serialise")
"""Calls that a full disk can refuse."""
REFUSED = {
    "ENOSPC": WRITING,
    "EROFS": ("mkdir", "open w", "replace", "chmod", "unlink", "rmdir", "truncate", "serialise"),
    "EACCES": ("mkdir", "open w", "open r", "replace", "chmod", "unlink", "rmdir", "scan", "serialise", "map"),
    "EMFILE": ("open w", "open r", "scan", "serialise", "map"),
    "EINTR": ("open w", "open r", "read", "write", "fsync", "close"),
    "EIO": (*WRITING, "unlink", "rmdir", "open r", "read", "scan", "map"),
    "short": ("write", "serialise"),
}
"""Which calls each fault can hit; "short" is a write that takes only a part."""


class Fault(NamedTuple):
    """What goes wrong: calls `at` to `at` + `lasting` - 1 that `kind` can hit.

    `kind` is the name of an error, "short", or that of a signal which the process gets just before the call.
    """

    at: int
    kind: str
    lasting: int = 1


class Shim:
    """Replaces functions of this process, until it ends.

    Parameters
    ----------
    folder : str
        Calls that touch anything in this folder are counted.
    fault : Fault, optional

    Attributes
    ----------
    calls : list of (str, str)
        Verb and path of every call that was counted.
    handles : set of int
        Open files of the folder.
    """

    def __init__(self, folder: str, fault: Fault | None = None) -> None:
        self._folder = os.path.join(os.path.realpath(folder), "")
        self._fault = fault
        self.handles: set[int] = set()
        self.calls: list[tuple[str, str]] = []

    def install(self) -> None:
        """Replace everything."""
        for name, verb in (("mkdir", "mkdir"), ("rmdir", "rmdir"), ("unlink", "unlink"), ("remove", "unlink")):
            self._replace(os, name, self._by_path(getattr(os, name), verb))
        for name, verb in (("replace", "replace"), ("rename", "replace"), ("chmod", "chmod"), ("truncate", "truncate")):
            self._replace(os, name, self._by_path(getattr(os, name), verb))
        for name in ("scandir", "listdir"):
            self._replace(os, name, self._by_path(getattr(os, name), "scan"))
        for name, verb in (("fsync", "fsync"), ("ftruncate", "truncate"), ("write", "write")):
            self._replace(os, name, self._by_handle(getattr(os, name), verb))
        self._replace(os, "open", self._opening(os.open))
        self._replace(os, "close", self._closing(os.close))
        counted, opening = _counted_file(self), _opening_streams(self, io.open)
        self._replace(io, "FileIO", counted)
        self._replace(io, "open", opening)
        self._replace(builtins, "open", opening)
        self._replace(safetensors.numpy, "serialize_file", self._serialising(safetensors.numpy.serialize_file))
        self._replace(safetensors, "safe_open", self._by_path(safetensors.safe_open, "map"))
        self._replace(mmap, "mmap", _counted_map(self))

    def touch(self, verb: str, path: Any, instead: Callable[[], None] | None = None) -> None:
        """Count a call, and let it go wrong if it is its turn; `instead` does the part that is still done then."""
        if not self.is_ours(path):
            return
        self.calls.append((verb, str(path)))
        fault = self._fault
        if fault is None or not fault.at <= len(self.calls) < fault.at + fault.lasting:
            return
        if fault.kind.startswith("SIG"):
            if instead is not None and fault.kind == "SIGKILL":
                instead()
            signal.raise_signal(getattr(signal, fault.kind))
        elif verb in REFUSED[fault.kind]:
            if instead is not None and fault.kind != "EINTR":  # an interrupted call has done nothing
                instead()
            number = getattr(errno, "ENOSPC" if fault.kind == "short" else fault.kind)
            if verb == "serialise":
                raise safetensors.SafetensorError(f"I/O error: {os.strerror(number)} (os error {number})")
            raise OSError(number, os.strerror(number), None if isinstance(path, int) else str(path))

    def is_ours(self, path: Any) -> bool:
        """Whether a path, or an open file, belongs to the folder."""
        if isinstance(path, int):
            return path in self.handles
        try:
            text = os.fsdecode(path)
        except TypeError:
            return False
        return (os.path.abspath(text) + os.sep).startswith(self._folder)

    def is_short(self) -> bool:
        """Whether the next write is to take only a part."""
        fault, number = self._fault, len(self.calls) + 1
        return fault is not None and fault.kind == "short" and fault.at <= number < fault.at + fault.lasting

    def _replace(self, module: Any, name: str, new: Any) -> None:
        """Put a function into its module, and into modules of the package that have imported it by name."""
        old = getattr(module, name)
        setattr(module, name, new)
        for other in [one for key, one in sys.modules.items() if key.startswith("pointillist.")]:
            for held in [key for key, value in vars(other).items() if value is old]:
                setattr(other, held, new)

    def _by_path(self, old: Callable[..., Any], verb: str) -> Callable[..., Any]:
        def call(path: Any = ".", *rest: Any, **how: Any) -> Any:
            place = how.get("dir_fd")
            self.touch(verb, path if place is None else place)
            return old(path, *rest, **how)

        return call

    def _by_handle(self, old: Callable[..., Any], verb: str) -> Callable[..., Any]:
        def call(handle: int, *rest: Any, **how: Any) -> Any:
            self.touch(verb, handle)
            return old(handle, *rest, **how)

        return call

    def _opening(self, old: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, flags: int, *rest: Any, **how: Any) -> int:
            where = path if how.get("dir_fd") is None else how["dir_fd"]
            self.touch("open w" if flags & (os.O_WRONLY | os.O_RDWR) else "open r", where)
            handle = old(path, flags, *rest, **how)
            if self.is_ours(where):
                self.handles.add(handle)
            return handle

        return call

    def _closing(self, old: Callable[[int], None]) -> Callable[[int], None]:
        def call(handle: int) -> None:
            try:
                self.touch("close", handle)
            finally:
                self.handles.discard(handle)
                old(handle)  # a file is closed, whatever the system says of it

        return call

    def _serialising(self, old: Callable[..., None]) -> Callable[..., None]:
        def call(tensors: Any, path: Any, *rest: Any, **how: Any) -> None:
            def half() -> None:
                old(tensors, path, *rest, **how)
                os.truncate(path, os.stat(path).st_size // 2)

            self.touch("serialise", path, half)
            old(tensors, path, *rest, **how)

        return call


def _counted_map(shim: Shim) -> type[mmap.mmap]:
    class CountedMap(mmap.mmap):
        """A mapped file, whose mapping is counted."""

        def __new__(cls, handle: int, *rest: Any, **how: Any) -> CountedMap:
            shim.touch("map", handle)
            return super().__new__(cls, handle, *rest, **how)

    return CountedMap


def _counted_file(shim: Shim) -> type[io.FileIO]:
    plain = io.FileIO

    class CountedFile(io.FileIO):
        """A file whose reads, writes and closing are counted."""

        def __init__(self, file: Any, mode: str = "r", closefd: bool = True, opener: Any = None) -> None:
            super().__init__(file, mode, closefd, opener)
            if shim.is_ours(self.name):
                shim.handles.add(self.fileno())

        def write(self, data: Any, /) -> int:
            part = max(1, len(memoryview(data)) // 2)
            if shim.is_short() and shim.is_ours(self.name):
                shim.calls.append(("write", str(self.name)))
                return super().write(memoryview(data).cast("B")[:part])

            def half() -> None:
                plain.write(self, memoryview(data).cast("B")[:part])

            shim.touch("write", self.name, half)
            return super().write(data)

        def readinto(self, buffer: Any, /) -> int:
            shim.touch("read", self.name)
            return super().readinto(buffer)

        def readall(self) -> bytes:
            shim.touch("read", self.name)
            return super().readall()

        def truncate(self, size: int | None = None, /) -> int:
            shim.touch("truncate", self.name)
            return super().truncate(size)

        def close(self) -> None:
            if not self.closed:
                try:
                    shim.touch("close", self.name)
                finally:
                    shim.handles.discard(self.fileno())
                    super().close()

    return CountedFile


def _opening_streams(shim: Shim, old: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if isinstance(file, int) or not shim.is_ours(file):
            return old(file, mode, buffering, encoding, errors, newline, closefd, opener)
        shim.touch("open w" if set(mode) & set("wax+") else "open r", file)
        raw = io.FileIO(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        kind: Any = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
        buffered = kind(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, io.text_encoding(encoding), errors, newline, buffering == 1)

    return call
