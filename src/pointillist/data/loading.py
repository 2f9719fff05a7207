"""Reading of many files at once: lists of files and folders, images and ``.npy`` arrays.

Decoding of a single image file lives in the images module.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pointillist.data.images import load_image
from pointillist.data.mapped import open_mapped
from pointillist.data.samples import to_float
from pointillist.errors import UnreadableFileError

logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
OnError = Literal["raise", "skip"]
Signal = NDArray[np.floating[Any]]
_Read = Callable[[Path], list[tuple[str, Signal]]]

IMAGE_SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp", ".pbm", ".pgm", ".ppm", ".pnm")
)


@dataclass(frozen=True)
class Loaded:
    """Signals read from files, with where they came from.

    Attributes
    ----------
    signals : list of arrays
    names : list of str
        One per signal: the file, with ``[i]`` appended for an entry of a stack.
    skipped : list of str
        The message for each file that could not be read; always empty unless ``on_error="skip"``.
    """

    signals: list[Signal]
    names: list[str]
    skipped: list[str]


def load_images(
    paths: PathLike | Iterable[PathLike], *, grey: bool = True, on_error: OnError = "raise"
) -> list[Signal]:
    """Read image files, and the image files in folders, as a list of arrays.

    Parameters
    ----------
    paths : path or iterable of paths
        A folder stands for the image files directly inside it, sorted by name with numbers in numeric order;
        hidden files, files of other kinds and subfolders are left out.
    grey : bool
        Whether to convert to grey, see `load_image`.
    on_error : "raise" or "skip"
        Whether an unreadable file stops the reading, or is left out with a warning in the log.

    Returns
    -------
    list of float32 arrays (H, W), or (3, H, W) when ``grey`` is false

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> for name, size in {"a.png": (40, 30), "b.png": (20, 20)}.items():
    ...     Image.new("L", size).save(name)
    >>> [image.shape for image in pt.load_images(".")]
    [(30, 40), (20, 20)]

    Raises
    ------
    FileNotFoundError
        If a path does not exist, whatever ``on_error`` is.
    UnreadableFileError
        If a file cannot be read and ``on_error`` is "raise".
    ValueError
        If a folder holds no image files, or no file could be read.
    """
    return read_images(paths, grey=grey, on_error=on_error).signals


def read_images(paths: PathLike | Iterable[PathLike], *, grey: bool = True, on_error: OnError = "raise") -> Loaded:
    """Do what `load_images` does and also return the names of the images and the files skipped."""

    def read(path: Path) -> list[tuple[str, Signal]]:
        return [(str(path), load_image(path, grey=grey))]

    return _read_all(expand(paths, IMAGE_SUFFIXES), read, on_error)


def load_signals(paths: PathLike | Iterable[PathLike], *, ndim: int = 2, on_error: OnError = "raise") -> list[Signal]:
    """Read grey images and ``.npy`` arrays as one list of signals.

    Parameters
    ----------
    paths : path or iterable of paths
        As for `load_images`; ``.npy`` files in folders are read too. A ``.npy`` file holds one signal of
        ``ndim`` axes or a stack (n, ...) of them.
    ndim : int
        Number of axes of a signal: 2 for images (H, W), 1 for series (T,), 3 for volumes (D, H, W). Image
        files can only be read with 2.
    on_error : "raise" or "skip"
        As for `load_images`.

    Returns
    -------
    list of float arrays
        uint8 and uint16 samples are scaled to [0, 1]. float32 and float64 signals are read-only views of the
        mapped ``.npy`` file, so that a large stack is not read before it is used. A single signal of more than
        four million samples in a ``.npy`` or TIFF file is mapped in any case, see `open_mapped`.

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
    return read_signals(paths, ndim=ndim, on_error=on_error).signals


def read_signals(paths: PathLike | Iterable[PathLike], *, ndim: int = 2, on_error: OnError = "raise") -> Loaded:
    """Do what `load_signals` does and also return the names of the signals and the files skipped."""
    if ndim < 1:
        raise ValueError(f"ndim must be at least 1, got {ndim}")

    def read(path: Path) -> list[tuple[str, Signal]]:
        large = open_mapped(path, ndim)
        if large is not None:
            return [(str(path), large)]
        if path.suffix.lower() == ".npy":
            return _read_npy(path, ndim)
        if ndim != 2:
            raise UnreadableFileError(f"{path} is not a .npy file: with ndim={ndim} only .npy files can be read")
        return [(str(path), load_image(path))]

    return _read_all(expand(paths, IMAGE_SUFFIXES | {".npy"}), read, on_error)


def expand(paths: PathLike | Iterable[PathLike], suffixes: Iterable[str]) -> list[Path]:
    """Replace each folder by the files directly inside it that end in one of the suffixes, in natural order.

    Files named explicitly are kept whatever their suffix. Raises FileNotFoundError for a missing path and
    ValueError for a folder without such files or for no paths at all.
    """
    wanted = frozenset(suffixes)
    roots = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not roots:
        raise ValueError("paths is empty: give at least one file or folder")
    files: list[Path] = []
    for root in roots:
        if not root.exists():
            raise FileNotFoundError(f"no such file or folder: {root}")
        files.extend(_files_in(root, wanted) if root.is_dir() else [root])
    return files


def _files_in(folder: Path, suffixes: frozenset[str]) -> list[Path]:
    visible = [entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    files = [entry for entry in visible if entry.suffix.lower() in suffixes]
    if not files:
        raise ValueError(f"folder {folder} holds no files to read: expected {', '.join(sorted(suffixes))}")
    if len(files) < len(visible):
        logger.info("%s: %d files of other kinds are left out", folder, len(visible) - len(files))
    return sorted(files, key=natural_key)


def natural_key(path: Path) -> tuple[list[tuple[int, str]], str]:
    # Runs of digits compare as numbers, so that 2.png comes before 10.png; the name itself decides ties (01
    # and 1).
    parts = re.findall(r"[0-9]+|[^0-9]+", path.name.casefold())
    return [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts], path.name


def _read_all(files: list[Path], read: _Read, on_error: OnError) -> Loaded:
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}')
    loaded = Loaded([], [], [])
    for file in files:
        try:
            entries = read(file)
        except UnreadableFileError as error:
            if on_error == "raise":
                raise
            logger.warning("skipped: %s", error)
            loaded.skipped.append(str(error))
            continue
        for name, signal in entries:
            loaded.names.append(name)
            loaded.signals.append(signal)
    if not loaded.signals:
        raise ValueError(f"none of the {len(files)} files could be read; the first: {loaded.skipped[0]}")
    return loaded


def _read_npy(path: Path, ndim: int) -> list[tuple[str, Signal]]:
    try:
        array = np.lib.format.open_memmap(path, mode="r")
        if array.ndim not in (ndim, ndim + 1):
            raise ValueError(f"it must have {ndim} or {ndim + 1} axes for ndim={ndim}, got shape {array.shape}")
        if array.size == 0:
            raise ValueError(f"it is empty, shape {array.shape}")
        signals = to_float(array.view(np.ndarray), "it")
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableFileError(f"cannot read {path} as a .npy array: {reason}") from error
    if array.ndim == ndim:
        return [(str(path), signals)]
    return [(f"{path}[{i}]", signal) for i, signal in enumerate(signals)]
