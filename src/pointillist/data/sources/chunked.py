"""Arrays in chunks: datasets of HDF5 files, and zarr stores of formats 2 and 3 (folders and zip files), without zarr.

Nothing in a file can run code: codecs are those of a list. Nothing can flood the memory: chunks unpack into no more than
their room. Nothing leads to another file: links and names are followed here, and in bounded time.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from importlib import import_module
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.data.damage import LARGEST_CHUNK
from pointillist.data.sources.base import Cache
from pointillist.data.sources.stacks import StackedSource
from pointillist.storage import check_regular
from pointillist.validation import as_list, as_path, check_arguments

_LISTED = 20
"""Names of arrays that a message lists."""
_RECENT = 2**24
"""Bytes of unpacked chunks that an array keeps: neighbouring windows meet the same ones."""
_PACKERS = ("zlib", "gzip", "bz2", "lzma", "zstd", "lz4", "blosc")
"""Codecs that make fewer bytes of many."""
_FILTERS = ("delta", "fixedscaleoffset", "quantize", "shuffle", "crc32c")
_UNCHANGED = ("bytes", "transpose", "bitround")  # said by the metadata as a whole, or lost when it was packed
_SHARDING = "sharding_indexed"
_METADATA = ("zarr.json", ".zarray")
_LARGEST_METADATA = 2**24
_MOST_LINKS = 10_000
"""Links of an HDF5 file that are followed."""
_HDF5_CODECS = {1: "zlib", 2: "shuffle", 3: "crc32c"}
"""Filters of HDF5 that are undone here (the third is another checksum, as long); of these only the first makes many bytes of
few."""

Codecs = list[tuple[str, dict[str, Any]]]
"""Names and settings, in the order in which they are undone."""


class ChunkedArray:
    """An array in chunks, of which those that a part meets are read and unpacked one by one, and kept for a while.

    Parameters
    ----------
    shape, chunks : tuple of int
        Sides of the array and of what is packed together.
    dtype : dtype
    fill : number
        Samples of chunks that are not stored.
    load : callable
        Samples of a whole chunk by its number along each axis; None where it is not stored.
    """

    def __init__(
        self, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype, fill: Any,
        load: Callable[[tuple[int, ...]], NDArray[Any] | None],
    ) -> None:  # fmt: skip
        self.shape, self.chunks, self.dtype, self.fill, self.load = shape, chunks, dtype, fill, load
        self._recent = Cache(_RECENT)

    def __getitem__(self, place: tuple[slice, ...]) -> NDArray[Any]:
        spans = [range(side)[one] for side, one in zip(self.shape, place, strict=True)]
        out = np.full([len(span) for span in spans], self.fill, self.dtype)
        ends = zip(spans, self.chunks, strict=True)
        for number in product(*(range(span.start // side, -(-span.stop // side)) for span, side in ends)):
            chunk = self._recent.get(number, partial(self.load, number))
            if chunk is None:
                continue
            begins = [n * side - span.start for n, side, span in zip(number, self.chunks, spans, strict=True)]
            there = tuple(slice(max(at, 0), at + side) for at, side in zip(begins, self.chunks, strict=True))
            here = tuple(slice(max(-at, 0), len(span) - at) for at, span in zip(begins, spans, strict=True))
            out[there] = chunk[here]
        return out


def _decoded(codecs: Codecs, content: bytes, room: int, dtype: np.dtype) -> bytes:
    """Bytes before they were encoded; raises ValueError rather than take more than `room` for them."""
    for name, settings in codecs:
        kind = np.dtype(settings.get("dtype") or dtype)
        numbers = partial(np.frombuffer, content, np.dtype(settings.get("astype") or kind))
        if name in _PACKERS:
            content = _unpacked(name, content, room)
        elif name == "crc32c":
            content = content[:-4]
        elif name == "shuffle":
            content = np.frombuffer(content, np.uint8).reshape(int(settings.get("elementsize", 4)), -1).T.tobytes()
        elif name == "delta":
            content = np.cumsum(numbers()).astype(kind).tobytes()
        elif name == "quantize":
            content = numbers().astype(kind).tobytes()
        elif name == "fixedscaleoffset":
            with np.errstate(all="ignore"):  # what a scale of zero makes is infinite
                samples = numbers() / float(settings["scale"]) + float(settings["offset"])
                content = samples.astype(kind).tobytes()
    return content


def _unpacked(codec: str, packed: bytes, room: int) -> bytes:
    import imagecodecs  # large, and only for packed chunks

    # deflate's own library is quicker than zlib
    decode = getattr(imagecodecs, f"{'deflate' if codec == 'zlib' else codec}_decode")
    try:
        content: bytes = decode(packed, out=room + 1, **({"header": True} if codec == "lz4" else {}))
    except RuntimeError as error:
        raise ValueError(f"one of its chunks does not unpack into the {room:,} bytes of a chunk: {error}") from error
    if len(content) > room:
        raise ValueError(f"one of its chunks does not unpack into the {room:,} bytes of a chunk: it holds more")
    return content


def _chosen(name: str, names: list[str]) -> str:
    """The only one of the arrays that a file holds; raises ValueError if there are more, or if one was named."""
    listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    if name:
        raise ValueError(f"there is no array {name!r} in it; it holds {listed or 'none'}")
    if len(names) != 1:
        raise ValueError(f"name the array to read, as in FILE::NAME; it holds {listed or 'none'}")
    return names[0]


class Hdf5Source(StackedSource):
    """A dataset in an HDF5 file; needs the extra ``hdf5``. Virtual datasets are refused.

    Parameters
    ----------
    path : str or path
    dataset : str
        Its path inside the file; may be left out where the file has only one.
    ndim : int
        As in `NpySource`.
    channel_axis : int or None
        Which axis of a signal holds channels, as in `NpySource`.
    external : paths
        Other files that the dataset may lie in, by external links or storage; more are refused.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.sources.Hdf5Source("cells.h5", dataset="images")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "hdf5"

    def __init__(
        self,
        path: str | Path,
        dataset: str = "",
        ndim: int = 2,
        *,
        channel_axis: int | None = None,
        external: Iterable[str | Path] = (),
    ) -> None:
        check_arguments(dataset=dataset)
        self.external = [as_path(file, "external") for file in as_list(external, "external")]
        self.inside = dataset
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> Any:
        try:
            h5py = import_module("h5py")
        except ImportError as error:
            raise ImportError(f"{self.path} needs h5py: pip install 'pointillist[hdf5]'") from error
        tree = _Hdf5Tree(h5py, self.path, self.external)
        try:
            found = tree.dataset(self.inside) if self.inside else None
            return found or tree.dataset(_chosen(self.inside, tree.names()))
        except Exception:
            tree.close()
            raise

    def _files(self) -> list[Path]:
        return [self.path, *self.external]


class _Hdf5Tree:
    """An HDF5 file whose links and external storage lead to no file that was not allowed."""

    def __init__(self, h5py: Any, path: Path, external: Collection[Path]) -> None:
        self._h5py, self._left = h5py, _MOST_LINKS
        self._files: list[Any] = []
        self._allowed = {path.resolve(), *(other.resolve() for other in external)}
        self._root = self._opened(path, "it")

    def dataset(self, name: str) -> Any:
        """The dataset of that name, or None; its samples lie in files that are allowed."""
        found = self._follow(name)
        if not isinstance(found, self._h5py.Dataset):
            return None
        if found.is_virtual:
            raise ValueError("it is a virtual dataset, which is not read: copy its samples into one of its own")
        for file, *_ in found.external or ():
            self._check_permitted(Path(file), "external storage")  # which HDF5 looks for in the working folder
        return _hdf5_array(found)

    def names(self) -> list[str]:
        """Names of the file's datasets, each once, in order; those behind links are left out."""
        names, groups, seen = [], [("", self._root)], {self._root}
        while groups:
            prefix, group = groups.pop()
            for key in group:
                self._count()
                if not isinstance(group.get(key, getlink=True), self._h5py.HardLink) or (item := group[key]) in seen:
                    continue
                seen.add(item)
                if isinstance(item, self._h5py.Dataset):
                    names.append(prefix + key)
                elif isinstance(item, self._h5py.Group):
                    groups.append((f"{prefix}{key}/", item))
        return sorted(names)

    def close(self) -> None:
        """Close all files, and with them the datasets."""
        for file in self._files:
            file.close()

    def _opened(self, path: Path, what: str) -> Any:
        self._check_permitted(path, what)
        self._files.append(self._h5py.File(path, "r"))
        return self._files[-1]["/"]

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError(
                f"more than {_MOST_LINKS:,} links would have to be followed: name the dataset, not a link to it"
            )

    def _follow(self, name: str) -> Any:
        here, parts = self._root, deque(name.split("/"))
        while parts:
            part = parts.popleft()
            if part in ("", "."):
                continue
            self._count()
            link = here.get(part, getlink=True) if isinstance(here, self._h5py.Group) else None
            if link is None:
                return None
            if isinstance(link, self._h5py.HardLink):
                here = here[part]
                continue
            if isinstance(link, self._h5py.ExternalLink):
                here = self._opened(Path(here.file.filename).parent / link.filename, "a link")
            elif link.path.startswith("/"):
                here = here.file["/"]
            parts.extendleft(reversed(link.path.split("/")))
        return here

    def _check_permitted(self, path: Path, what: str) -> None:
        if path.resolve() not in self._allowed:
            raise ValueError(
                f"{what} leads to another file, {path}, which is not read: copy it into this one, "
                "or allow it by Hdf5Source(..., external=[...])"
            )
        check_regular(path, "HDF5 file")


def _hdf5_array(dataset: Any) -> Any:
    """A dataset whose packed chunks are unpacked here, into no more than their room; itself where none is packed."""
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
    codecs = [(_HDF5_CODECS.get(code, ""), {"elementsize": dataset.dtype.itemsize}) for code in filters]
    names = [name for name, _ in codecs]
    if "zlib" not in names or dataset.chunks is None:
        return dataset
    if "" in names or names.count("zlib") > 1 or dataset.dtype.kind not in "biuf":
        raise ValueError("its chunks are packed in several ways: store it with gzip, or with gzip and shuffle")
    room = prod(dataset.chunks) * dataset.dtype.itemsize + 4

    def load(number: tuple[int, ...]) -> NDArray[Any] | None:
        corner = tuple(n * side for n, side in zip(number, dataset.chunks, strict=True))
        found = dataset.id.get_chunk_info_by_coord(corner)
        if found.byte_offset is None:
            return None
        if found.size > 2 * room:
            raise ValueError(
                f"one of its chunks is stored in {found.size:,} bytes, far more than the {room:,} of a chunk"
            )
        used = [codec for i, codec in enumerate(codecs) if not found.filter_mask >> i & 1]
        content = _decoded(used[::-1], dataset.id.read_direct_chunk(corner)[1], room, dataset.dtype)
        return np.frombuffer(content, dataset.dtype, prod(dataset.chunks)).reshape(dataset.chunks)

    return ChunkedArray(dataset.shape, dataset.chunks, dataset.dtype, dataset.fillvalue, load)


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
        check_arguments(array=array)
        self.inside = array
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> ChunkedArray:
        store, name = _ZarrStore(self.path), self.inside
        metadata = store.metadata(name)
        if metadata is None:
            name = _chosen(name, store.names())
            metadata = store.metadata(name) or {}
        return _zarr_array(store, f"{name}/" if name else "", metadata)

    def _stored(self) -> Iterable[int]:
        files = self.path.rglob("*") if self.path.is_dir() else [self.path]
        return (file.lstat().st_size for file in files)

    def _files(self) -> list[Path]:
        # Chunks are many; their folder's metadata and the chunks' own times tell a change.
        return sorted(path for path in self.path.rglob("*") if path.is_file()) if self.path.is_dir() else [self.path]


class _ZarrStore:
    """The files of a store by their names, with slashes: a folder, or a zip file."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._zip: zipfile.ZipFile | None = None
        if not path.is_dir():
            check_regular(path, "zarr store")
            self._zip = zipfile.ZipFile(path)

    def opened(self, name: str) -> Any:
        """A file, open; None where there is none."""
        if self._zip is not None:
            return self._zip.open(name) if name in self._zip.NameToInfo else None
        path = self._path / name
        if not path.resolve().is_relative_to(self._path):
            raise ValueError(f"{name} leads out of the store")
        if not path.exists():
            return None
        check_regular(path)
        return path.open("rb")

    def read(self, name: str, most: int) -> bytes | None:
        """A whole file of at most so many bytes; None where there is none."""
        stream: BinaryIO | None = self.opened(name)
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
                return None if found.get("node_type") == "group" else found
        return None

    def names(self) -> list[str]:
        """Paths of all arrays."""
        files = (file.relative_to(self._path) for file in self._path.rglob("*"))
        found = map(Path, self._zip.namelist()) if self._zip is not None else files
        names = {file.parent.as_posix() for file in found if file.name in _METADATA}
        return sorted(name for name in names - {"."} if self.metadata(name) is not None)


def _zarr_array(store: _ZarrStore, folder: str, metadata: dict[str, Any]) -> ChunkedArray:
    """The array that metadata describe, with its codecs and types checked; its chunks are read when they are asked for."""
    shards = None
    if metadata.get("zarr_format", 2) == 2:
        kind, chunks = metadata["dtype"], metadata["chunks"]
        ordered = {"id": "transpose", "order": metadata.get("order", "C")}
        given = [ordered, *(metadata.get("filters") or []), *filter(None, [metadata.get("compressor")])]
        prefix, separator = "", metadata.get("dimension_separator", ".")
    else:
        kind, chunks = metadata["data_type"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
        given = metadata["codecs"]
        if _codec_name(given[0]) == _SHARDING:
            if len(given) > 1:
                raise ValueError("its shards are encoded as a whole: store it with codecs for their chunks")
            shards = given[0]["configuration"]
            given = shards["codecs"]
        key = metadata.get("chunk_key_encoding") or {"name": "default"}
        plain = key["name"] == "v2"
        separator = (key.get("configuration") or {}).get("separator", "." if plain else "/")
        prefix = "" if plain else f"c{separator}"
    dtype, codecs = _numeric(kind), _codecs(given)
    shape, outer = _sides(metadata["shape"]), _sides(chunks)
    inner = outer if shards is None else _sides(shards["chunk_shape"])
    if separator not in ("/", ".") or not len(shape) == len(outer) == len(inner):
        raise ValueError("its metadata contradict each other: it is damaged")
    settings = dict(codecs)
    if len(settings) < len(codecs):
        raise ValueError("its chunks are packed by one codec twice: store it with each codec once")
    order = settings.get("transpose", {}).get("order", "C")
    if order in ("C", "F"):
        order = range(len(inner))[:: 1 if order == "C" else -1]
    kinds = [_numeric(one[key]) for _, one in codecs for key in ("dtype", "astype") if key in one]
    as_stored = dtype.newbyteorder(">") if settings.get("bytes", {}).get("endian") == "big" else dtype
    if kinds and as_stored is not dtype:
        raise ValueError("its numbers are filtered and then stored with their bytes turned: store it without either")
    room = prod(inner) * max(one.itemsize for one in (dtype, *kinds)) + 16

    def load(number: tuple[int, ...]) -> NDArray[Any] | None:
        if shards is None:
            content = store.read(folder + prefix + separator.join(map(str, number)), 2 * room)
        else:
            parts = [side // part for side, part in zip(outer, inner, strict=True)]
            shard, within = zip(*map(divmod, number, parts), strict=True)
            content = _of_shard(
                store, folder + prefix + separator.join(map(str, shard)), parts, within, shards, 2 * room
            )
        if content is None:
            return None
        samples = np.frombuffer(_decoded(codecs, content, room, dtype), as_stored, prod(inner))
        return samples.reshape([inner[axis] for axis in order]).transpose(np.argsort(order))

    return ChunkedArray(shape, inner, dtype, _fill(metadata.get("fill_value"), dtype), load)


def _of_shard(
    store: _ZarrStore, name: str, parts: list[int], within: tuple[int, ...], shards: dict[str, Any], most: int
) -> bytes | None:
    """One chunk of a shard as it is packed, found by the shard's index; None where there is none."""
    index = [_codec_name(codec) for codec in shards.get("index_codecs") or ["bytes", "crc32c"]]
    if not set(index) <= {"bytes", "crc32c"} or 16 * prod(parts) > LARGEST_CHUNK:
        raise ValueError("its shards have a packed index, or too many chunks, which is not read")
    length = 16 * prod(parts) + 4 * index.count("crc32c")
    stream = store.opened(name)
    if stream is None:
        return None
    with stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(0 if shards.get("index_location") == "start" else max(end - length, 0))
        places = np.frombuffer(stream.read(length), "<u8", 2 * prod(parts)).reshape(*parts, 2)
        begin, size = places[within].tolist()
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
        name = _codec_name(one)
        settings = {} if isinstance(one, str) else one.get("configuration", one)
        known = (*_PACKERS, *_FILTERS, *_UNCHANGED)
        if name not in known or settings.get("id", name) != name:
            read = ", ".join(sorted((*known, _SHARDING)))
            raise ValueError(f"it is stored by the codec {name!r}, which is not read: only {read} are")
        found.append((name, settings))
    return found


def _codec_name(codec: Any) -> str:
    name = codec if isinstance(codec, str) else codec.get("id") or codec["name"]
    return str(name).removeprefix("numcodecs.")


def _numeric(kind: Any) -> np.dtype:
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
