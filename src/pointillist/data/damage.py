"""Damaged files: refused by name before anything is allocated for them, or left out, counted and said once."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, BinaryIO, Literal, TypeVar

from pointillist.errors import UnreadableFileError

logger = logging.getLogger(__name__)

OnError = Literal["raise", "skip"]
Item = TypeVar("Item")
Content = TypeVar("Content")

LARGEST_CHUNK = 2**30
"""Bytes that are decoded together at most, for whatever small part of them."""

_SMALL = 2**26
"""Bytes of samples that any file may claim."""
_RATIO = 10_000
"""Bytes of samples that one stored byte may stand for; only nearly empty arrays come near to it."""
_SIZES = {256: "width", 257: "height", 277: "number of channels", 278: "height of strips", 32997: "depth"}
"""Tags of a TIFF page that hold one number, and what it is."""
_MOST_TAGS = 4096
"""Tags of a page that are looked at; files have some twenty, and damaged ones claim billions."""


@contextmanager
def damage_named(name: object) -> Iterator[None]:
    """Whatever goes wrong, but for what is not the file's fault, says which file it was."""
    try:
        yield
    except (ImportError, MemoryError, UnreadableFileError):
        raise
    except Exception as error:  # readers meet a damaged file with exceptions of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableFileError(f"cannot read {name}: {reason}") from error


def check_claim(claimed: int, stored: Iterable[int]) -> None:
    """Raise ValueError if so many bytes of samples cannot come from files of these sizes, asking for no more than needed."""
    held, left = 0, iter(stored)
    while claimed > max(_SMALL, _RATIO * held):
        size = next(left, None)
        if size is None:
            raise ValueError(f"it claims {claimed:,} bytes of samples but has {held:,}: it is damaged or empty")
        held += size


def check_page(page: Any, stored: int) -> None:
    """Raise ValueError if a TIFF file of so many bytes does not have what tifffile's ``page`` of it claims."""
    segments, claimed = len(page.dataoffsets), prod(page.chunked)
    if segments < claimed:
        raise ValueError(f"it has {segments:,} of {claimed:,} strips or tiles: it is damaged")
    check_claim(page.nbytes, [stored])


def check_pages(stream: BinaryIO) -> None:
    """Raise ValueError for what tifffile would go round for ever in, or take all memory for.

    The first are pages that lead in a circle, the others sizes that are lists of numbers instead of one.
    """
    stream.seek(0)
    head = stream.read(16)
    order, big = ">" if head[:2] == b"MM" else "<", b"+" in head[2:4]
    link, count, entry = (
        (f"{order}Q", f"{order}Q", f"{order}HHQ8x") if big else (f"{order}I", f"{order}H", f"{order}HHI4x")
    )
    size, seen = struct.calcsize(entry), set[int]()
    try:
        (place,) = struct.unpack_from(link, head, 8 if big else 4)
        while place:
            if place in seen:
                raise ValueError("its pages lead in a circle: it is damaged")
            seen.add(place)
            stream.seek(place)
            (entries,) = struct.unpack(count, stream.read(struct.calcsize(count)))
            tags = stream.tell()
            content = stream.read(size * min(entries, _MOST_TAGS))
            for tag, _, length in struct.iter_unpack(entry, content[: len(content) // size * size]):
                if tag in _SIZES and length != 1:
                    raise ValueError(f"its {_SIZES[tag]} is not one number: it is damaged")
            stream.seek(tags + size * entries)
            (place,) = struct.unpack(link, stream.read(struct.calcsize(link)))
    except (struct.error, OSError, OverflowError):
        logger.debug("the pages of a TIFF file are cut short after %d", len(seen))
    stream.seek(0)


def note_skipped(skipped: dict[str, int], reasons: Iterable[str]) -> None:
    """Count why items were left out in `skipped`, and warn of each reason when it first comes up."""
    for why in reasons:
        if why not in skipped:
            logger.warning("skipped: %s", why)
        skipped[why] = skipped.get(why, 0) + 1


def nothing_usable(reasons: Iterable[str]) -> ValueError:
    """The error that no signal is left, with the first of the reasons."""
    first = next(iter(reasons), None)
    return ValueError(f"X gave no signal that can be used{'' if first is None else f'; the first: {first}'}")


def read_usable(
    items: Iterable[Item], read: Callable[[Item], Content], on_error: OnError
) -> tuple[list[Content], list[str]]:
    """Read every item; with "skip" those for which `read` raises `UnreadableFileError` are left out, and why is told."""
    found, skipped = [], []
    for item in items:
        try:
            found.append(read(item))
        except UnreadableFileError as error:
            if on_error == "raise":
                raise
            skipped.append(str(error))
    return found, skipped


def read_each(items: Sequence[Item], read: Callable[[Item], Content], on_error: OnError) -> list[Content]:
    """Read every item as `read_usable` does, with warnings of what is left out; raises ValueError if nothing is left."""
    found, skipped = read_usable(items, read, on_error)
    note_skipped({}, skipped)
    if not found:
        raise ValueError(f"none of the {len(items)} items can be used; the first: {skipped[0]}")
    return found
