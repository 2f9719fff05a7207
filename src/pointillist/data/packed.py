"""Packed chunks: none is unpacked before it is sure that it becomes no more than its array has room for.

Libraries unpack a chunk into as much memory as it asks for, and a kilobyte can ask for gigabytes.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HARMLESS = 2**26
"""Bytes that any chunk may become."""
_MOST = {"zlib": 1032, "gzip": 1032}
"""Bytes that one stored byte can become at most."""
_STREAMS: dict[str, Callable[[], Any]] = {
    "zlib": zlib.decompressobj,
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "lzma": lzma.LZMADecompressor,
}
_PIECE = 2**20
_ZSTD = b"\x28\xb5\x2f\xfd"
PACKERS = frozenset((*_STREAMS, "zstd", "lz4", "blosc"))
"""Codecs that make fewer bytes of many."""


def check_packed(codec: str, packed: bytes, room: int) -> None:
    """Raise ValueError if what a codec packed becomes more than twice the room that there is for it.

    Parameters
    ----------
    codec : str
        One of `PACKERS`.
    packed : bytes
    room : int
        Bytes of the chunk when it is unpacked.
    """
    most = max(2 * room, _HARMLESS)
    if len(packed) * _MOST.get(codec, most) <= most:
        return
    size = _unpacked(codec, packed, most) if codec in _STREAMS else _claimed(codec, packed, most)
    if size > most:
        raise ValueError(f"one of its chunks of {len(packed):,} bytes unpacks to far more than the {room:,} of a chunk")


def check_stored(size: int, room: int) -> None:
    """Raise ValueError if a chunk is stored in far more bytes than there is room for when it is unpacked."""
    if size > max(2 * room, _HARMLESS):
        raise ValueError(f"one of its chunks is stored in {size:,} bytes, far more than the {room:,} of a chunk")


def _unpacked(codec: str, packed: bytes, most: int) -> int:
    """Bytes that the streams of a chunk become, counted no further than `most`; damage is left to the reader."""
    count, rest = 0, packed
    try:
        while rest:
            stream = _STREAMS[codec]()
            while not stream.eof and count <= most:
                piece = stream.decompress(rest, _PIECE)
                rest = getattr(stream, "unconsumed_tail", b"")  # the others keep what they did not use
                if not piece and not rest:
                    return count  # cut short
                count += len(piece)
            # Several streams may follow each other; only zlib's own format knows but one.
            rest = b"" if count > most or codec == "zlib" else stream.unused_data
    except (zlib.error, OSError, lzma.LZMAError):
        return count
    return count


def _claimed(codec: str, packed: bytes, most: int) -> int:
    """Bytes that the head of a chunk says it becomes."""
    if codec == "lz4":
        return int.from_bytes(packed[:4], "little")
    if codec == "blosc":
        return int.from_bytes(packed[4:8], "little")
    size = _zstd_size(packed)
    if size is not None:
        return size
    import imagecodecs  # only for chunks that do not say how large they are

    try:
        return len(imagecodecs.zstd_decode(packed, out=most + 1))
    except imagecodecs.ZstdError:  # too large, or damaged
        return most + 1


def _zstd_size(packed: bytes) -> int | None:
    """Bytes that the frames of a Zstandard stream say they become; None where one does not say so."""
    total, place = 0, 0
    while packed[place : place + 4] == _ZSTD and place + 5 < len(packed):
        flags = packed[place + 4]
        single, form = bool(flags & 0x20), flags >> 6
        length = (int(single), 2, 4, 8)[form]
        if length == 0:
            return None
        begin = place + 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        total += int.from_bytes(packed[begin : begin + length], "little") + (256 if length == 2 else 0)
        place = _zstd_end(packed, begin + length) + (4 if flags & 4 else 0)
    return total


def _zstd_end(packed: bytes, place: int) -> int:
    """Where the blocks of a frame end that begin at a place."""
    while place < len(packed):
        head = int.from_bytes(packed[place : place + 3], "little")
        repeated = (head >> 1) & 3 == 1  # one byte stands for the whole block
        place += 3 + (1 if repeated else head >> 3)
        if head & 1:
            break
    return place


class CheckedArray:
    """An array in chunks, each of which is checked before it is unpacked for the first time.

    Parameters
    ----------
    array : array of h5py or zarr
    chunks : tuple of int
        The shape of what is stored together.
    check : callable
        Given the number of a chunk along each axis, raises ValueError if it must not be unpacked.
    """

    def __init__(self, array: Any, chunks: tuple[int, ...], check: Callable[[tuple[int, ...]], None]) -> None:
        self.shape, self.dtype, self.chunks = array.shape, array.dtype, array.chunks
        self._array, self._stored, self._check = array, chunks, check
        self._seen: set[tuple[int, ...]] = set()

    def __getitem__(self, place: Any) -> NDArray[Any]:
        given = list(place) if isinstance(place, tuple) else [place]
        if Ellipsis in given:
            here = given.index(Ellipsis)
            given[here : here + 1] = [slice(None)] * (len(self.shape) - len(given) + 1)
        spans = []
        for axis, (length, chunk) in enumerate(zip(self.shape, self._stored, strict=True)):
            met = range(length)[given[axis] if axis < len(given) else slice(None)]
            ends = sorted([met, met] if isinstance(met, int) else [*met[:1], *met[-1:]])
            spans.append(range(ends[0] // chunk, ends[1] // chunk + 1) if ends else range(0))
        for number in product(*spans):
            if number not in self._seen:
                self._check(number)
                self._seen.add(number)
        return np.asarray(self._array[place])
