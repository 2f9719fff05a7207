"""Traps for readers: a pickle that leaves a mark, somebody else's file, bombs, and pipes and links in place of files."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import os
import random
import shutil
import socket
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

SECRET = np.float32(-1234.5678)
"""The number that fills a file which no other file may bring to light."""
_ZEROS = 2**25
_RAN = "ran"


class Traps:
    """Traps of one attempt, in a folder of their own.

    Parameters
    ----------
    folder : Path
        Made, with somebody's secret file in it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ran = folder / _RAN
        self.secret = folder / "secret.raw"
        np.full(4096, SECRET).tofile(self.secret)

    @property
    def pickle(self) -> bytes:
        """A pickle that makes a file when it is loaded."""
        return f"cbuiltins\nopen\n(V{self._ran}\nVw\ntR.".encode()

    @property
    def sprung(self) -> bool:
        """Whether a pickle was loaded."""
        return self._ran.exists()


@functools.cache
def packed_zeros() -> bytes:
    """So many zeros that nobody wants them in memory for nothing, packed by zlib."""
    return zlib.compress(bytes(_ZEROS))


@functools.cache
def bombs() -> dict[str, bytes]:
    """A gigabyte of zeros as each codec packs it, in a megabyte or less."""
    part, count = bytes(2**22), 2**8
    packer = zlib.compressobj(6)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    # The last, empty block, and the checksum of so many zeros.
    deflated = head + block * count + b"\x03\x00" + ((len(part) * count % 65521) << 16 | 1).to_bytes(4, "big")
    return {
        "zlib": deflated,
        "bz2": bz2.compress(part) * count,
        "lzma": lzma.compress(part) * count,
        "gzip": gzip.compress(part, mtime=0) * count,
    }


def _pipe(path: Path, rng: random.Random, traps: Traps) -> None:
    os.mkfifo(path)


def _socket(path: Path, rng: random.Random, traps: Traps) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
        os.rename("socket", path.name)
    finally:
        os.chdir(here)


def _folder(path: Path, rng: random.Random, traps: Traps) -> None:
    path.mkdir()
    if rng.random() < 0.5:
        (path / path.name).mkdir()
        os.mkfifo(path / f"inner{path.suffix}")


def _circle(path: Path, rng: random.Random, traps: Traps) -> None:
    path.symlink_to(path.name)


def _nowhere(path: Path, rng: random.Random, traps: Traps) -> None:
    path.symlink_to("nothing")


def _device(path: Path, rng: random.Random, traps: Traps) -> None:
    path.symlink_to(rng.choice(["/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/dev/stdin", "/proc/self/mem"]))


def _elsewhere(path: Path, rng: random.Random, traps: Traps) -> None:
    path.symlink_to(traps.secret)


def _empty(path: Path, rng: random.Random, traps: Traps) -> None:
    path.write_bytes(b"")


def _sparse(path: Path, rng: random.Random, traps: Traps) -> None:
    with path.open("wb") as file:
        file.write(rng.choice([b"", b"\x93NUMPY\1\0", b"\x89PNG\r\n\x1a\n", b"II*\0\x08\0\0\0", b"\xff\xd8\xff\xe0"]))
        file.truncate(rng.choice([2**20, 2**32, 2**40]))


STAND_INS: tuple[Callable[[Path, random.Random, Traps], None], ...] = (
    _pipe, _socket, _folder, _circle, _nowhere, _device, _elsewhere, _empty, _sparse,
)  # fmt: skip
"""What can lie in the place of a file."""


def put_in_place(path: Path, rng: random.Random, traps: Traps) -> str:
    """Put something that is no usual file in the place of a file or store; the name of what it is."""
    if path.is_dir() and not path.is_symlink():
        inner = sorted(one for one in path.rglob("*") if one.is_file())
        if inner and rng.random() < 0.8:
            path = rng.choice(inner)
        else:
            shutil.rmtree(path)
    path.unlink(missing_ok=True)
    made = rng.choice(STAND_INS)
    made(path, rng, traps)
    return made.__name__.strip("_")
