"""Sources of signals of any size: arrays, files, containers, random crops, and the stream of batches made from them.

Files are opened by what people type: their names, folders, patterns, and arrays inside containers.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from pointillist.arrays import LARGE
from pointillist.data.damage import OnError, check_pages, read_each
from pointillist.data.paths import STORE_SUFFIXES, TABLE_SUFFIXES, PathLike, files_of
from pointillist.data.photofiles.photograph import IMAGE_SUFFIXES
from pointillist.data.samples import ONE_FILE
from pointillist.data.sources.base import (
    ArraySource,
    CropSource,
    ImageSource,
    JoinedSource,
    KeptSource,
    NormalisedSource,
    Source,
    StoredSource,
)
from pointillist.data.sources.stacks import Hdf5Source, NpySource, TiffSource, ZarrSource
from pointillist.data.sources.stream import IteratorSource, Stream, UnreadBatch, read_batch
from pointillist.data.sources.tables import TableSource
from pointillist.errors import UnreadableFileError
from pointillist.storage import check_regular
from pointillist.validation import check_arguments

__all__ = [
    "Source", "ArraySource", "NpySource", "ImageSource", "TiffSource", "ZarrSource", "Hdf5Source", "TableSource",
    "IteratorSource", "CropSource", "JoinedSource", "NormalisedSource",
]  # fmt: skip

SIGNAL_SUFFIXES = IMAGE_SUFFIXES | {".npy"}
"""Ends of the names of files that are read from folders."""

_KINDS: dict[str, Any] = {
    ".npy": NpySource,
    **dict.fromkeys((".tif", ".tiff"), TiffSource),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), Hdf5Source),
    **dict.fromkeys(STORE_SUFFIXES, ZarrSource),
}
"""Stacked sources by the ends of file names: a new format is a subclass of `StackedSource`, and a line here. Tables, whose
signals have one axis only, are opened in `_open`; files of other names are images."""


def open_source(
    paths: PathLike | Iterable[PathLike],
    *,
    ndim: int = 2,
    grey: bool = True,
    channel_axis: int | None = None,
    on_error: OnError = "raise",
    recursive: bool | None = None,
) -> StoredSource:
    """A source of all signals in some files, in order, none of which is read yet.

    Parameters
    ----------
    paths : path or iterable of paths
        Image files; ``.npy`` files, mapped; TIFF stacks, page by page; ``FILE.h5::dataset`` and ``STORE.zarr::array``, or
        without a name where there is only one; tables in text, ``.csv`` and ``.tsv``, of signals with one axis, and
        ``FILE.csv::column``; folders, for the image and ``.npy`` files in them; patterns such as ``photos/**/*.jpg``; all in
        natural order, folder by folder.
    ndim : int
        Spatial axes of a signal. Image files and single TIFF pages need 2. An array with one axis more is a stack of
        signals.
    grey : bool
        Whether signals of image files are grey, (height, width), or colour, (3, height, width).
    channel_axis : int or None
        Which axis of an array's signals holds channels: with ``ndim=1``, 0 says that an array (channels, samples) is one
        recording, and -1 that an array (samples, channels) is, or a table with a column for each channel. None where they
        have no channels. With channels, image files are read in colour.
    on_error : {"raise", "skip"}
        Whether a file that cannot be opened stands for one unreadable signal, for the stream to pass over, or raises.
    recursive : bool or None
        Whether files in subfolders of folders are read too. None does not read them and logs a warning of how many there
        are; False does not read them and says nothing.

    Returns
    -------
    StoredSource of signals ([channels,] *space)
        For `OnlineCSC.fit`, or to be cut by `CropSource` and prepared by `NormalisedSource`.

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> for name in ("a.png", "b.png"):
    ...     Image.new("L", (40, 30)).save(name)
    >>> len(pt.open_source("*.png"))
    2

    Raises
    ------
    FileNotFoundError
        If a path does not exist or a pattern matches nothing.
    ValueError
        If a folder holds no such files.
    UnreadableFileError
        If a file other than an image cannot be opened; images are opened when they are read.
    """
    check_arguments(ndim=ndim, grey=grey, on_error=on_error)
    files = files_of(paths, SIGNAL_SUFFIXES, recursive=recursive)
    sources: list[StoredSource] = []
    grey = grey and channel_axis is None
    for pictures, group in groupby(files, lambda file: ndim == 2 and _is_image(file, grey)):
        if pictures:
            sources.append(ImageSource(list(group), grey=grey))
            continue
        for file in group:
            try:
                sources.append(_open(file, ndim, channel_axis))
            except UnreadableFileError as error:
                if on_error == "raise":
                    raise
                sources.append(UnopenedSource(file, str(error)))
    return sources[0] if len(sources) == 1 else JoinedSource(sources)


def _suffix(file: str) -> str:
    return Path(file.partition("::")[0]).suffix.lower()


def _is_image(file: str, grey: bool) -> bool:
    """True for all but arrays, tables, stacks, and large grey TIFF images that are left in their files.

    A damaged TIFF file is left to the reader of images, who says why.
    """
    suffix = _suffix(file)
    if _KINDS.get(suffix) is not TiffSource:
        return "::" not in file and suffix not in (*_KINDS, *TABLE_SUFFIXES)
    try:
        check_regular(file)
        with open(file, "rb") as stream, tifffile.TiffFile(stream, **ONE_FILE) as tiff:
            check_pages(stream)
            first = tiff.pages.first
            plain = first.is_memmappable and first.axes == "YX" and first.photometric == tifffile.PHOTOMETRIC.MINISBLACK
            large = plain and grey and first.size >= LARGE and first.tags.valueof("Orientation", 1) == 1
            # ImageJ writes one page and lets the rest follow.
            follow = tiff.is_imagej and len(tiff.series[0].axes.replace("S", "")) > 2
            return not (len(tiff.pages) > 1 or large or follow)
    except Exception:  # of many kinds, as damaged files have them
        return True


def _open(file: str, ndim: int, channel_axis: int | None) -> StoredSource:
    path, _, name = file.partition("::")
    suffix = _suffix(file)
    if suffix in TABLE_SUFFIXES:
        if ndim != 1:
            raise UnreadableFileError(
                f"{path} is a table, whose columns are signals of one axis: say ndim=1 (--ndim 1, or --channels last), "
                f"not {ndim}"
            )
        if channel_axis not in (None, -1, 1):
            raise UnreadableFileError(
                f"{path} is a table, whose channels are its columns: say channel_axis=-1 (--channels last), not "
                f"{channel_axis}"
            )
        return TableSource(path, name, channels=channel_axis is not None)
    if suffix not in _KINDS:
        tables = ".csv, .tsv, " if ndim == 1 else ""
        raise UnreadableFileError(
            f"{file} is no array: with ndim={ndim} only .npy, {tables}TIFF, zarr and HDF5 files can be read"
        )
    kind = _KINDS[suffix]
    inside = (path, name) if kind.holds_several else (file,)
    source: StoredSource = kind(*inside, ndim, channel_axis=channel_axis)
    return source


class UnopenedSource(ImageSource):
    """Stands for a file that could not be opened: a source of one signal, which cannot be read."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__([file])
        self._reason = reason

    def read(self, index: int, epoch: int = 0) -> NDArray:
        raise UnreadableFileError(self._reason)


def load_signals(
    paths: PathLike | Iterable[PathLike],
    *,
    ndim: int = 2,
    channel_axis: int | None = None,
    on_error: OnError = "raise",
    recursive: bool | None = None,
) -> list[NDArray[np.floating]]:
    """Read everything that `open_source` opens as one list of signals.

    Parameters
    ----------
    paths : path or iterable of paths
        As for `open_source`: image files, which become grey, ``.npy`` files, TIFF stacks, arrays in zarr and HDF5 files,
        tables in text (``.csv``, ``.tsv``) with ``ndim=1``, folders, and patterns.
    ndim : int
        Axes of a signal: 2 for images, 1 for series (length,), 3 for volumes (depth, height, width). An array with
        one axis more is a stack of signals. Image files can only be read with 2.
    channel_axis : int or None
        Which axis of an array's signals holds channels, 0 for (channels, samples) and -1 for (samples, channels); None
        where they have none. With channels, image files are read in colour.
    on_error : {"raise", "skip"}
        As for `load_images`.
    recursive : bool or None
        Whether files in subfolders are read too, as in `open_source`.

    Returns
    -------
    list of float arrays ([channels,] *space)
        uint8 and uint16 samples are scaled to [0, 1]. float32 and float64 signals are read-only views of the
        mapped ``.npy`` file, so that a large stack is not read before it is used. A signal of more than four million
        samples in a ``.npy`` or TIFF file is left in a file in any case.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> np.save("series.npy", np.zeros((5, 200), np.float32))
    >>> len(pt.load_signals("series.npy", ndim=1))
    5

    Raises
    ------
    FileNotFoundError, UnreadableFileError, ValueError
        As for `load_images`.
    """
    source = open_source(paths, ndim=ndim, channel_axis=channel_axis, on_error=on_error, recursive=recursive)
    return read_each(range(len(source)), source.mapped, on_error)


def as_source(signals: Any) -> Source | IteratorSource:
    """A source of what users pass: itself, arrays and lists of them in memory, or an iterator of signals."""
    if isinstance(signals, Source | IteratorSource):
        return signals
    if isinstance(signals, np.ndarray | list | tuple):
        return ArraySource(signals)
    if isinstance(signals, type) or not hasattr(signals, "__iter__"):
        raise TypeError(f"X must be an array, a list, a source or an iterable of signals, got {type(signals).__name__}")
    return IteratorSource(signals)
