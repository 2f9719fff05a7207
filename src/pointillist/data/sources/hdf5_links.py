"""The datasets of an HDF5 file, found without leaving the file and in bounded time, however its links are knotted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from math import prod
from pathlib import Path
from typing import Any

from pointillist.data.packed import CheckedArray, check_packed, check_stored
from pointillist.storage import check_regular

_MOST = 10_000
"""Links, and parts of virtual datasets, that are looked at."""
_DEFLATE = 1
"""The filter of HDF5 that packs as zlib does."""


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
        self._root = self._opened(path)

    def dataset(self, name: str) -> Any:
        """The dataset of that name, or None; its samples lie in files that are allowed."""
        found = self._follow(self._root, name)
        if not isinstance(found, self._h5py.Dataset):
            return None
        self._check_samples(found)
        return _checked(found)

    def names(self) -> list[str]:
        """What the datasets of the file are called, each once, in order; those behind links are left out."""
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

    def _opened(self, path: Path) -> Any:
        check_regular(path, "HDF5 file")
        self._files.append(self._h5py.File(path, "r"))
        return self._files[-1]["/"]

    def close(self) -> None:
        """Close all files, and with them the datasets."""
        for file in self._files:
            file.close()

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
                here = self._opened(self._permitted(Path(here.file.filename).parent / link.filename, "a link"))
            elif link.path.startswith("/"):
                here = here.file["/"]
            parts.extendleft(reversed(link.path.split("/")))
        return here

    def _check_samples(self, dataset: Any, *, part: bool = False) -> None:
        for name, *_ in dataset.external or ():
            self._permitted(Path(name), "external storage")  # which HDF5 looks for in the working folder
        if not dataset.is_virtual:
            if part:
                self._check_chunks(dataset)
            return
        if part:
            raise ValueError("it is made of virtual datasets: make it of the datasets that hold the samples")
        folder = Path(dataset.file.filename).parent
        for source in dataset.virtual_sources():
            if "%" in source.file_name + source.dset_name:
                raise ValueError("it is made of files or datasets that a pattern names, which is not read")
            own = source.file_name == "."
            root = dataset.file["/"]
            if not own:
                root = self._opened(self._permitted(folder / source.file_name, "a virtual dataset"))
            found = self._follow(root, source.dset_name)
            if isinstance(found, self._h5py.Dataset):
                self._check_samples(found, part=True)

    def _check_chunks(self, dataset: Any) -> None:
        """Check all packed chunks of a part of a virtual dataset, which HDF5 unpacks unasked."""
        check = _packed_check(dataset)
        if check is None:
            return
        for i in range(dataset.id.get_num_chunks()):
            check(dataset.id.get_chunk_info(i).chunk_offset)

    def _permitted(self, path: Path, what: str) -> Path:
        if path.resolve() not in self._allowed:
            raise ValueError(
                f"{what} leads to another file, {path}, which is not read: copy it into this one, "
                "or allow it by Hdf5Source(..., external=[...])"
            )
        check_regular(path)
        return path


def _checked(dataset: Any) -> Any:
    """A dataset whose packed chunks are checked before HDF5 unpacks them; itself where nothing is packed."""
    check = _packed_check(dataset)
    if check is None:
        return dataset
    sides = dataset.chunks
    return CheckedArray(
        dataset, sides, lambda number: check(tuple(i * side for i, side in zip(number, sides, strict=True)))
    )


def _packed_check(dataset: Any) -> Callable[[tuple[int, ...]], None] | None:
    """A check of the chunk at a corner; None where chunks are not packed."""
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
    if _DEFLATE not in filters or dataset.chunks is None:
        return None
    if filters.count(_DEFLATE) > 1:
        raise ValueError("its chunks are packed twice: store it with one filter that packs")
    room = prod(dataset.chunks) * dataset.dtype.itemsize
    bit = 1 << filters.index(_DEFLATE)

    def check(corner: tuple[int, ...]) -> None:
        found = dataset.id.get_chunk_info_by_coord(corner)
        if found.byte_offset is not None and not found.filter_mask & bit:
            check_stored(found.size, room)
            check_packed("zlib", dataset.id.read_direct_chunk(corner)[1], room)

    return check
