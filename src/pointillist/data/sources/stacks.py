"""Stacks of signals in one file, read part by part: ``.npy`` files, TIFF pages, HDF5 datasets, and zarr arrays.

Zarr stores of formats 2 and 3, folders and zip files, are read without the package zarr. Nothing in a file can run code:
codecs are those of a list. Nothing can flood the memory: chunks unpack into no more than their room. Nothing leads to
another file: links and names are followed here, and in bounded time.
"""

from __future__ import annotations

import json
import os
import threading
import zipfile
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.arrays import LARGE, bands, release, scratch_file
from pointillist.data.damage import LARGEST_CHUNK, check_claim, check_page, check_pages, damage_named
from pointillist.data.samples import ONE_FILE, map_npy, to_float
from pointillist.data.sources.base import Cache, StoredSource, file_fingerprint, spans_of
from pointillist.reprs import sizes
from pointillist.storage import check_regular
from pointillist.validation import as_path, check_arguments, check_index, is_integer

_LISTED = 20
"""Names of arrays that a message lists."""
_RECENT = 2**24
"""Bytes of unpacked chunks that an array keeps: neighbouring windows meet the same ones."""
_PACKERS = ("zlib", "gzip", "bz2", "lzma", "zstd", "lz4", "blosc")
"""Codecs that make fewer bytes of many."""
_CODECS = (*_PACKERS, "shuffle", "crc32c", "bytes", "transpose", "bitround")
"""Codecs of zarr that are read; the last three are said by the metadata as a whole, or lost when it was packed."""
_SHARDING = "sharding_indexed"
_METADATA = ("zarr.json", ".zarray")
_LARGEST_METADATA = 2**24
_MOST_LINKS = 10_000
"""Links of an HDF5 file that are looked at."""
_HDF5_CODECS = {1: "zlib", 2: "shuffle", 3: "crc32c"}
"""Filters of HDF5 that are undone here (the third is another checksum, as long); of these only the first makes many bytes of
few."""

_Store = Path | zipfile.ZipFile
Codecs = list[tuple[str, dict[str, Any]]]
"""Names and settings, in the order in which they are undone."""


class StackedSource(StoredSource):
    """Signals along the first axis of one array in a file, opened when it is first needed, in every process anew.

    Subclasses say how to open it; what they open must give shape, dtype and parts by a tuple of slices, as arrays do. It is
    kept, for every file of a pattern: a `MappedFile` rather than samples in memory. Types whose range `to_float` does not
    know, such as int16, are made floats by what is opened.

    Parameters
    ----------
    path : str or path
    ndim : int
        Spatial axes of a signal; an array of just as many, and perhaps channels, is one signal.
    channel_axis : int or None
        Which axis of a signal holds channels, 0 for the first and -1 for the last; None where signals have none.
    """

    windowed = True
    holds_several: bool = False
    """True if ``FILE::NAME`` names one array of several in a file: the name follows the path in `__init__`."""
    inside: str = ""
    """That name; set before this class's `__init__` is called."""

    def __init__(self, path: str | Path, ndim: int = 2, *, channel_axis: int | None = None) -> None:
        check_arguments(ndim=ndim)
        self.path, self.ndim = as_path(path), ndim
        axes = ndim + (channel_axis is not None)
        if channel_axis is not None and not (is_integer(channel_axis) and -axes <= channel_axis < axes):
            raise ValueError(f"channel_axis must be None or an axis from {-axes} to {axes - 1}, got {channel_axis!r}")
        self._channel_axis = None if channel_axis is None else int(channel_axis) % axes
        self._label = f"{self.path}::{self.inside}" if self.inside else str(self.path)
        self._opened: Any = None
        with damage_named(self._label):
            array = self._array()
            self._stored_shape = shape = tuple(map(int, array.shape))
            self._dtype = np.dtype(array.dtype)
            if len(shape) not in (axes, axes + 1) or 0 in shape:
                channels = "" if channel_axis is None else " and channels"
                raise ValueError(
                    f"it must have {axes} or {axes + 1} axes for ndim={ndim}{channels} and hold something, got shape "
                    f"{shape}"
                )
            to_float(np.empty(0, self._dtype), "it")
            check_claim(prod(shape) * self._dtype.itemsize, self._stored())
            chunk = prod(getattr(array, "chunks", None) or (0,)) * self._dtype.itemsize
            if chunk > LARGEST_CHUNK:
                raise ValueError(
                    f"its chunks have {chunk:,} bytes each, at most {LARGEST_CHUNK:,} are decoded at once: store it in "
                    "smaller ones"
                )
        self._single = len(shape) == axes
        self._count = 1 if self._single else shape[0]
        sides = list(shape[-axes:])
        if self._channel_axis is not None:
            sides.insert(0, sides.pop(self._channel_axis))
        self._shape = tuple(sides)

    @abstractmethod
    def _open(self) -> Any:
        """Open the array; errors of any kind mean that the file is damaged, and are told after its name."""

    def _array(self) -> Any:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _files(self) -> Iterable[Path]:
        return [self.path]

    def _stored(self) -> Iterable[int]:
        """Bytes of the files that the array lies in."""
        return (file.stat().st_size for file in self._files())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._count} signals of {sizes(self._shape)} in {self._label})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __len__(self) -> int:
        return self._count

    def read(self, index: int, epoch: int = 0) -> NDArray:
        return self.window(index, (0,) * self.ndim, self._shape[-self.ndim :])

    def window(self, index: int, corner: Sequence[int], size: Sequence[int]) -> NDArray:
        check_index(index, len(self))
        spans = spans_of(corner, size)
        if self._channel_axis is not None:
            spans.insert(self._channel_axis, slice(0, self._shape[0]))
        if not self._single:
            spans.insert(0, slice(index % len(self), index % len(self) + 1))
        name = self.name(index)
        with damage_named(name):
            array = self._array()
            if array.shape != self._stored_shape:
                raise ValueError(
                    f"it has changed since it was opened: it was {self._stored_shape} and is {array.shape}"
                )
            samples = np.array(array[tuple(spans)])
        return to_float(self._signal(samples, 0), name)

    def _signal(self, array: NDArray, index: int) -> NDArray:
        """Signal `index` of an array as it is stored, with its channels ahead."""
        signal = array if self._single else array[index]
        return signal if self._channel_axis is None else np.moveaxis(signal, self._channel_axis, 0)

    def mapped(self, index: int) -> NDArray:
        """Return signal `index`: as a view of the file where that can be mapped and holds floats, in a file where large."""
        check_index(index, len(self))
        with damage_named(self._label):
            array = self._array()
        dtype = to_float(np.empty(0, self._dtype), "it").dtype
        if isinstance(array, MappedFile) and self._dtype == dtype:
            signal = self._signal(array.map(), index)
            if signal.flags.c_contiguous:
                return signal
        if prod(self._shape) < LARGE:
            return self.read(index)
        out = scratch_file(self._shape, dtype)
        space = self._shape[-self.ndim :]
        for _, band in bands((prod(self._shape[: -self.ndim]), *space)):
            corner, size = (band.start, *[0] * (self.ndim - 1)), (band.stop - band.start, *space[1:])
            out.reshape(-1, *space)[:, band] = self.window(index, corner, size)
            release(out)
        return out

    def shape(self, index: int) -> tuple[int, ...]:
        check_index(index, len(self))
        return self._shape

    def name(self, index: int, epoch: int = 0) -> str:
        return self._label if self._single else f"{self._label}[{index}]"

    def describe(self) -> dict[str, Any]:
        return {
            "kind": type(self).__name__.removesuffix("Source").lower(),
            "signals": len(self),
            "shape": list(self._shape),
            "type": self._dtype.name,
            "content": file_fingerprint(sorted(self._files())),
        }


class MappedFile:
    """An array in a file, mapped only while a part of it is copied: pages that stayed mapped would count as memory in use.

    Parameters
    ----------
    mapped : np.memmap
        A map of the whole array, which is let go.
    """

    def __init__(self, mapped: np.memmap) -> None:
        self.shape, self.dtype = mapped.shape, mapped.dtype
        order = "C" if mapped.flags.c_contiguous else "F"
        self._map = partial(np.memmap, mapped.filename, mapped.dtype, "r", mapped.offset, mapped.shape, order)

    def map(self) -> NDArray:
        """The whole array, mapped for as long as it is held."""
        return self._map().view(np.ndarray)

    def __getitem__(self, place: Any) -> NDArray:
        return self.map()[place]


class NpySource(StackedSource):
    """A ``.npy`` file: only what is asked for is ever read.

    Parameters
    ----------
    path : str or path
    ndim : int
        Spatial axes of a signal; an array with one axis more is a stack of signals.
    channel_axis : int or None
        Which axis of a signal holds channels: 0 for a recording (channels, samples), -1 for one (samples, channels).
        Signals are read with channels ahead in either case. None where they have no channels.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> np.save("series.npy", np.zeros((5, 200), np.float32))
    >>> len(pt.sources.NpySource("series.npy", ndim=1))
    5
    >>> pt.sources.NpySource("series.npy", ndim=1, channel_axis=0).read(0).shape
    (5, 200)
    """

    def _open(self) -> MappedFile:
        return MappedFile(map_npy(self.path))


class TiffSource(StackedSource):
    """The pages of a TIFF file, grey, each a signal (or all of them one volume, with ``ndim=3``).

    Uncompressed stacks are mapped, so that a crop reads no more than itself; others are decoded page by page.

    Parameters
    ----------
    path : str or path
    ndim : int
        As in `NpySource`.
    channel_axis : int or None
        Which axis of a signal holds channels, as in `NpySource`.

    Examples
    --------
    >>> import numpy as np, pointillist as pt, tifffile
    >>> tifffile.imwrite("stack.tif", np.zeros((7, 40, 30), np.uint16), photometric="minisblack")
    >>> len(pt.sources.TiffSource("stack.tif")), len(pt.sources.TiffSource("stack.tif", ndim=3))
    (7, 1)
    """

    def _open(self) -> Any:
        check_regular(self.path, "TIFF file")
        with self.path.open("rb") as stream, tifffile.TiffFile(stream) as tiff:
            check_pages(stream)
            if tiff.pages.first.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
                raise ValueError("zero means white in it, which only single images may; save it with black as zero")
        try:
            return MappedFile(tifffile.memmap(self.path, mode="r", **ONE_FILE))
        except ValueError:  # compressed, tiled or scattered
            return _Pages(self.path)


class _Pages:
    """Pages of a TIFF file as an array (n, height, width), decoded one by one."""

    def __init__(self, path: Path) -> None:
        self._file = tifffile.TiffFile(path)
        self._lock = threading.Lock()  # pages share the file's position
        first = self._file.pages.first
        if first.ndim != 2:
            raise ValueError(f"its pages have the axes {first.axes}: only grey pages can be read as a stack")
        self.shape = (len(self._file.pages), *first.shape)
        self.dtype = first.dtype
        self.chunks = (1, *first.shape)
        self._size = path.stat().st_size

    def __getitem__(self, place: tuple[slice, slice, slice]) -> NDArray:
        return np.stack([self._page(index)[place[1:]] for index in range(len(self._file.pages))[place[0]]])

    def _page(self, index: int) -> NDArray:
        with self._lock:
            page = self._file.pages[index]
            if (page.shape, page.dtype) != (self.shape[1:], self.dtype):
                raise ValueError(
                    f"page {index} is {page.shape} of {page.dtype}, the first {self.shape[1:]} of {self.dtype}"
                )
            check_page(page, self._size)
            return page.asarray()


@dataclass
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

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    fill: Any
    load: Callable[[tuple[int, ...]], NDArray[Any] | None]

    def __post_init__(self) -> None:
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


def _decoded(codecs: Codecs, content: bytes, room: int) -> bytes:
    """Bytes before they were encoded; raises ValueError rather than take more than `room` for them."""
    for name, settings in codecs:
        if name in _PACKERS:
            content = _unpacked(name, content, room)
        elif name == "crc32c":
            content = content[:-4]
        elif name == "shuffle":
            content = np.frombuffer(content, np.uint8).reshape(int(settings.get("elementsize", 4)), -1).T.tobytes()
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
    listed = ", ".join(names[:_LISTED]) + ", …" * (len(names) > _LISTED)
    if name:
        raise ValueError(f"there is no array {name!r} in it; it holds {listed or 'none'}")
    if len(names) != 1:
        raise ValueError(f"name the array to read, as in FILE::NAME; it holds {listed or 'none'}")
    return names[0]


class Hdf5Source(StackedSource):
    """A dataset in an HDF5 file; needs the extra ``hdf5``.

    The file leads to no other one: external links, external storage and virtual datasets are refused.

    Parameters
    ----------
    path : str or path
    dataset : str
        Its path inside the file; may be left out where the file has only one.
    ndim : int
        As in `NpySource`.
    channel_axis : int or None
        Which axis of a signal holds channels, as in `NpySource`.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.sources.Hdf5Source("cells.h5", dataset="images")  # doctest: +SKIP
    """

    holds_several = True

    def __init__(self, path: str | Path, dataset: str = "", ndim: int = 2, *, channel_axis: int | None = None) -> None:
        check_arguments(dataset=dataset)
        self.inside = dataset
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> Any:
        try:
            h5py = import_module("h5py")
        except ImportError as error:
            raise ImportError(f"{self.path} needs h5py: pip install 'pointillist[hdf5]'") from error
        check_regular(self.path, "HDF5 file")
        file = h5py.File(self.path, "r")
        try:
            found = _followed(h5py, file, self.inside) if self.inside else None
            if not isinstance(found, h5py.Dataset):
                found = file[_chosen(self.inside, _dataset_names(h5py, file))]
            return _hdf5_array(found)
        except Exception:
            file.close()
            raise


def _followed(h5py: Any, file: Any, name: str) -> Any:
    """The object of that name, or None, by links that lead to no other file and in bounded time."""
    here, parts, seen = file["/"], deque(name.split("/")), 0
    while parts:
        part = parts.popleft()
        if part in ("", "."):
            continue
        seen += 1
        if seen > _MOST_LINKS:
            raise ValueError(f"more than {_MOST_LINKS:,} links would have to be followed: name the dataset itself")
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if isinstance(link, h5py.HardLink):
            here = here[part]
        elif isinstance(link, h5py.SoftLink):
            here = file["/"] if link.path.startswith("/") else here
            parts.extendleft(reversed(link.path.split("/")))
        elif link is None:
            return None
        else:
            raise ValueError(f"a link leads to another file, {link.filename}, which is not read: name that file itself")
    return here


def _dataset_names(h5py: Any, file: Any) -> list[str]:
    """Names of a file's datasets, each once, in order; those behind links are left out."""
    names, groups, seen = [], [("", file["/"])], {file["/"]}
    while groups:
        prefix, group = groups.pop()
        for key in islice(group, _MOST_LINKS):
            if isinstance(group.get(key, getlink=True), h5py.HardLink) and (item := group[key]) not in seen:
                seen.add(item)
                if isinstance(item, h5py.Dataset):
                    names.append(prefix + key)
                elif isinstance(item, h5py.Group) and len(seen) < _MOST_LINKS:
                    groups.append((f"{prefix}{key}/", item))
    return sorted(names)


def _hdf5_array(dataset: Any) -> Any:
    """A dataset whose packed chunks are unpacked here, into no more than their room; itself where none is packed."""
    if dataset.is_virtual or dataset.external:
        raise ValueError(
            "its samples lie in other datasets or files, which are not read: copy them into one of its own"
        )
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
        content = _decoded(used[::-1], dataset.id.read_direct_chunk(corner)[1], room)
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

    holds_several = True

    def __init__(self, path: str | Path, array: str = "", ndim: int = 2, *, channel_axis: int | None = None) -> None:
        check_arguments(array=array)
        self.inside = array
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> ChunkedArray:
        store: _Store = self.path.resolve()
        if not self.path.is_dir():
            check_regular(self.path, "zarr store")
            store = zipfile.ZipFile(self.path)
        name = self.inside
        metadata = _zarr_metadata(store, name)
        if metadata is None:
            name = _chosen(name, _zarr_names(store))
            metadata = _zarr_metadata(store, name) or {}
        return _zarr_array(store, f"{name}/" if name else "", metadata)

    def _files(self) -> Iterable[Path]:
        return filter(Path.is_file, self.path.rglob("*")) if self.path.is_dir() else [self.path]

    def _stored(self) -> Iterable[int]:
        return (file.lstat().st_size for file in self._files())


def _zarr_file(store: _Store, name: str) -> Any:
    """A file of a store, a folder or a zip file, by its name with slashes, open; None where there is none."""
    if isinstance(store, zipfile.ZipFile):
        return store.open(name) if name in store.NameToInfo else None
    path = store / name
    if not path.resolve().is_relative_to(store):
        raise ValueError(f"{name} leads out of the store")
    if not path.exists():
        return None
    check_regular(path)
    return path.open("rb")


def _zarr_metadata(store: _Store, inside: str) -> dict[str, Any] | None:
    """Metadata of the array at a path, of either format; None where there is no array."""
    if inside and any(part in ("", ".", "..") for part in inside.split("/")):
        raise ValueError(f"{inside!r} is no path inside of a store")
    for name in _METADATA:
        stream = _zarr_file(store, f"{inside}/{name}" if inside else name)
        if stream is not None:
            with stream:
                text = stream.read(_LARGEST_METADATA + 1)
            if len(text) > _LARGEST_METADATA:
                raise ValueError(f"its {name} is longer than {_LARGEST_METADATA:,} bytes")
            found = json.loads(text)
            return None if found.get("node_type") == "group" else found
    return None


def _zarr_names(store: _Store) -> list[str]:
    """Paths of all arrays of a store."""
    if isinstance(store, zipfile.ZipFile):
        files: Iterable[Path] = map(Path, store.namelist())
    else:
        files = (file.relative_to(store) for file in store.rglob("*"))
    names = {file.parent.as_posix() for file in files if file.name in _METADATA} - {"."}
    return sorted(name for name in names if _zarr_metadata(store, name) is not None)


def _zarr_array(store: _Store, folder: str, metadata: dict[str, Any]) -> ChunkedArray:
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
    if not isinstance(kind, str) or np.dtype(kind).kind not in "biuf":
        raise ValueError(f"it holds {kind!r}: only arrays of numbers are read")
    dtype, codecs = np.dtype(kind), _codecs(given)
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
    as_stored = dtype.newbyteorder(">") if settings.get("bytes", {}).get("endian") == "big" else dtype
    room = prod(inner) * dtype.itemsize + 16
    parts = [side // part for side, part in zip(outer, inner, strict=True)]

    def load(number: tuple[int, ...]) -> NDArray[Any] | None:
        shard, within = zip(*map(divmod, number, parts), strict=True)
        name = folder + prefix + separator.join(map(str, shard))
        stream = _zarr_file(store, name)
        if stream is None:
            return None
        with stream:
            size = 2 * room + 1 if shards is None else _size_in_shard(stream, parts, within, shards)
            content = stream.read(min(size, 2 * room + 1))
        if len(content) > 2 * room:
            raise ValueError(f"its {name} is longer than {2 * room:,} bytes, or a chunk in it is")
        if size == 0:
            return None
        samples = np.frombuffer(_decoded(codecs, content, room), as_stored, prod(inner))
        return samples.reshape([inner[axis] for axis in order]).transpose(np.argsort(order))

    value = metadata.get("fill_value")
    with np.errstate(over="ignore"):  # what is too large for its type is infinite
        return ChunkedArray(shape, inner, dtype, np.array(float(value or 0)).astype(dtype), load)


def _size_in_shard(stream: BinaryIO, parts: list[int], within: tuple[int, ...], shards: dict[str, Any]) -> int:
    """Bytes of a packed chunk in a shard, at which the stream then stands, by the shard's index; 0 where there is none."""
    index = [_codec_name(codec) for codec in shards.get("index_codecs") or ["bytes", "crc32c"]]
    if not set(index) <= {"bytes", "crc32c"} or 16 * prod(parts) > LARGEST_CHUNK:
        raise ValueError("its shards have a packed index, or too many chunks, which is not read")
    length = 16 * prod(parts) + 4 * index.count("crc32c")
    end = stream.seek(0, os.SEEK_END)
    stream.seek(0 if shards.get("index_location") == "start" else max(end - length, 0))
    places = np.frombuffer(stream.read(length), "<u8", 2 * prod(parts)).reshape(*parts, 2)
    begin, size = places[within].tolist()
    if begin == size == 2**64 - 1:
        return 0
    if begin + size > end:
        raise ValueError("a chunk of its shards does not lie in them: it is damaged")
    stream.seek(begin)
    return size


def _codecs(given: list[Any]) -> Codecs:
    """Codecs in the order of undoing; raises ValueError for any that is not read."""
    found = []
    for one in reversed(given):
        name = _codec_name(one)
        settings = {} if isinstance(one, str) else one.get("configuration", one)
        if name not in _CODECS or settings.get("id", name) != name:
            known = ", ".join(sorted((*_CODECS, _SHARDING)))
            raise ValueError(f"it is stored by the codec {name!r}, which is not read: only {known} are")
        found.append((name, settings))
    return found


def _codec_name(codec: Any) -> str:
    name = codec if isinstance(codec, str) else codec.get("id") or codec["name"]
    return str(name).removeprefix("numcodecs.")


def _sides(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(side) is int and side >= 0 for side in given):
        raise ValueError(f"it has {given!r} for a shape: it is damaged")
    return tuple(given)
