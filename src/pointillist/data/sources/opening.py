"""Opening a source by what people type: files, folders, patterns, stacks, and arrays inside containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import tifffile
from numpy.typing import NDArray

from pointillist.data.damage import OnError, check_on_error, check_pages
from pointillist.data.paths import STORE_SUFFIXES, TABLE_SUFFIXES, PathLike, files_of
from pointillist.data.photofiles.formats import IMAGE_SUFFIXES
from pointillist.data.samples import ONE_FILE
from pointillist.data.sources.base import StoredSource, file_fingerprint
from pointillist.data.sources.derived import JoinedSource
from pointillist.data.sources.hdf5 import Hdf5Source
from pointillist.data.sources.images import ImageSource
from pointillist.data.sources.stacks import NpySource, TiffSource
from pointillist.data.sources.tables import TableSource
from pointillist.data.sources.zarr import ZarrSource
from pointillist.errors import UnreadableFileError
from pointillist.storage import check_regular
from pointillist.validation import check_arguments

Opener = Callable[[str, str, int, int | None], StoredSource]
"""Makes a source of a file, the name of an array inside, ``ndim`` and ``channel_axis``."""


def _table(path: str, column: str, ndim: int, channel_axis: int | None) -> TableSource:
    if ndim != 1:
        raise UnreadableFileError(
            f"{path} is a table, whose columns are signals of one axis: say ndim=1 (--ndim 1, or --channels last), "
            f"not {ndim}"
        )
    if channel_axis not in (None, -1, 1):
        raise UnreadableFileError(
            f"{path} is a table, whose channels are its columns: say channel_axis=-1 (--channels last), not {channel_axis}"
        )
    return TableSource(path, column, channels=channel_axis is not None)


def _with_arrays(kind: type[Hdf5Source | ZarrSource]) -> Opener:
    return lambda path, name, ndim, axis: kind(path, name, ndim, channel_axis=axis)


def _alone(kind: type[NpySource | TiffSource]) -> Opener:
    return lambda path, name, ndim, axis: kind(f"{path}::{name}" if name else path, ndim, channel_axis=axis)


OPENERS: dict[str, Opener] = {
    ".npy": _alone(NpySource),
    **dict.fromkeys((".tif", ".tiff"), _alone(TiffSource)),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _with_arrays(Hdf5Source)),
    **dict.fromkeys(STORE_SUFFIXES, _with_arrays(ZarrSource)),
    **dict.fromkeys(TABLE_SUFFIXES, _table),
}
"""Formats of arrays by the ends of file names: a new one is a module with its source, and a line here. Files of other names
are images."""

SIGNAL_SUFFIXES = IMAGE_SUFFIXES | {".npy"}
"""Ends of the names of files that are read from folders."""


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
    check_arguments(ndim=ndim, grey=grey)
    check_on_error(on_error)
    files = files_of(paths, SIGNAL_SUFFIXES, recursive=recursive)
    sources: list[StoredSource] = []
    for plain, group in groupby(files, _is_image):
        if plain and ndim == 2:
            sources.append(ImageSource(list(group), grey=grey and channel_axis is None))
        else:
            sources += [_open(file, ndim, channel_axis, on_error) for file in group]
    return sources[0] if len(sources) == 1 else JoinedSource(sources)


def _suffix(file: str) -> str:
    return Path(file.partition("::")[0]).suffix.lower()


def _is_image(file: str) -> bool:
    if _suffix(file) in (".tif", ".tiff"):
        return not _is_stack(file)
    return "::" not in file and _suffix(file) not in OPENERS


def _is_stack(file: str) -> bool:
    """True if a TIFF file holds several pages; a damaged one is left to the reader of images, who says why."""
    try:
        check_regular(file)
        with open(file, "rb") as stream, tifffile.TiffFile(stream, **ONE_FILE) as tiff:
            check_pages(stream)
            if len(tiff.pages) > 1:
                return True
            # ImageJ writes one page and lets the rest follow.
            return bool(tiff.is_imagej) and len(tiff.series[0].axes.replace("S", "")) > 2
    except Exception:  # of many kinds, as damaged files have them
        return False


def _open(file: str, ndim: int, channel_axis: int | None, on_error: OnError) -> StoredSource:
    path, _, name = file.partition("::")
    try:
        if _suffix(file) not in OPENERS:
            tables = ".csv, .tsv, " if ndim == 1 else ""
            raise UnreadableFileError(
                f"{file} is no array: with ndim={ndim} only .npy, {tables}TIFF, zarr and HDF5 files can be read"
            )
        return OPENERS[_suffix(file)](path, name, ndim, channel_axis)
    except UnreadableFileError as error:
        if on_error == "raise":
            raise
        return UnopenedSource(file, str(error))


class UnopenedSource(StoredSource):
    """Stands for a file that could not be opened: a source of one signal, which cannot be read."""

    def __init__(self, file: str, reason: str) -> None:
        self._file, self._reason = file, reason

    def __len__(self) -> int:
        return 1

    def read(self, index: int, epoch: int = 0) -> NDArray:
        raise UnreadableFileError(self._reason)

    def shape(self, index: int) -> tuple[int, ...]:
        raise UnreadableFileError(self._reason)

    def name(self, index: int, epoch: int = 0) -> str:
        return self._file

    def describe(self) -> dict[str, Any]:
        return {"kind": "unreadable", "content": file_fingerprint([self._file])}
