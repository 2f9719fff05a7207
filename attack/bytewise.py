"""Mutations of bytes, whatever they mean: flips, cuts, repeats, splices between files, and numbers where lengths may be."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

_NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
_ESCAPES = (
    b"\x1b[2J\x1b[31m",
    b"\x9b31m",
    b"\xe2\x80\xae",
    b"\x00",
    b"\xff\xfe\xfd",
    b"\r\n",
    b"%s%n",
    b"\x1b]0;title\x07",
)
_LARGEST = 2**22
"""Bytes that a mutated file has at most."""


def mutated_bytes(rng: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """The content with one to four changes, mostly near its beginning; `others` are files that parts may come from."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        changed = changed or bytearray(b"\0")
        place = int(rng.randrange(len(changed)) * rng.random() ** 2)
        if others and rng.random() < 0.05:
            changed = _spliced(rng, changed, rng.choice(others))
        else:
            rng.choice(_CHANGES)(rng, changed, place)
        del changed[_LARGEST:]
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)


def _flip(rng: random.Random, changed: bytearray, place: int) -> None:
    changed[place] ^= 1 << rng.randrange(8)


def _extreme(rng: random.Random, changed: bytearray, place: int) -> None:
    changed[place] = rng.choice([0, 1, 127, 128, 255])


def _noise(rng: random.Random, changed: bytearray, place: int) -> None:
    changed[place : place + 4] = rng.randbytes(4)


def _stutter(rng: random.Random, changed: bytearray, place: int) -> None:
    length = rng.choice([1, 2, 4, 8, 64, 512])
    changed[place:place] = changed[place : place + length] * rng.choice([1, 1, 1, 2, 100])


def _cut(rng: random.Random, changed: bytearray, place: int) -> None:
    del changed[place : place + rng.choice([1, 2, 4, 8, 64])]


def _length(rng: random.Random, changed: bytearray, place: int) -> None:
    """Write a number in two, four or eight bytes, in either order, at an even place."""
    form, size = rng.choice([("H", 2), ("I", 4), ("Q", 8)])
    place -= place % 2
    number = (rng.choice(_NUMBERS) + rng.choice([0, 0, 1, -1])) % 2 ** (8 * size)
    changed[place : place + size] = struct.pack(rng.choice("<>") + form, number)


def _escape(rng: random.Random, changed: bytearray, place: int) -> None:
    words = rng.choice(_ESCAPES)
    changed[place : place + (len(words) if rng.random() < 0.5 else 0)] = words


def _swap(rng: random.Random, changed: bytearray, place: int) -> None:
    other, length = rng.randrange(len(changed)), rng.choice([1, 4, 12, 32])
    first, second = changed[place : place + length], changed[other : other + length]
    if len(first) == len(second) and abs(place - other) >= length:
        changed[place : place + length], changed[other : other + length] = second, first


_CHANGES: tuple[Callable[[random.Random, bytearray, int], None], ...] = (
    _flip, _flip, _extreme, _noise, _stutter, _cut, _length, _length, _escape, _swap,
)  # fmt: skip


def _spliced(rng: random.Random, changed: bytearray, other: bytes) -> bytearray:
    """The beginning of one file with the end of another, or a part of the other in the middle."""
    here, there = rng.randrange(len(changed) + 1), rng.randrange(len(other) + 1)
    if rng.random() < 0.5:
        return changed[:here] + other[there:]
    return changed[:here] + other[there : there + rng.randrange(256)] + changed[here:]
