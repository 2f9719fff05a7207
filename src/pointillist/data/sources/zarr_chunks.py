"""Where the chunks of a zarr array lie, how they are packed, and what of a shard is which chunk.

Metadata are those that `zarr_files.check_array` has passed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np

from pointillist.data.packed import PACKERS

SHARDING = "sharding_indexed"
_CHECKSUM = "crc32c"
_CHECKSUM_BYTES = 4
_INDEXES = ("bytes", _CHECKSUM)
"""Codecs of a shard's index; others would change its length."""


@dataclass(frozen=True)
class ChunkLayout:
    """How the chunks of an array are stored.

    Attributes
    ----------
    stored : tuple of int
        The shape of what lies in one file: a chunk, or a shard.
    inner : tuple of int
        The shape of what is packed together: a chunk.
    packer : str or None
        The codec that packs chunks, if one does.
    prefix, separator : str
        What names of chunks are made of.
    index : tuple of (bool, int) or None
        Of shards: whether the index lies at the end, and its bytes of checksum.
    """

    stored: tuple[int, ...]
    inner: tuple[int, ...]
    packer: str | None
    prefix: str
    separator: str
    index: tuple[bool, int] | None = None

    @classmethod
    def of(cls, metadata: dict[str, Any], form: int) -> ChunkLayout:
        """The layout that metadata of an array describe; raises ValueError where chunks are packed more than once."""
        if form == 2:
            stored = tuple(metadata["chunks"])
            codecs = [*(metadata.get("filters") or []), metadata.get("compressor")]
            names = [codec["id"] for codec in codecs if codec is not None]
            return cls(stored, stored, _packer(names), "", metadata.get("dimension_separator", "."))
        stored = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        key = metadata.get("chunk_key_encoding") or {}
        key = {"name": key} if isinstance(key, str) else key
        plain = key.get("name") == "v2"
        separator = (key.get("configuration") or {}).get("separator", "." if plain else "/")
        where = ("" if plain else f"c{separator}", separator)
        codecs = metadata["codecs"]
        if codec_name(codecs[0]) != SHARDING:
            return cls(stored, stored, _packer([codec_name(codec) for codec in codecs]), *where)
        settings = codecs[0]["configuration"]
        inner = [codec_name(codec) for codec in settings["codecs"]]
        index = [codec_name(codec) for codec in settings.get("index_codecs") or ["bytes", _CHECKSUM]]
        if SHARDING in inner or not set(index) <= set(_INDEXES):
            raise ValueError("its shards hold shards, or have a packed index, which is not read")
        at_end = settings.get("index_location", "end") != "start"
        found = (at_end, _CHECKSUM_BYTES * index.count(_CHECKSUM))
        return cls(stored, tuple(settings["chunk_shape"]), _packer(inner), *where, found)

    def key(self, number: tuple[int, ...]) -> str:
        """The name of the file of a chunk or shard."""
        return self.prefix + self.separator.join(map(str, number))

    def places(self, stream: IO[bytes]) -> Iterator[tuple[int, int]]:
        """Yield where each chunk of a file begins, and how many bytes it has."""
        end = stream.seek(0, io.SEEK_END)
        if self.index is None:
            yield 0, end
            return
        at_end, checksum = self.index
        count = prod(side // part for side, part in zip(self.stored, self.inner, strict=True))
        length = 16 * count + checksum
        if end < length:
            return  # cut short, as the reader says
        stream.seek(end - length if at_end else 0)
        for begin, size in np.frombuffer(stream.read(length), "<u8", 2 * count).reshape(-1, 2).tolist():
            if begin < end:
                yield begin, min(size, end - begin)


def codec_name(codec: Any) -> str:
    """The name of a codec of format 3, without the prefix of numcodecs."""
    name: str = codec if isinstance(codec, str) else codec["name"]
    return name.removeprefix("numcodecs.")


def _packer(names: list[str]) -> str | None:
    """The one codec that packs, which nothing but a checksum may follow."""
    packers = [name for name in names if name in PACKERS]
    if not packers:
        return None
    behind = names[names.index(packers[0]) + 1 :]
    if len(packers) > 1 or not set(behind) <= {_CHECKSUM}:
        raise ValueError(
            f"its chunks are packed by {packers[0]} and then changed again: store it with one codec that packs"
        )
    return packers[0]
