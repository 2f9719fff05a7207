"""Stacks of signals inside one file: TIFF pages, zarr arrays and HDF5 datasets, read part by part."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.data.damage import check_page, check_pages
from pointillist.data.mapped import ONE_FILE
from pointillist.data.sources.arrays import MappedFile, StackedSource
from pointillist.data.sources.hdf5_links import Hdf5Tree
from pointillist.data.sources.zarr_files import array_format, array_names, check_array, checked_array, zarr_files
from pointillist.reprs import shown
from pointillist.storage import check_regular
from pointillist.validation import as_list, as_path

_LISTED = 20
"""Names of arrays that a message lists."""


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

    kind: ClassVar[str] = "tiff"

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
    """Pages of a TIFF file as an array (n, height, width) that is read by its first index."""

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

    def __getitem__(self, place: Any) -> NDArray:
        index, *where = place if isinstance(place, tuple) else (place,)
        if not isinstance(index, int | np.integer):
            return np.stack([self[i] for i in range(self.shape[0])])[place]
        with self._lock:
            page = self._file.pages[int(index)]
            if (page.shape, page.dtype) != (self.shape[1:], self.dtype):
                raise ValueError(
                    f"page {index} is {page.shape} of {page.dtype}, the first {self.shape[1:]} of {self.dtype}"
                )
            check_page(page, self._size)
            samples = page.asarray()
        return samples[tuple(where)] if where else samples


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
    channel_axis : int or None
        Which axis of a signal holds channels, as in `NpySource`.

    Examples
    --------
    >>> import pointillist as pt
    >>> source = pt.sources.ZarrSource("cells.zarr", array="0/images")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "zarr"

    def __init__(self, path: str | Path, array: str = "", ndim: int = 2, *, channel_axis: int | None = None) -> None:
        self.inside = _name_inside(array, "array")
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> Any:
        zarr = _package("zarr", "zarr", self.path)
        new = int(zarr.__version__.partition(".")[0]) >= 3
        formats, files = (3, 2) if new else (2,), zarr_files(self.path)
        form, name = array_format(files, self.inside, formats), self.inside
        if form is None:
            name = _chosen(self.inside, array_names(files, formats))
            form = array_format(files, name, formats)
        check_array(files, name, form or 2)
        kind = ("LocalStore" if new else "DirectoryStore") if self.path.is_dir() else "ZipStore"
        store = getattr(zarr.storage, kind)(str(self.path), **({"mode": "r"} if kind == "ZipStore" else {}))
        with np.errstate(over="ignore"):  # fill values too large for their type are infinite
            array = zarr.open_array(store, path=name, mode="r", **{"zarr_format" if new else "zarr_version": form})
        return checked_array(array, files, name, form or 2)

    def _stored(self) -> Iterable[int]:
        return zarr_files(self.path).sizes("")

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
        self.inside = _name_inside(dataset, "dataset")
        self.external = [as_path(file, "external") for file in as_list(external, "external")]
        super().__init__(path, ndim, channel_axis=channel_axis)

    def _open(self) -> Any:
        h5py = _package("h5py", "hdf5", self.path)
        tree = Hdf5Tree(h5py, self.path, self.external)
        try:
            found = tree.dataset(self.inside) if self.inside else None
            return tree.dataset(_chosen(self.inside, tree.names())) if found is None else found
        except Exception:
            tree.close()
            raise

    def _files(self) -> list[Path]:
        return [self.path, *self.external]

    def _stored(self) -> Iterable[int]:
        return [file.stat().st_size for file in self._files()]


def _package(name: str, extra: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{path} needs {name}: pip install 'pointillist[{extra}]'") from error


def _name_inside(given: str, name: str) -> str:
    """The name of an array in a file, if it is a text; errors call the argument by `name`."""
    if not isinstance(given, str):
        raise TypeError(f"{name} must be a text, got {shown(given)}")
    return given


def _chosen(name: str, names: list[str]) -> str:
    """The only one of the arrays that a file holds; raises ValueError if there are more, or if one was named."""
    listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    if name:
        raise ValueError(f"there is no array {name!r} in it; it holds {listed or 'none'}")
    if len(names) != 1:
        raise ValueError(f"name the array to read, as in FILE::NAME; it holds {listed or 'none'}")
    return names[0]
