"""Stacks of signals inside one file: TIFF pages, zarr arrays and HDF5 datasets, read part by part."""

import threading
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.data.sources.arrays import MappedFile, StackedSource


class TiffSource(StackedSource):
    """The pages of a TIFF file, grey, each a signal (or all of them one volume, with ``ndim=3``).

    Uncompressed stacks are mapped, so that a crop reads no more than itself; others are decoded page by page.

    Parameters
    ----------
    path : str or path
    ndim : int
        As in `NpySource`.

    Examples
    --------
    >>> import numpy as np, pointillist as pt, tifffile
    >>> tifffile.imwrite("stack.tif", np.zeros((7, 40, 30), np.uint16), photometric="minisblack")
    >>> len(pt.TiffSource("stack.tif")), len(pt.TiffSource("stack.tif", ndim=3))
    (7, 1)
    """

    kind: ClassVar[str] = "tiff"

    def _open(self) -> Any:
        with tifffile.TiffFile(self.path) as tiff:
            if tiff.pages.first.photometric == tifffile.PHOTOMETRIC.MINISWHITE:
                raise ValueError("zero means white in it, which only single images may; save it with black as zero")
        try:
            return MappedFile(tifffile.memmap(self.path, mode="r"))
        except ValueError:  # compressed, tiled or scattered
            return _Pages(self.path)


class _Pages:
    """Pages of a TIFF file as an array (n, height, width) that is read by its first index."""

    def __init__(self, path: Path) -> None:
        self._file = tifffile.TiffFile(path)
        self._lock = threading.Lock()  # pages share the file's position
        first = self._file.pages.first
        if first.ndim != 2:
            raise ValueError(f"its pages have the axes {first.axes}: only grey pages can be read as a stack")
        self.shape = (len(self._file.pages), *first.shape)
        self.dtype = first.dtype

    def __getitem__(self, place: Any) -> NDArray:
        index, *where = place if isinstance(place, tuple) else (place,)
        if not isinstance(index, int | np.integer):
            return np.stack([self[i] for i in range(self.shape[0])])[place]
        with self._lock:
            page = self._file.pages[int(index)].asarray()
        if page.shape != self.shape[1:]:
            raise ValueError(f"page {index} is {page.shape}, the first is {self.shape[1:]}")
        return page[tuple(where)] if where else page


class ZarrSource(StackedSource):
    """A zarr array on disk; needs the extra ``zarr``.

    Parameters
    ----------
    path : str or path
        The store, a folder or a ``.zip`` file.
    array : str
        The array's path inside, where the store is a group.
    ndim : int
        As in `NpySource`.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.ZarrSource("cells.zarr", array="0/images")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "zarr"

    def __init__(self, path: str | Path, array: str = "", ndim: int = 2) -> None:
        self.inside = array
        super().__init__(path, ndim)

    def _open(self) -> Any:
        zarr = _package("zarr", "zarr", self.path)
        opened = zarr.open(str(self.path), mode="r")
        return opened if isinstance(opened, zarr.Array) and not self.inside else _only(opened, self.inside, zarr.Array)

    def _files(self) -> list[Path]:
        # Chunks are many; their folder's metadata and the chunks' own times tell a change.
        return sorted(path for path in self.path.rglob("*") if path.is_file()) if self.path.is_dir() else [self.path]


class Hdf5Source(StackedSource):
    """A dataset in an HDF5 file; needs the extra ``hdf5``.

    Parameters
    ----------
    path : str or path
    dataset : str
        Its path inside the file; may be left out where the file has only one.
    ndim : int
        As in `NpySource`.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.Hdf5Source("cells.h5", dataset="images")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "hdf5"

    def __init__(self, path: str | Path, dataset: str = "", ndim: int = 2) -> None:
        self.inside = dataset
        super().__init__(path, ndim)

    def _open(self) -> Any:
        h5py = _package("h5py", "hdf5", self.path)
        return _only(h5py.File(self.path, "r"), self.inside, h5py.Dataset)


def _package(name: str, extra: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{path} needs {name}: pip install 'pointillist[{extra}]'") from error


def _only(group: Any, name: str, kind: type) -> Any:
    """The array of a group that is named, or the only one that there is."""
    if name:
        found = group.get(name)
        if not isinstance(found, kind):
            raise ValueError(f"there is no array {name!r} in it; it holds {_listed(group, kind)}")
        return found
    names = _arrays_in(group, kind)
    if len(names) != 1:
        raise ValueError(f"name the array to read, as in FILE::NAME; it holds {_listed(group, kind)}")
    return group[names[0]]


def _arrays_in(group: Any, kind: type, prefix: str = "") -> list[str]:
    names: list[str] = []
    for key in sorted(group.keys()):
        item = group[key]
        names += [prefix + key] if isinstance(item, kind) else _arrays_in(item, kind, f"{prefix}{key}/")
    return names


def _listed(group: Any, kind: type) -> str:
    return ", ".join(_arrays_in(group, kind)) or "none"
