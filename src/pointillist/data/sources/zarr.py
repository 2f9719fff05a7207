"""Arrays in zarr stores of formats 2 and 3, folders and zip files, read without the package zarr.

Codecs are those of a list, so that nothing in a store can run code, and unpack into no more than a chunk's room, so that
nothing can flood the memory; of files, none that lies outside of the store is opened.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.data.damage import LARGEST_CHUNK
from pointillist.data.sources.stacks import PACKERS, ChunkedArray, StackedSource, as_text, chosen, unpacked
from pointillist.storage import check_regular

_METADATA = ("zarr.json", ".zarray")
_LARGEST_METADATA = 2**24
_UNCHANGED = ("bytes", "transpose", "bitround")  # said by the metadata as a whole, or lost when it was packed
_FILTERS = ("delta", "fixedscaleoffset", "quantize", "shuffle", "crc32c")
_SHARDING = "sharding_indexed"

Codecs = list[tuple[str, dict[str, Any]]]
"""Names and settings, in the order in which they are undone."""


class ZarrSource(StackedSource):
    """A zarr array on disk, of format 2 or 3.

    Parameters
    ----------
    path : str or path
        The store, a folder or a ``.zip`` file.
    array : str
        The array's path inside, where the store is a group.
    ndim : int
        As in `NpySource`.
    channel_axis : int or None
        Which axis of a signal holds channels, as in `NpySource`.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.sources.ZarrSource("cells.zarr", array="0/images")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "zarr"

    def __init__(self, path: str | Path, array: str = "", ndim: int = 2, *, channel_axis: int | None = None) -> None:
        self.inside = as_text(array, "array")
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> ChunkedArray:
        store = ZarrStore(self.path)
        metadata = store.metadata(self.inside)
        name = self.inside
        if metadata is None:
            name = chosen(self.inside, store.names())
            metadata = store.metadata(name) or {}
        return _array(store, f"{name}/" if name else "", metadata)

    def _stored(self) -> Iterable[int]:
        files = self.path.rglob("*") if self.path.is_dir() else [self.path]
        return (file.lstat().st_size for file in files)

    def _files(self) -> list[Path]:
        # Chunks are many; their folder's metadata and the chunks' own times tell a change.
        return sorted(path for path in self.path.rglob("*") if path.is_file()) if self.path.is_dir() else [self.path]


class ZarrStore:
    """The files of a store by their names, with slashes: a folder, or a zip file."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._zipped: set[str] | None = None
        if not path.is_dir():
            check_regular(path, "zarr store")
            with zipfile.ZipFile(path) as file:
                self._zipped = set(file.namelist())

    def opened(self, name: str) -> BinaryIO | None:
        """A file, open; None where there is none."""
        if self._zipped is not None:
            if name not in self._zipped:
                return None
            with zipfile.ZipFile(self._path) as file:
                return file.open(name)  # type: ignore[return-value]  # keeps the archive open
        path = self._path / name
        if not path.resolve().is_relative_to(self._path):
            raise ValueError(f"{name} leads out of the store")
        if not path.exists():
            return None
        check_regular(path)
        return path.open("rb")

    def read(self, name: str, most: int) -> bytes | None:
        """A whole file of at most so many bytes; None where there is none."""
        stream = self.opened(name)
        if stream is None:
            return None
        with stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise ValueError(f"its {name} is longer than {most:,} bytes")
        return content

    def metadata(self, inside: str) -> dict[str, Any] | None:
        """Metadata of the array at a path, of either format; None where there is no array."""
        if inside and any(part in ("", ".", "..") for part in inside.split("/")):
            raise ValueError(f"{inside!r} is no path inside of a store")
        for name in _METADATA:
            text = self.read(f"{inside}/{name}" if inside else name, _LARGEST_METADATA)
            if text is not None:
                found = json.loads(text)
                if not isinstance(found, dict):
                    raise ValueError(f"{name} holds no metadata")
                return None if found.get("node_type") == "group" else found
        return None

    def names(self) -> list[str]:
        """Paths of all arrays."""
        found = []
        if self._zipped is not None:
            found = [Path(name).parent.as_posix() for name in self._zipped if Path(name).name in _METADATA]
        else:
            for folder, folders, files in os.walk(self._path):
                if set(_METADATA) & set(files):
                    found.append(Path(folder).relative_to(self._path).as_posix())
                if ".zarray" in files:
                    folders.clear()  # nothing but chunks is below
        return sorted(name for name in set(found) - {"."} if self.metadata(name) is not None)


def _array(store: ZarrStore, folder: str, metadata: dict[str, Any]) -> ChunkedArray:
    """The array that metadata describe, with its codecs and types checked; its chunks are read when they are asked for."""
    if "zarr_format" not in metadata or metadata["zarr_format"] == 2:
        kind, chunks, sharded = metadata["dtype"], metadata["chunks"], None
        codecs = _codecs([*(metadata.get("filters") or []), *filter(None, [metadata.get("compressor")])])
        prefix, separator = "", metadata.get("dimension_separator", ".")
    else:
        kind, chunks = metadata["data_type"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
        given, sharded = metadata["codecs"], None
        if _name(given[0]) == _SHARDING:
            if len(given) > 1:
                raise ValueError("its shards are encoded as a whole: store it with codecs for their chunks")
            sharded = given[0]["configuration"]
            given = sharded["codecs"]
        codecs = _codecs(given)
        key = metadata.get("chunk_key_encoding") or {"name": "default"}
        plain = key["name"] == "v2"
        separator = (key.get("configuration") or {}).get("separator", "." if plain else "/")
        prefix = "" if plain else f"c{separator}"
    dtype = _numbers(kind)
    outer = _sides(chunks)
    inner = outer if sharded is None else _sides(sharded["chunk_shape"])
    shape = _sides(metadata["shape"])
    if separator not in ("/", ".") or not len(shape) == len(outer) == len(inner):
        raise ValueError("its metadata contradict each other: it is damaged")
    settings = dict(codecs)
    if len(settings) < len(codecs):
        raise ValueError("its chunks are packed by one codec twice: store it with each codec once")
    order = settings.get("transpose", {}).get("order", range(len(inner)))
    if order in ("C", "F"):
        order = range(len(inner)) if order == "C" else range(len(inner))[::-1]
    kinds = [_numbers(one[key]) for _, one in codecs for key in ("dtype", "astype") if key in one]
    as_stored = dtype.newbyteorder(">") if settings.get("bytes", {}).get("endian") == "big" else dtype
    if kinds and as_stored is not dtype:
        raise ValueError("its numbers are filtered and then stored with their bytes turned: store it without either")
    room = prod(inner) * max(one.itemsize for one in (dtype, *kinds)) + 16

    def load(number: tuple[int, ...]) -> NDArray[Any] | None:
        whole = number if sharded is None else tuple(n * a // b for n, a, b in zip(number, inner, outer, strict=True))
        name = folder + prefix + separator.join(map(str, whole))
        if sharded is None:
            content = store.read(name, 2 * room)
        else:
            content = _of_shard(store, name, number, inner, outer, sharded, 2 * room)
        if content is None:
            return None
        for codec, how in codecs:
            content = unpacked(codec, content, room) if codec in PACKERS else _unfiltered(codec, how, content, dtype)
        samples = np.frombuffer(content, as_stored, prod(inner))
        if metadata.get("order") == "F":
            return samples.reshape(inner, order="F")
        return samples.reshape([inner[axis] for axis in order]).transpose(np.argsort(order))

    return ChunkedArray(shape, inner, dtype, _fill(metadata.get("fill_value"), dtype), load)


def _of_shard(
    store: ZarrStore, name: str, number: tuple[int, ...], inner: tuple[int, ...], outer: tuple[int, ...],
    sharded: dict[str, Any], most: int,
) -> bytes | None:  # fmt: skip
    """One chunk of a shard as it is packed, found by the shard's index; None where there is none."""
    parts = [side // part for side, part in zip(outer, inner, strict=True)]
    index = [_name(codec) for codec in sharded.get("index_codecs") or ["bytes", "crc32c"]]
    if not set(index) <= {"bytes", "crc32c"} or 16 * prod(parts) > LARGEST_CHUNK:
        raise ValueError("its shards have a packed index, or too many chunks, which is not read")
    length = 16 * prod(parts) + 4 * index.count("crc32c")
    stream = store.opened(name)
    if stream is None:
        return None
    with stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(0 if sharded.get("index_location") == "start" else max(end - length, 0))
        places = np.frombuffer(stream.read(length), "<u8", 2 * prod(parts)).reshape(*parts, 2)
        begin, size = places[tuple(n % part for n, part in zip(number, parts, strict=True))].tolist()
        if begin == size == 2**64 - 1:
            return None
        if begin + size > end or size > most:
            raise ValueError(f"a chunk of its {name} is longer than {most:,} bytes, or not in it: it is damaged")
        stream.seek(begin)
        return stream.read(size)


def _codecs(given: list[Any]) -> Codecs:
    """Codecs in the order of undoing; raises ValueError for any that is not read."""
    found = []
    for one in reversed(given):
        name = _name(one)
        settings = {} if isinstance(one, str) else one.get("configuration", one)
        if name not in (*PACKERS, *_FILTERS, *_UNCHANGED) or settings.get("id", name) != name:
            known = ", ".join(sorted((*PACKERS, *_FILTERS, *_UNCHANGED, _SHARDING)))
            raise ValueError(f"it is stored by the codec {name!r}, which is not read: only {known} are")
        found.append((name, settings))
    return found


def _name(codec: Any) -> str:
    name = codec if isinstance(codec, str) else codec.get("id") or codec["name"]
    return str(name).removeprefix("numcodecs.")


def _unfiltered(name: str, settings: dict[str, Any], content: bytes, dtype: np.dtype) -> bytes:
    """Bytes before a filter changed them."""
    numbers = partial(np.frombuffer, content, np.dtype(settings.get("astype") or settings.get("dtype") or dtype))
    if name == "crc32c":
        return content[:-4]
    if name == "shuffle":
        return np.frombuffer(content, np.uint8).reshape(int(settings.get("elementsize", 4)), -1).T.tobytes()
    kind = np.dtype(settings.get("dtype") or dtype)
    if name == "delta":
        return np.cumsum(numbers()).astype(kind).tobytes()
    if name == "fixedscaleoffset":
        with np.errstate(all="ignore"):  # what a scale of zero makes is infinite
            return (numbers() / float(settings["scale"]) + float(settings["offset"])).astype(kind).tobytes()
    return numbers().astype(kind).tobytes() if name == "quantize" else content


def _numbers(kind: Any) -> np.dtype:
    dtype = np.dtype(kind) if isinstance(kind, str) else None
    if dtype is None or dtype.kind not in "biuf":
        raise ValueError(f"it holds {kind!r}: only arrays of numbers are read")
    return dtype


def _sides(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(side) is int and side >= 0 for side in given):
        raise ValueError(f"it has {given!r} for a shape: it is damaged")
    return tuple(given)


def _fill(value: Any, dtype: np.dtype) -> NDArray[Any]:
    """The sample where no chunk is stored."""
    if isinstance(value, str) and value.startswith("0x"):
        return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype)
    with np.errstate(over="ignore"):  # what is too large for its type is infinite
        return np.array(float(value) if isinstance(value, str) else value or 0).astype(dtype)
