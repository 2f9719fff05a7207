"""The files of a zarr store, and what its metadata ask for: checked before zarr decodes anything.

Nothing here needs zarr. A codec that is not listed is refused, because some run code (pickle does), and so are arrays of
anything but numbers, and files that lie outside of the store.
"""

from __future__ import annotations

import json
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from pointillist.data.damage import LARGEST_CHUNK, check_chunk
from pointillist.data.packed import CheckedArray, check_packed, check_stored
from pointillist.data.sources.zarr_chunks import SHARDING, ChunkLayout, codec_name
from pointillist.storage import check_regular

_METADATA = {3: "zarr.json", 2: ".zarray"}
_LARGEST_METADATA = 2**24
_CODECS = frozenset(
    "blosc zstd lz4 zlib gzip bz2 lzma shuffle delta fixedscaleoffset quantize bitround packbits crc32 crc32c adler32 "
    f"fletcher32 jenkins_lookup3 bytes transpose {SHARDING}".split()
)
_NUMBERS = "biuf"


class ZarrFiles(ABC):
    """The files of a store by their names, with slashes."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """A file of metadata, or None where there is none."""

    @abstractmethod
    def opened(self, name: str) -> AbstractContextManager[IO[bytes] | None]:
        """A file of samples, open, or None where there is none."""

    @abstractmethod
    def arrays(self, marks: tuple[str, ...]) -> list[str]:
        """Where files of these names lie, which mark arrays and groups."""

    @abstractmethod
    def sizes(self, inside: str) -> Iterator[int]:
        """Bytes of all files of an array; raises ValueError for one that is none of the store's."""


class ZarrFolder(ZarrFiles):
    """A store that is a folder."""

    def __init__(self, path: Path) -> None:
        self._root = path.resolve()

    def read(self, name: str) -> bytes | None:
        path = self._within(self._root / name)
        if not path.exists():
            return None
        check_regular(path)
        with path.open("rb") as stream:
            return _limited(stream.read(_LARGEST_METADATA + 1))

    def opened(self, name: str) -> AbstractContextManager[IO[bytes] | None]:
        path = self._within(self._root / name)
        if not path.exists():
            return nullcontext()
        check_regular(path)
        return path.open("rb")

    def arrays(self, marks: tuple[str, ...]) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self._root):
            if set(marks) & set(files):
                found.append(Path(folder).relative_to(self._root).as_posix())
            if ".zarray" in files:
                folders.clear()  # nothing but chunks is below
        return found

    def sizes(self, inside: str) -> Iterator[int]:
        folders = [self._within(self._root / inside)]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                        continue
                    if not entry.is_file(follow_symlinks=False):
                        check_regular(self._within(Path(entry.path)))
                    yield entry.stat().st_size

    def _within(self, path: Path) -> Path:
        if not path.resolve().is_relative_to(self._root):
            raise ValueError(f"{path.relative_to(self._root)} leads out of the store")
        return path


class ZarrZip(ZarrFiles):
    """A store that is a zip file."""

    def __init__(self, path: Path) -> None:
        check_regular(path, "zarr store")
        self._path = path
        with zipfile.ZipFile(path) as file:
            self._sizes = {one.filename: one.file_size for one in file.infolist()}

    def read(self, name: str) -> bytes | None:
        if name not in self._sizes:
            return None
        with zipfile.ZipFile(self._path) as file, file.open(name) as stream:
            return _limited(stream.read(_LARGEST_METADATA + 1))

    def opened(self, name: str) -> AbstractContextManager[IO[bytes] | None]:
        if name not in self._sizes:
            return nullcontext()
        with zipfile.ZipFile(self._path) as file:
            return file.open(name)  # which keeps the archive open

    def arrays(self, marks: tuple[str, ...]) -> list[str]:
        return sorted({Path(name).parent.as_posix() for name in self._sizes if Path(name).name in marks})

    def sizes(self, inside: str) -> Iterator[int]:
        for size in self._sizes.values():
            check_chunk(size)
        yield self._path.stat().st_size


def zarr_files(path: Path) -> ZarrFiles:
    """The files of the store at a path."""
    return ZarrFolder(path) if path.is_dir() else ZarrZip(path)


def array_names(files: ZarrFiles, formats: tuple[int, ...]) -> list[str]:
    """Where the arrays of a store are, "" for the store itself."""
    names = ("" if name == "." else name for name in files.arrays(tuple(_METADATA[form] for form in formats)))
    return sorted(name for name in names if array_format(files, name, formats) is not None)


def array_format(files: ZarrFiles, inside: str, formats: tuple[int, ...]) -> int | None:
    """The first of the formats in which there is an array at a path in the store, or None; it is not checked yet."""
    for form in formats:
        metadata = _metadata(files, inside, form)
        if metadata is not None:
            return form if form == 2 or metadata.get("node_type") == "array" else None
    return None


def check_array(files: ZarrFiles, inside: str, form: int) -> None:
    """Raise ValueError if an array asks for a codec that is not known to be harmless, or holds anything but numbers.

    The samples of a shard's chunks are decoded alone, and so are limited by the reader; the shard's index is limited here.
    """
    metadata = _metadata(files, inside, form) or {}
    if form == 2:
        _check_numbers(metadata["dtype"])
        for codec in [metadata.get("compressor"), *(metadata.get("filters") or [])]:
            if codec is not None:
                _check_codec(codec["id"], codec)
    else:
        _check_numbers(metadata["data_type"])
        _check_codecs(metadata["codecs"], metadata["chunk_grid"]["configuration"]["chunk_shape"])
    for _ in files.sizes(inside):
        pass  # every file is one of the store's


def checked_array(array: Any, files: ZarrFiles, inside: str, form: int) -> CheckedArray:
    """zarr's ``array``, whose chunks are checked before zarr reads and unpacks them."""
    layout = ChunkLayout.of(_metadata(files, inside, form) or {}, form)
    room = prod(layout.inner) * array.dtype.itemsize

    def check(number: tuple[int, ...]) -> None:
        name = layout.key(number)
        with files.opened(f"{inside}/{name}" if inside else name) as stream:
            for begin, size in () if stream is None else layout.places(stream):
                check_stored(size, room)
                if stream is not None and layout.packer is not None:
                    stream.seek(begin)
                    check_packed(layout.packer, stream.read(size), room)

    return CheckedArray(array, layout.stored, check)


def _metadata(files: ZarrFiles, inside: str, form: int) -> dict[str, Any] | None:
    if any(part in ("", ".", "..") for part in inside.split("/")) and inside:
        raise ValueError(f"{inside!r} is no path inside of a store")
    text = files.read(f"{inside}/{_METADATA[form]}" if inside else _METADATA[form])
    metadata = None if text is None else json.loads(text)
    if metadata is not None and not isinstance(metadata, dict):
        raise ValueError(f"{_METADATA[form]} holds no metadata")
    return metadata


def _limited(text: bytes) -> bytes:
    if len(text) > _LARGEST_METADATA:
        raise ValueError(f"its metadata are longer than {_LARGEST_METADATA:,} bytes")
    return text


def _check_codecs(codecs: list[Any], chunk: list[int]) -> None:
    """Check codecs of format 3, those inside of shards too."""
    for codec in codecs:
        name, settings = (codec, {}) if isinstance(codec, str) else (codec["name"], codec.get("configuration") or {})
        _check_codec(codec_name(codec), settings)
        if name != SHARDING:
            continue
        if len(codecs) > 1:
            raise ValueError("its shards are encoded as a whole: store it with codecs for their chunks")
        inner = settings["chunk_shape"]
        if 16 * prod(-(-side // part) for side, part in zip(chunk, inner, strict=True)) > LARGEST_CHUNK:
            raise ValueError("its shards have too many chunks: store it in smaller shards")
        _check_codecs(settings["codecs"], inner)
        _check_codecs(settings.get("index_codecs") or [], inner)


def _check_codec(name: str, settings: dict[str, Any]) -> None:
    if name not in _CODECS or settings.get("id", name) != name:
        raise ValueError(
            f"it is stored by the codec {name!r}, which is not read: only {', '.join(sorted(_CODECS))} are"
        )
    for key in ("dtype", "astype"):
        if key in settings:
            _check_numbers(settings[key])


def _check_numbers(kind: Any) -> None:
    if not isinstance(kind, str) or np.dtype(kind).kind not in _NUMBERS:
        raise ValueError(f"it holds {kind!r}: only arrays of numbers are read")
