"""Datasets of HDF5 files, found without leaving the file and in bounded time, however its links are knotted."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources.stacks import ChunkedArray, StackedSource, as_text, chosen, unpacked
from pointillist.storage import check_regular
from pointillist.validation import as_list, as_path

_MOST = 10_000
"""Links, and parts of virtual datasets, that are looked at."""
_DEFLATE, _SHUFFLE, _CHECKSUM = 1, 2, 3
"""Filters of HDF5 that are undone here; of these only the first makes many bytes of few."""


class Hdf5Source(StackedSource):
    """A dataset in an HDF5 file; needs the extra ``hdf5``.

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
        Other files that the dataset may lie in, by external links or storage or as a virtual one; more are refused.

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
        self.external = [as_path(file, "external") for file in as_list(external, "external")]
        self.inside = as_text(dataset, "dataset")
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> Any:
        try:
            h5py = import_module("h5py")
        except ImportError as error:
            raise ImportError(f"{self.path} needs h5py: pip install 'pointillist[hdf5]'") from error
        tree = Hdf5Tree(h5py, self.path, self.external)
        try:
            found = tree.dataset(self.inside) if self.inside else None
            return tree.dataset(chosen(self.inside, tree.names())) if found is None else found
        except Exception:
            tree.close()
            raise

    def _files(self) -> list[Path]:
        return [self.path, *self.external]


class Hdf5Tree:
    """An HDF5 file whose links, external storage and virtual datasets lead to no file that was not allowed.

    Parameters
    ----------
    h5py : module
    path : Path
    external : collection of Path
        Other files that the datasets may lie in.
    """

    def __init__(self, h5py: Any, path: Path, external: Collection[Path] = ()) -> None:
        self._h5py, self._left = h5py, _MOST
        self._files: list[Any] = []
        self._allowed = {path.resolve(), *(other.resolve() for other in external)}
        self._root = self._opened(path, "it")

    def dataset(self, name: str) -> Any:
        """The dataset of that name, or None; its samples lie in files that are allowed."""
        found = self._follow(self._root, name)
        if not isinstance(found, self._h5py.Dataset):
            return None
        self._check_storage(found)
        if not found.is_virtual:
            return _unpacking(found)
        for source in found.virtual_sources():
            if "%" in source.file_name + source.dset_name:
                raise ValueError("it is made of files or datasets that a pattern names, which is not read")
            root = found.file["/"]
            if source.file_name != ".":
                root = self._opened(Path(found.file.filename).parent / source.file_name, "a virtual dataset")
            part = self._follow(root, source.dset_name)
            if isinstance(part, self._h5py.Dataset):
                self._check_storage(part)
                if part.is_virtual:
                    raise ValueError("it is made of virtual datasets: make it of the datasets that hold the samples")
                array = _unpacking(part)
                if isinstance(array, ChunkedArray):  # HDF5 unpacks it unasked: it is tried before
                    for i in range(part.id.get_num_chunks()):
                        corner = part.id.get_chunk_info(i).chunk_offset
                        array.load(tuple(n // side for n, side in zip(corner, part.chunks, strict=True)))
        return found

    def names(self) -> list[str]:
        """Names of the file's datasets, each once, in order; those behind links are left out."""
        names, groups, seen = [], [("", self._root)], {self._root}
        while groups:
            prefix, group = groups.pop()
            for key in group:
                self._count()
                if not isinstance(group.get(key, getlink=True), self._h5py.HardLink):
                    continue
                item = group[key]
                if item in seen:
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
            raise ValueError(f"more than {_MOST:,} links would have to be followed: name the dataset, not a link to it")

    def _follow(self, here: Any, name: str) -> Any:
        parts = deque(name.split("/"))
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

    def _check_storage(self, dataset: Any) -> None:
        for name, *_ in dataset.external or ():
            self._check_permitted(Path(name), "external storage")  # which HDF5 looks for in the working folder

    def _check_permitted(self, path: Path, what: str) -> None:
        if path.resolve() not in self._allowed:
            raise ValueError(
                f"{what} leads to another file, {path}, which is not read: copy it into this one, "
                "or allow it by Hdf5Source(..., external=[...])"
            )
        check_regular(path, "HDF5 file")


def _unpacking(dataset: Any) -> Any:
    """A dataset whose packed chunks are unpacked here, into no more than their room; itself where none is packed."""
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(i) for i in range(settings.get_nfilters())]
    codes = [code for code, *_ in filters]
    if _DEFLATE not in codes or dataset.chunks is None:
        return dataset
    if (
        not set(codes) <= {_DEFLATE, _SHUFFLE, _CHECKSUM}
        or codes.count(_DEFLATE) > 1
        or dataset.dtype.kind not in "biuf"
    ):
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
        content: Any = dataset.id.read_direct_chunk(corner)[1]
        for i, code in reversed(list(enumerate(codes))):
            if found.filter_mask >> i & 1:
                continue
            if code == _DEFLATE:
                content = unpacked("zlib", content, room)
            elif code == _SHUFFLE:
                content = np.frombuffer(content, np.uint8).reshape(dataset.dtype.itemsize, -1).T.tobytes()
            else:
                content = content[:-4]
        return np.frombuffer(content, dataset.dtype, prod(dataset.chunks)).reshape(dataset.chunks)

    return ChunkedArray(dataset.shape, dataset.chunks, dataset.dtype, dataset.fillvalue, load)
