"""Signals on their way to be coded: read ahead as far as memory is meant for that, and put together in groups."""

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from numpy.typing import NDArray

from pointillist.cli.inputs import SignalReader
from pointillist.errors import UnreadableFileError
from pointillist.large import LARGE, is_mapped

log = logging.getLogger(__name__)

ON_DEVICE, _SAMPLES_ON_DEVICE = 256, 2**26
"""Signals that a GPU is given at a time, and samples of them at most."""


@dataclass(frozen=True, eq=False)
class Item:
    """A signal that was read: its number in the source, its name, and its samples."""

    number: int
    name: str
    signal: NDArray

    @property
    def bytes_held(self) -> int:
        """Bytes of memory that the signal takes; none where it was left in its file."""
        return 0 if is_mapped(self.signal) else self.signal.nbytes


def read_ahead(reader: SignalReader, first: int, skipped: dict[int, tuple[str, str]], ahead: int) -> Iterator[Item]:
    """Read signals in order, as many before they are asked for as fit into so many bytes.

    Of small data everything is read before the first signal is yielded, so that what cannot be read stops the work before
    it begins.

    Parameters
    ----------
    reader : SignalReader
        Its `wanted` decides whether what cannot be read raises or is left out.
    first : int
        Number of the first signal.
    skipped : dict
        Takes name and reason for what is left out, by number.
    ahead : int
        Bytes; one signal is read in any case.
    """
    waiting: deque[Item] = deque()
    held = 0
    for number in range(first, len(reader)):
        try:
            item = Item(number, reader.name(number), reader.read(number))
        except UnreadableFileError as error:
            if reader.wanted.on_error == "raise":
                raise
            log.warning("skipped: %s", error)
            skipped[number] = reader.name(number), str(error)
            continue
        waiting.append(item)
        held += item.bytes_held
        while waiting and held > ahead:
            held -= waiting[0].bytes_held
            yield waiting.popleft()
    yield from waiting


def first_signals(reader: SignalReader, most: int) -> Iterator[NDArray]:
    """Read the first signals that can be used, one at a time, to try things on them; what is left out is not mentioned yet.

    Raises
    ------
    ValueError
        If no signal can be used.
    """
    found, reason = 0, ""
    for number in range(len(reader)):
        try:
            signal = reader.read(number)
        except UnreadableFileError as error:
            if reader.wanted.on_error == "raise":
                raise
            reason = reason or str(error)
            continue
        yield signal
        found += 1
        if found == most:
            return
    if not found:
        raise ValueError(f"none of the {len(reader)} signals can be used; the first: {reason}")


def groups(items: Iterable[Item], most: int, *, on_device: bool = False) -> Iterator[list[Item]]:
    """Put signals together in lists of at most so many, large signals each in a list of its own."""
    group: list[Item] = []
    for item in items:
        large = item.signal.size >= LARGE
        crowded = on_device and _samples([*group, item]) > _SAMPLES_ON_DEVICE
        if group and (large or crowded):
            yield group
            group = []
        group.append(item)
        if large or len(group) == most:
            yield group
            group = []
    if group:
        yield group


def _samples(group: list[Item]) -> int:
    """Samples that a device has for signals that are solved together: each takes as much as the largest."""
    return len(group) * max(item.signal.size for item in group)
